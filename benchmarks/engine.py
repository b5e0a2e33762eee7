"""The engine against the pseudo-code in plain NumPy, side by side in one run on one core.

    python -m benchmarks.engine [--out DIR] [--quick]

Prints a table and writes DIR/engine.json. Machines are noisy: trust the ratios, not the microseconds.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import rlsvi
from benchmarks.pseudo_code import PseudoCode
from rlsvi.envs import FiniteMDPEnv
from rlsvi.simulate.finite import simulate

LENGTH, FEATURES, LAM, SIGMA = 50, 10, 1.0, 0.1


def seconds(work, repeats=5):
    """Median time of several calls."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return median(times)


def learned(problem, episodes):
    """Return an agent that has learned for `episodes` episodes, and the trace."""
    agent = rlsvi.RLSVI(lam=LAM, sigma=SIGMA, seed=0)
    history = simulate(agent, problem, episodes, regret=False, trace=True)
    return agent, history.trace


def pseudo_code_after(problem, trace):
    """The pseudo-code with the same episodes behind it."""
    twin = PseudoCode(problem.basis.phi, LAM, SIGMA, seed=0, episodes=len(trace.states) + 1000)
    n = len(trace.states)
    twin.s[:n, :-1], twin.a[:n], twin.r[:n, :-1] = trace.states, trace.actions, 0.0
    twin.s[:n, -1], twin.r[:n, -1] = 0, trace.rewards[:, -1]
    twin.l = n
    return twin


def against_numpy(problem, episodes):
    """Seconds an episode after `episodes` episodes: pseudo-code, fused loop, fused loop with expected regret."""
    agent, trace = learned(problem, episodes)
    twin = pseudo_code_after(problem, trace)
    repeats = 7 if episodes < 10_000 else 3
    slow, fast, regret = [], [], []
    for _ in range(repeats):  # in turns, so that a busy moment of the machine hits all of them
        slow.append(seconds(lambda: twin.episode(problem.mdp.table), 1))
        fast.append(seconds(lambda: simulate(agent, problem, 1000, regret=False), 1) / 1000)
        regret.append(seconds(lambda: simulate(agent, problem, 1000), 1) / 1000)
    return {"numpy": median(slow), "fused": median(fast), "fused_with_regret": median(regret)}


def growth(problem):
    """Seconds an episode at l = 1,000 and at l = 100,000, measured in turns."""
    young, _ = learned(problem, 1_000)
    old, _ = learned(problem, 100_000)
    times = {1_000: [], 100_000: []}
    for _ in range(9):
        for episodes, agent in ((1_000, young), (100_000, old)):
            times[episodes].append(
                seconds(lambda agent=agent: simulate(agent, problem, 200, regret=False), 1) / 200
            )
    return {episodes: median(values) for episodes, values in times.items()}


def gymnasium_loop(problem):
    """Seconds an episode when the same agent is stepped through the Gymnasium interface."""
    agent, _ = learned(problem, 1_000)
    environment = FiniteMDPEnv(problem.mdp)
    agent.learn(environment, episodes=2)
    return seconds(lambda: agent.learn(environment, episodes=50), 3) / 50


def subprocess_output(code, **environment):
    """What a fresh interpreter prints."""
    result = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


CHAIN = f"""
import resource, time
import rlsvi
from rlsvi.simulate.finite import simulate
problem = rlsvi.problems.chain({LENGTH}, {FEATURES})
agent = rlsvi.RLSVI(lam={LAM}, sigma={SIGMA}, seed=0)
begin = time.perf_counter()
simulate(agent, problem, %d, regret=%s)
print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


FIRST_USE = {
    "rlsvi.compare": f"""
import time
import rlsvi
problem = rlsvi.problems.chain(length={LENGTH}, features={FEATURES})
agents = {{"RLSVI": rlsvi.RLSVI(), "LSVI": rlsvi.LSVI()}}
begin = time.process_time()
rlsvi.compare(agents, problem, episodes=20, seeds=1, progress=False)
print(time.process_time() - begin)
""",
    "RLSVI().learn": f"""
