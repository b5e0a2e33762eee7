"""The time of an episode against the number of members: compiled, in plain NumPy, and in a bootstrapped DQN.

    python -m benchmarks.ensemble [--size 20] [--members 1 3 10 30 100] [--out DIR] [--quick]

Prints a table in Markdown, and writes it to DIR/ensemble.md: the time of an episode of DeepSea after `--after`
others, for M members, beside RLSVI, which samples anew. All are measured in turns on one core, so that a busy
moment hits all of them. Machines are noisy: trust the ratios. PyTorch is left out if it is not installed.
"""

import argparse
import importlib.util
import os
import platform
import time
from pathlib import Path
from statistics import median

import rlsvi
from benchmarks.ensemble_rivals import LAM, SIGMA, BootstrappedDQN, PlainEnsemble, Sea
from rlsvi.simulate.finite import simulate

EXACT, TARGETS, WEIGHTS, NUMPY, DQN = "RLSVI", "targets", "weights", "NumPy", "DQN"
FUSED = EXACT, TARGETS, WEIGHTS
SHARE = {NUMPY: 0.02, DQN: 0.002}  # of the episodes of one measurement


class Fused:
    """An agent of this library, in the compiled loop."""

    def __init__(self, problem, agent):
        self.problem, self.agent = problem, agent

    def play(self, episodes):
        """Learn so many more episodes."""
        simulate(self.agent, self.problem, episodes, regret=False)


def players_of(problem, size, members, room):
    """All that is measured for a number of members, with room for so many episodes."""
    options, sea = {"lam": LAM, "sigma": SIGMA, "seed": 0}, Sea(problem.mdp, size)
    found = {EXACT: Fused(problem, rlsvi.RLSVI(**options))}
    for perturb in (TARGETS, WEIGHTS):
        found[perturb] = Fused(problem, rlsvi.EnsembleRLSVI(members=members, perturb=perturb, **options))
    found[NUMPY] = PlainEnsemble(sea, members, room)
    return found | ({DQN: BootstrappedDQN(sea, members)} if importlib.util.find_spec("torch") else {})


def measured(players, after, episodes, rounds):
    """Seconds per episode of each player: the median of several rounds, in which they take turns."""
    for name, player in players.items():
        player.play(after if name != DQN else 7)  # enough for a batch; its cost does not grow
    times = {name: [] for name in players}
    for _ in range(rounds):
        for name, player in players.items():
            count = max(int(SHARE.get(name, 1.0) * episodes), 1)
            begin = time.perf_counter()
            player.play(count)
            times[name].append((time.perf_counter() - begin) / count)
    return {name: median(values) for name, values in times.items()}


def table(rows):
    """Microseconds of an episode, and the ratios: to RLSVI in the compiled loop, of others to `targets`."""
    names = list(next(iter(rows.values())))
    ratios = dict.fromkeys(FUSED[1:], EXACT) | {name: TARGETS for name in names if name not in FUSED}
    head = ["members", *(f"{name}, us" for name in names), *(f"{one} / {other}" for one, other in ratios.items())]
    lines = [f"| {' | '.join(head)} |", f"|{'--:|' * len(head)}"]
    for members, found in rows.items():
        cells = [str(members), *(f"{1e6 * found[name]:,.1f}" for name in names)]
        cells += [f"{found[one] / found[other]:,.{2 if one in FUSED else 0}f}" for one, other in ratios.items()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=20, help="N of DeepSea")
    parser.add_argument("--members", type=int, nargs="+", default=[1, 3, 10, 30, 100])
    parser.add_argument("--after", type=int, default=300, help="episodes learned before")
    parser.add_argument("--out", type=Path, help="folder for ensemble.md")
    parser.add_argument("--quick", action="store_true", help="few episodes, only to see that it works")
    given = parser.parse_args()
    problem, rows = rlsvi.problems.deep_sea(given.size), {}
    episodes, rounds = (100, 3) if given.quick else (1000, 9)
    for members in given.members:
        players = players_of(
            problem, given.size, members, given.after + rounds * max(int(SHARE[NUMPY] * episodes), 1)
        )
        rows[members] = measured(players, given.after, episodes, rounds)
    where = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    text = f"DeepSea, N = {given.size}, after {given.after} episodes; one core of {where}.\n\n{table(rows)}\n"
    print(text)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "ensemble.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
