"""The fused loop on one core, on two, and on a graphics card, side by side in one run.

    python -m benchmarks.gpu [--out DIR] [--quick]

Prints a table and writes DIR/gpu.json. Without a card, only the processor is measured. All runs have played a few
hundred episodes before they are timed, so that memory has grown and everything is compiled.
"""

import argparse
import json
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import rlsvi
from rlsvi import PSRL, RLSVI, problems
from rlsvi.core import card
from rlsvi.core.files import write_file
from rlsvi.simulate.finite import simulate
from rlsvi.simulate.gpu import Batch

CASES = {
    "chain, N = 50, K = 10": (RLSVI(), lambda: problems.chain(50, 10), 300, True),
    "chain, N = 50, K = 10, no regret": (RLSVI(), lambda: problems.chain(50, 10), 300, False),
    "chain, N = 50, K = 50": (RLSVI(), lambda: problems.chain(50, 50), 60, True),
    "DeepSea, N = 20, table": (RLSVI(), lambda: problems.deep_sea(20), 300, True),
    "recommendation, N = 10, J = 5": (
        RLSVI(lam=0.2, sigma=1e-3**0.5),
        lambda: problems.recommendation(10, 5),
        100,
        False,
    ),
    "Dirichlet, S = 5, A = 3, H = 5": (RLSVI(), lambda: problems.dirichlet(5, 3, 5), 1000, True),
    "Dirichlet, PSRL": (PSRL(reward_range=(-1, 0)), lambda: problems.dirichlet(5, 3, 5), 300, True),
}
EPISODES_BEFORE = 200  # episodes
RUNS = (1024, 4096, 16384)


def on_cores(agent, problem, episodes, regret, cores):
    """Episodes per second."""
    agents = [agent.clone(seed=seed) for seed in range(cores)]
    with ThreadPoolExecutor(cores) as pool:

        def play(one, count):
            simulate(one, problem, count, regret=regret)

        list(pool.map(play, agents, [EPISODES_BEFORE] * cores))
        begin = time.perf_counter()
        list(pool.map(play, agents, [episodes] * cores))
    return cores * episodes / (time.perf_counter() - begin)


def on_card(agent, problem, episodes, regret, runs):
    """Episodes per second, and bytes on the card for each run."""
    batch = Batch([agent.clone(seed=seed) for seed in range(runs)], problem)
    batch.play(range(runs), EPISODES_BEFORE, regret=regret)
    begin = time.perf_counter()
    batch.play(range(runs), episodes, regret=regret)
    return runs * episodes / (time.perf_counter() - begin), sum(leaf.bytes for leaf in batch.leaves)


def many_seeds(seeds=10_000, episodes=2_000):
    """Seconds of a comparison of many seeds on the 50-chain, compiled before, and its median regret."""
    problem = problems.chain(50, 10)
    rlsvi.compare({"RLSVI": RLSVI()}, problem, 50, seeds=32, device="cuda", progress=False)
    begin = time.perf_counter()
    runs = rlsvi.compare({"RLSVI": RLSVI()}, problem, episodes, seeds=seeds, device="cuda", progress=False)
    took = time.perf_counter() - begin
    return took, sorted(float(run.history.regret.sum()) for run in runs.of("RLSVI"))[seeds // 2]


def measured(quick):
    found = []
    for name, (agent, make, episodes, regret) in CASES.items():
        problem = make()
        row = {
            "case": name,
            "cores": {n: on_cores(agent, problem, episodes, regret, n) for n in (1, 2)},
            "card": {},
        }
        print(f"{name}: {row['cores'][1]:,.0f} episodes/s on one core, {row['cores'][2]:,.0f} on two", flush=True)
        for runs in RUNS if card.is_usable() else ():
            try:
                speed, size = on_card(agent, problem, episodes if not quick else episodes // 5, regret, runs)
            except card.NoCard as error:
                print(f"  {runs} runs: {error}", flush=True)
                break
            row["card"][runs], row["bytes"] = speed, size
            ratio = speed / row["cores"][1]
            print(
                f"  {runs} runs: {speed:,.0f} episodes/s, {ratio:.0f} cores; {size / 1e6:.2f} MB a run", flush=True
            )
        found.append(row)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--quick", action="store_true", help="a fifth of the episodes on the card")
    options = parser.parse_args()
    result = {"machine": platform.processor() or platform.machine(), "speeds": measured(options.quick)}
    if card.is_usable():
        result["card"] = str(card.cuda().get_current_device().name)
        took, regret = many_seeds()
        result["many seeds"] = {"seconds": took, "median regret": regret}
        print(f"10,000 seeds of the 50-chain, 2,000 episodes with exact regret: {took:.1f} s, median {regret:.1f}")
    options.out.mkdir(parents=True, exist_ok=True)
    write_file(options.out / "gpu.json", json.dumps(result, indent=1).encode())


if __name__ == "__main__":
    main()