import time
import rlsvi
from rlsvi.envs import FiniteMDPEnv
environment = FiniteMDPEnv(rlsvi.problems.chain(length={LENGTH}, features={FEATURES}).mdp)
begin = time.process_time()
rlsvi.RLSVI(seed=0).learn(environment, episodes=3)
print(time.process_time() - begin)
""",
}


def first_use(code, repeats=3):
    """Processor time without imports in a fresh process, with nothing compiled and with all compiled before."""
    new, again = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as empty:
            for times in (new, again):
                times.append(float(subprocess_output(code, NUMBA_CACHE_DIR=empty)))
    return {"nothing_compiled": min(new), "compiled_before": min(again)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--quick", action="store_true", help="leave out l = 20,000 and the million episodes")
    options = parser.parse_args()
    problem = rlsvi.problems.chain(LENGTH, FEATURES)
    simulate(rlsvi.RLSVI(seed=0), problem, 10)
    result = {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "python": platform.python_version()}
    rows = []

    def row(what, value):
        rows.append((what, value))
        print(f"{what:<66}{value:>16}", flush=True)

    print(f"chain of length {LENGTH}, {FEATURES} features, one core")
    for episodes in (200, 2_000) if options.quick else (200, 2_000, 20_000):
        times = result[f"l={episodes}"] = against_numpy(problem, episodes)
        row(f"l = {episodes:,}: pseudo-code in NumPy, an episode", f"{times['numpy'] * 1e3:.2f} ms")
        row(f"l = {episodes:,}: fused loop", f"{times['fused'] * 1e6:.1f} us")
        row(f"l = {episodes:,}: fused loop and expected regret", f"{times['fused_with_regret'] * 1e6:.1f} us")
        row(f"l = {episodes:,}: fused loop, times faster", f"{times['numpy'] / times['fused']:.0f}")
    times = result["growth"] = growth(problem)
    row("an episode at l = 100,000 over one at l = 1,000", f"{times[100_000] / times[1_000]:.3f}")
    stepped = result["gymnasium_loop"] = gymnasium_loop(problem)
    row("stepped through Gymnasium, an episode", f"{stepped * 1e6:.0f} us")
    row("stepped through Gymnasium over fused", f"{stepped / result['l=2000']['fused']:.1f}")
    if not options.quick:
        took, peak = (float(x) for x in subprocess_output(CHAIN % (1_000_000, True)).split())
        result["million"] = {"seconds": took, "peak_MB": peak}
        row("10^6 episodes with expected regret", f"{took:.0f} s")
        row("10^6 episodes, peak memory", f"{peak:.0f} MB")
    result["first_use"] = {}
    for what, code in FIRST_USE.items():
        times = result["first_use"][what] = first_use(code, 1 if options.quick else 3)
        row(f"first use of {what}, nothing compiled, processor time", f"{times['nothing_compiled']:.1f} s")
        row(f"first use of {what}, compiled before, processor time", f"{times['compiled_before']:.2f} s")
    with tempfile.TemporaryDirectory() as empty:
        took, _ = (float(x) for x in subprocess_output(CHAIN % (1, True), NUMBA_CACHE_DIR=empty).split())
    result["compile"] = took
    row("first call, nothing compiled yet", f"{took:.1f} s")
    took, _ = (float(x) for x in subprocess_output(CHAIN % (1, True)).split())
    result["load_compiled"] = took
    row("first call, compiled before", f"{took:.2f} s")
    result["import"] = seconds(lambda: subprocess_output("import rlsvi"))
    row("a Python that imports rlsvi", f"{result['import']:.2f} s")
    result["python"] = seconds(lambda: subprocess_output("pass"))
    result["help"] = seconds(
        lambda: subprocess_output(
            "import sys; sys.argv = ['rlsvi', '--help']; from rlsvi.cli.app import main; main()"
        )
    )
    row("rlsvi --help", f"{result['help']:.2f} s")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "engine.json").write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {options.out / 'engine.json'}")


if __name__ == "__main__":
    main()
