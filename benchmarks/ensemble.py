"""The time of an episode and the episodes it takes to learn: compiled, in plain NumPy, and in a bootstrapped DQN.

    python -m benchmarks.ensemble [--size 20] [--members 1 3 10 30 100] [--seeds 5] [--out DIR] [--quick]

Prints two tables in Markdown, and writes them to DIR/ensemble.md. The first has the time of an episode of DeepSea
after `--after` others, for M members, beside RLSVI, which samples anew. All are measured in turns on one core, so
that a busy moment hits all of them. Machines are noisy: trust the ratios. The second has, in a smaller sea
(`--learned-size`) and for `--learned-members` members, the episodes until the tenth that finds the treasure, at
most `--limit`, and the time of a run; in the compiled loop it is that of all episodes begun, 50 at a time.
PyTorch is left out if it is not installed.
"""

import argparse
import importlib.util
import math
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
SHARE = {NUMPY: 0.1, DQN: 0.002}  # of the episodes of one measurement
TREASURES, CHUNK = 10, 50  # as in the figure deep-sea


class Fused:
    """An agent of this library, in the compiled loop."""

    def __init__(self, problem, agent):
        self.problem, self.agent = problem, agent

    def play(self, episodes):
        """Learn so many more episodes; return their rewards."""
        return simulate(self.agent, self.problem, episodes, regret=False).reward


def players_of(problem, size, members, seed=0):
    """All that is measured for a number of members."""
    options, sea = {"lam": LAM, "sigma": SIGMA, "seed": seed}, Sea(problem.mdp, size)
    found = {EXACT: Fused(problem, rlsvi.RLSVI(**options))}
    for perturb in (TARGETS, WEIGHTS):
        found[perturb] = Fused(problem, rlsvi.EnsembleRLSVI(members=members, perturb=perturb, **options))
    found[NUMPY] = PlainEnsemble(sea, members, seed)
    return found | ({DQN: BootstrappedDQN(sea, members, seed)} if importlib.util.find_spec("torch") else {})


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


def episodes_to_treasures(player, limit, chunk=1):
    """The number of the episode that is the tenth to find the treasure, infinite if there is none up to a limit.

    So many episodes are played at a time: with one, most of the time of the compiled loop would be its call.
    """
    found = 0
    for played in range(0, limit, chunk):
        for i, reward in enumerate(player.play(min(chunk, limit - played)), 1):
            found += reward > 0.5
            if found == TREASURES:
                return played + i
    return math.inf


def learned(size, members, seeds, limit):
    """For each player, the episodes until the tenth treasure and their seconds, of every seed."""
    found = {}
    for seed in range(seeds):
        problem = rlsvi.problems.deep_sea(size, seed=seed)
        for name, player in players_of(problem, size, members, seed).items():
            begin = time.perf_counter()
            episodes = episodes_to_treasures(player, limit, CHUNK if name in FUSED else 1)
            found.setdefault(name, []).append((episodes, time.perf_counter() - begin))
    return found


def learned_table(found, limit):
    """Medians of the episodes, how many runs did not learn, and medians of the seconds that a run took."""
    lines = ["| | episodes, median | not learned | seconds of a run, median |", "|---|--:|--:|--:|"]
    for name, runs in found.items():
        episodes, seconds = zip(*runs, strict=True)
        middle = median(episodes)
        told = f"{middle:,g}" if middle < math.inf else f"more than {limit:,}"
        lines.append(f"| {name} | {told} | {episodes.count(math.inf)} of {len(runs)} | {median(seconds):,.3g} |")
    return "\n".join(lines)


def main():
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=20, help="N of DeepSea")
    parser.add_argument("--members", type=int, nargs="+", default=[1, 3, 10, 30, 100])
    parser.add_argument("--after", type=int, default=300, help="episodes learned before")
    parser.add_argument("--learned-size", type=int, default=10, help="N of the sea that is learned")
    parser.add_argument("--learned-members", type=int, default=10, help="members that learn it")
    parser.add_argument("--seeds", type=int, default=5, help="runs that learn it")
    parser.add_argument("--limit", type=int, default=1000, help="most episodes of such a run")
    parser.add_argument("--out", type=Path, help="folder for ensemble.md")
    parser.add_argument("--quick", action="store_true", help="few episodes and members, only to see that it works")
    given = parser.parse_args()
    episodes, rounds = 1000, 9
    if given.quick:
        given.members, given.learned_size, given.seeds, given.limit, episodes, rounds = [1, 10], 5, 2, 60, 100, 3
    problem, rows = rlsvi.problems.deep_sea(given.size), {}
    for members in given.members:
        rows[members] = measured(players_of(problem, given.size, members), given.after, episodes, rounds)
    learning = learned(given.learned_size, given.learned_members, given.seeds, given.limit)
    where = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    text = (
        f"DeepSea, N = {given.size}, after {given.after} episodes; one core of {where}.\n\n{table(rows)}\n\n"
        f"Until the tenth treasure, N = {given.learned_size}, {given.learned_members} members, {given.seeds} seeds"
        f", at most {given.limit:,} episodes.\n\n{learned_table(learning, given.limit)}\n"
    )
    print(text)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "ensemble.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
