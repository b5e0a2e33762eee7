"""How the noise and the share of random actions of the figure swing-up are chosen.

    python -m benchmarks.swing_up_settings [--seeds 4] [--episodes 100] [--workers 2] [--out DIR]

Prints a table in Markdown, and writes it to DIR/swing_up_settings.md: at a height of .5, for a grid of sigma and a
grid of epsilon, the means over seeds of the share of episodes with the pole up in some step and of the return of
the last third of the episodes. The figure has the sigma and the epsilon with the largest share of such episodes
or, where two shares differ by less than their standard errors, the larger return. Seeds begin at 1000: those of
the figure begin at 0.
"""

import argparse
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np

from rlsvi_paper.descendants.swing_up import dithering, found_by, noisy
from rlsvi_paper.results import seeds_of

HEIGHT, COST, FIRST_SEED = 0.5, 0.1, 1000
SETTINGS = [*product(["σ"], (0.1, 0.3, 1.0, 3.0)), *product(["ε"], (0.03, 0.1, 0.2, 0.3))]
MAKERS = {"σ": noisy, "ε": dithering}


def run_of(case):
    """What the agent of one setting finds with one seed, and the seconds of computing."""
    (name, value), seed, episodes = case
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on other settings
        found = found_by(MAKERS[name](seeds_of(seed)[1], value), HEIGHT, COST, episodes)
    return found["rewarded"], found["late"], time.process_time() - begin


def main():
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4, help="seeds of each setting")
    parser.add_argument("--episodes", type=int, default=100, help="episodes of each run")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, help="folder for swing_up_settings.md")
    given = parser.parse_args()
    cases = [(each, FIRST_SEED + seed, given.episodes) for each in SETTINGS for seed in range(given.seeds)]
    with ProcessPoolExecutor(given.workers) as pool:
        found = np.array(list(pool.map(run_of, cases))).reshape(len(SETTINGS), given.seeds, 3)
    lines = ["| setting | episodes with the pole up | return, last third |", "|---|--:|--:|"]
    for (name, value), runs in zip(SETTINGS, found, strict=True):
        errors = runs.std(axis=0, ddof=1) / np.sqrt(given.seeds)
        (share, late, _), (share_error, late_error, _) = runs.mean(axis=0), errors
        lines.append(f"| {name} = {value:g} | {share:.2f} ± {share_error:.2f} | {late:.1f} ± {late_error:.1f} |")
    lines += [
        "",
        f"{given.seeds} seeds, {given.episodes} episodes; {found[..., 2].sum():.0f} seconds of computing",
    ]
    print("\n".join(lines))
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "swing_up_settings.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
