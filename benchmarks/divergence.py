"""Do values diverge? Orders 3 to 7 times sigma .1 to 3 times five seeds: 100 runs on MountainCar-v0. One core.

    python -m benchmarks.divergence [--episodes 50] [--seeds 5] [--unbounded] [--out DIR]

Each run learns with Fourier features of one order and one known sigma, all else by default. Values are out of hand
where they are ten times as large as any sum of rewards can be; the agent then plans anew with ten times the ridge,
and counts it (`agent.recoveries`). `--unbounded` shows what happens without bounds of the targets.
"""

import argparse
import json
from itertools import product
from pathlib import Path

import gymnasium as gym
import numpy as np

import rlsvi

ORDERS, SIGMAS = (3, 4, 5, 6, 7), (0.1, 0.3, 1.0, 3.0)
FRESH = 10**6  # seeds of the environment in evaluation; training draws its own


def run(order, sigma, seed, episodes, bounds):
    """One run: the return of the posterior mean's policy, and what its values did on the way."""
    env, spans = gym.make("MountainCar-v0"), []
    basis = rlsvi.bases.Fourier(order=order)
    agent = rlsvi.BoundedRLSVI(basis=basis, sigma=sigma, bounds=bounds, seed=seed)
    agent.learn(
        env, episodes=episodes, on_episode=lambda a, _: spans.append(a.planned.span if a.planned else (0, 0))
    )
    returns = rlsvi.evaluate(agent, env, episodes=20, seed=FRESH).returns
    row = {"order": order, "sigma": sigma, "seed": seed, "mean": float(np.mean(returns))}
    row |= {"least": float(np.min(spans)), "most": float(np.max(spans)), "recoveries": agent.recoveries}
    return row | {"last_change": agent.planned.change, "finite": bool(np.isfinite(spans).all())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--unbounded", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    bounds, rows = None if options.unbounded else "attainable", []
    for order, sigma, seed in product(ORDERS, SIGMAS, range(options.seeds)):
        rows.append(run(order, sigma, seed, options.episodes, bounds))
        print(json.dumps(rows[-1]), flush=True)
    print("\nmedian return of the seeds after learning, and runs in which values were out of hand")
    print("sigma".ljust(8) + "".join(f"order {order}".rjust(16) for order in ORDERS))
    for sigma in SIGMAS:
        cells = [[row for row in rows if (row["order"], row["sigma"]) == (order, sigma)] for order in ORDERS]
        texts = [f"{np.median([r['mean'] for r in c]):.0f}, {sum(r['recoveries'] > 0 for r in c)}" for c in cells]
        print(f"{sigma:<8g}" + "".join(text.rjust(16) for text in texts))
    recovered, finite = (sum(map(bool, (row[key] for row in rows))) for key in ("recoveries", "finite"))
    print(f"{recovered} of {len(rows)} runs had to recover, in {finite} all values are finite")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "divergence.json").write_text(json.dumps({"options": str(options), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
