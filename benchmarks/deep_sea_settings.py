"""How lam and sigma of the figure deep-sea are chosen, and DiscountedPSRL beside it.

    python -m benchmarks.deep_sea_settings [still stochastic psrl] [--seeds 400] [--out DIR] [--quick]

Prints tables in Markdown, and writes them to DIR/deep_sea_settings.md: for RLSVI with a table, N = 10, a grid of
lam and sigma, the episodes until the tenth that finds the treasure or, in a stochastic sea, until the tenth whose
policy is worth half of the optimum, computed by the experiment of the figure. Seeds begin at 1000: the figure has
0 to 19. Below each grid are the settings with the lowest means, with standard errors, or the lowest ninth deciles,
with 95% intervals. DiscountedPSRL, which is no part of the figure, plays its first seas, of sizes 10 and 20.
"""

import argparse
import math
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import binom

from rlsvi import DiscountedPSRL, problems
from rlsvi.envs import FiniteMDPEnv
from rlsvi_paper.descendants.deep_sea import CHOSEN, TABLE, TREASURES, treasure_time
from rlsvi_paper.results import seeds_of

LAMS, SIGMAS = (0.1, 1.0, 10.0, 100.0), (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
STILL, STOCHASTIC, PSRL = "still", "stochastic", "psrl"
SEEDS = {STILL: 400, STOCHASTIC: 300, PSRL: 10}
FIRST_SEED, SETTINGS_LISTED = 1000, 4  # the first seed, and how many settings are listed below a grid


def times_of(stochastic, seeds, limit):
    """The learning times of every seed, by lam and sigma; infinite if it was not learned within a limit."""
    setting = {"agent": TABLE, "size": 10, "stochastic": stochastic, "limit": limit}
    return {
        (lam, sigma): np.array(
            [
                treasure_time(**setting, lam=lam, sigma=sigma, seed=seed)["time"]
                for seed in range(FIRST_SEED, FIRST_SEED + seeds)
            ]
        )
        for lam, sigma in product(LAMS, SIGMAS)
    }


def missed(times):
    """The share of runs that did not learn."""
    return float(np.isinf(times).mean())


def ninth_decile(times):
    """The least time within which nine of ten runs learn."""
    return float(np.quantile(times, 0.9, method="inverted_cdf"))


def mean(times, limit):
    """The mean, in which a run that did not learn counts as the limit, and its standard error."""
    held = np.minimum(times, limit)
    return held.mean(), held.std(ddof=1) / math.sqrt(len(held))


def grid(found, stochastic, tell):
    """A table by lam (rows) and sigma (columns), in which the setting of the figure is bold."""
    cells = {at: f"**{tell(t)}**" if at == CHOSEN[stochastic] else tell(t) for at, t in found.items()}
    lines = [f"| λ \\ σ | {' | '.join(f'{sigma:g}' for sigma in SIGMAS)} |", f"|--:|{'--:|' * len(SIGMAS)}"]
    lines += [f"| {lam:g} | {' | '.join(cells[lam, sigma] for sigma in SIGMAS)} |" for lam in LAMS]
    return "\n".join(lines)


def lowest(found, stochastic, key, tell):
    """A list of the settings with the lowest values of a key, and of the figure's."""
    order = sorted(found, key=lambda at: key(found[at]))
    at_all = dict.fromkeys([*order[:SETTINGS_LISTED], CHOSEN[stochastic]])
    return "\n".join(f"- λ = {lam:g}, σ = {sigma:g}: {tell(found[lam, sigma])}" for lam, sigma in at_all)


def number(x):
    """A number of episodes in words."""
    return f"{x:,.0f}" if x < math.inf else "∞"


def still(seeds, limit):
    """Medians and means in a still sea."""
    found = times_of(False, seeds, limit)

    def average(times):
        return mean(times, limit)[0]

    def told(times):
        return "mean {:.1f} ± {:.1f}".format(*mean(times, limit)) + f", median {np.median(times):g}"

    table = grid(found, False, lambda t: f"{number(np.median(t))} / {number(average(t))}")
    least = min(found.values(), key=average)
    gap, error = mean(np.minimum(found[CHOSEN[False]], limit) - np.minimum(least, limit), math.inf)
    return (
        f"Still sea, {seeds} seeds: median / mean.\n\n{table}\n\n{lowest(found, False, average, told)}\n\n"
        f"On the same seeds, the mean of the figure's setting is above the lowest by {gap:.1f} ± {error:.1f}."
    )


def stochastic(seeds, limit):
    """Ninth deciles in a stochastic sea, and the share of runs that did not learn."""
    found = times_of(True, seeds, limit)
    table = grid(found, True, lambda t: f"{number(ninth_decile(t))} ({missed(t):.0%})")

    ranks = binom.ppf([0.025, 0.975], seeds, 0.9).astype(int) - [1, 0]  # of a 95% interval
    ranks = ranks.clip(0, seeds - 1)

    def told(times):
        low, high = np.sort(times)[ranks]
        span = f"{number(low)} to {number(high)}"
        return f"ninth decile {number(ninth_decile(times))} ({span}), median {np.median(times):g}"

    best = lowest(found, True, ninth_decile, told)
    return f"Stochastic sea, {seeds} seeds: ninth decile (share that did not learn).\n\n{table}\n\n{best}"


def psrl(seeds, limit):
    """The learning times of DiscountedPSRL in the seas of the figure."""
    lines = []
    for size in (10, 20):
        times = [treasure_time_of_psrl(size, seed, limit) for seed in range(seeds)]
        each = ", ".join(number(x) for x in sorted(times))
        lines.append(f"- N = {size}: median {np.median(times):g} ({each})")
    return f"DiscountedPSRL, {seeds} seeds from 0 on, episodes until the tenth treasure.\n\n" + "\n".join(lines)


def treasure_time_of_psrl(size, seed, limit):
    """Episodes until the tenth that finds the treasure."""
    problem_seed, agent_seed = seeds_of(seed)
    problem, rewards = problems.deep_sea(size, seed=problem_seed), []
    good = 0.5 * float(problem.solution.V[0, 0])

    def note(agent, reward):
        rewards.append(reward)
        return sum(r >= good for r in rewards) < TREASURES  # False ends learning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing is earned before the first treasure, which it tells
        DiscountedPSRL(seed=agent_seed).learn(FiniteMDPEnv(problem.mdp), episodes=limit, on_episode=note)
    return len(rewards) if sum(r >= good for r in rewards) == TREASURES else math.inf


def main():
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="still, stochastic or psrl; all by default")
    parser.add_argument("--seeds", type=int, help=f"seeds of each part, by default {SEEDS}")
    parser.add_argument("--limit", type=int, default=2000, help="most episodes of a run")
    parser.add_argument("--out", type=Path, help="folder for deep_sea_settings.md")
    parser.add_argument("--quick", action="store_true", help="few seeds and episodes, only to see that it works")
    given = parser.parse_args()
    measures = {STILL: still, STOCHASTIC: stochastic, PSRL: psrl}
    if unknown := set(given.parts) - measures.keys():
        parser.error(f"unknown part {min(unknown)}: give some of {', '.join(measures)}")
    texts = []
    for part in given.parts or measures:
        begin = time.process_time()
        seeds = 2 if given.quick else given.seeds or SEEDS[part]
        text = measures[part](seeds, min(given.limit, 300) if given.quick else given.limit)
        texts.append(f"{text}\n\n({time.process_time() - begin:.0f} seconds of computing)\n")
        print(texts[-1], flush=True)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "deep_sea_settings.md").write_text("\n".join(texts), encoding="utf-8")


if __name__ == "__main__":
    main()
