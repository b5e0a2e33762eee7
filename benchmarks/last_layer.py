"""The tables of docs/tutorials/last-layer.md: RLSVI on the last layer of a network, and what it is compared with.

    python -m benchmarks.last_layer [--random 100 20] [--seeds 7] [--first-seed 0] [--out DIR] [--quick]

Runs the Python of the page, measures with its functions, prints the tables in Markdown, and writes them to
DIR/last_layer.md: the share of balls that is caught after 100 or 20 random episodes and up to 200 more, medians
over the seeds, with the least and the most in brackets. It needs scikit-learn.
"""

import argparse
import contextlib
import io
import re
import time
import warnings
from pathlib import Path
from statistics import median

import rlsvi
from rlsvi import DivergenceWarning

PAGE = Path(__file__).parents[1] / "docs" / "tutorials" / "last-layer.md"
RANDOM, BATCH, BATCHES, SHOWN = (100, 20), 50, 4, (0, 1, 2, 4)
LINEAR, RADIAL, NETWORK = "RLSVI, linear features", "RLSVI, `bases.Radial()`", "the network, ε = .1"
LAST_LAYER, AGAIN = "RLSVI, last layer", "RLSVI, last layer, fitted again every 50"


def page_functions():
    """What the Python of the page defines."""
    names = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE):
            exec(compile(block, str(PAGE), "exec"), names)
    return names


def learning(page, agent):
    """The shares of an agent that has been fitted, before and after every 50 episodes that it learns."""
    found = [page["caught"](agent)]
    for _ in range(BATCHES):
        agent.learn(page["env"], episodes=BATCH)
        found.append(page["caught"](agent))
    return found


def radial(page, seed, log):
    """An agent like the others with radial functions, which know nothing of the problem."""
    basis = rlsvi.bases.of(page["env"], rlsvi.bases.Radial())
    agent = rlsvi.StationaryRLSVI(basis=basis, gamma=page["gamma"], lam=1.0, sigma=0.3, regressions=5, seed=seed)
    return agent.fit(log, page["env"])


def network_alone(page, seed, log):
    """The shares of a network that is fitted anew after every 50 episodes with dithering."""
    found = []
    for batch in range(BATCHES + 1):
        policy = page["greedy"](page["network"](log, seed))
        found.append(page["caught"](policy))
        options = {"episodes": BATCH, "epsilon": 0.1, "seed": 100 * seed + batch}
        log = page["joined"](log, rlsvi.record(page["env"], policy, **options))
    return found


def fitted_again(page, seed, log):
    """The shares of RLSVI with the last layer of a network that is fitted anew before every 50 episodes."""
    found = []
    for _ in range(BATCHES):
        agent = page["agent_with"](page["last_layer"](page["network"](log, seed)), seed, log)
        if not found:
            found.append(page["caught"](agent))
        log = page["joined"](log, rlsvi.record(page["env"], agent, episodes=BATCH, learning=True))
        found.append(page["caught"](agent))
    return found


def runs_of(page, seed, log, random):
    """What is measured on one log of so many random episodes: a name, and a function that plays."""
    with_features = page["agent_with"]
    found = {
        LINEAR: lambda: learning(page, with_features(page["linear"], seed, log)),
        NETWORK: lambda: network_alone(page, seed, log),
        LAST_LAYER: lambda: learning(
            page, with_features(page["last_layer"](page["network"](log, seed)), seed, log)
        ),
    }
    if random == RANDOM[0]:
        return found | {RADIAL: lambda: learning(page, radial(page, seed, log))}
    return found | {AGAIN: lambda: fitted_again(page, seed, log)}


def measured(page, random, seeds):
    """The shares of every run by name, and the names of the runs that warned of divergence; prints as it goes."""
    shares, diverged = {}, []
    for seed in seeds:
        log = rlsvi.record(page["env"], None, episodes=random, seed=seed)
        for name, play in runs_of(page, seed, log, random).items():
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                shares.setdefault(name, []).append(play())
            if any(issubclass(each.category, DivergenceWarning) for each in told):
                diverged.append(f"{name}, seed {seed}")
            data = f"{random} random episodes, seed {seed}, {log['reward'].sum():.0f} caught"
            print(f"{data}: {name}: {shares[name][-1]}", flush=True)
    return shares, diverged


def table(shares, random):
    """Medians, with the least and the most."""
    head = [f"after {random} random episodes", "0 more", *(str(BATCH * i) for i in SHOWN[1:])]
    lines = [f"| {' | '.join(head)} |", f"|---|{'--:|' * len(SHOWN)}"]
    for name, runs in shares.items():
        columns = [[run[i] for run in runs] for i in SHOWN]
        cells = [f"{median(x):.2f} ({min(x):.2f} to {max(x):.2f})" for x in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, nargs="+", default=RANDOM, help="random episodes before, 100 or 20")
    parser.add_argument("--seeds", type=int, default=7)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder for last_layer.md")
    parser.add_argument("--quick", action="store_true", help="one seed, only to see that it works")
    given = parser.parse_args()
    page, texts, begin = page_functions(), [], time.process_time()
    seeds = range(given.first_seed, given.first_seed + (1 if given.quick else given.seeds))
    for random in given.random:
        shares, diverged = measured(page, random, seeds)
        texts.append(f"{table(shares, random)}\n\nDiverged: {'; '.join(diverged) or 'none'}.\n")
    text = "\n".join(texts) + f"\n({time.process_time() - begin:.0f} seconds of computing)\n"
    print(text)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "last_layer.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
