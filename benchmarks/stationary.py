"""One regression over the last 10^5 transitions of Tetris, against merely reading its data. One core.

    python -m benchmarks.stationary [--out DIR]

The data are of the shape of Tetris: 22 features of one byte, 9 to 34 next placements, 23.1 on average. They are
synthetic, with weights made up, and those of games that an agent has learned from, with its own weights: how many
placements a regression can pass over, and so its time, depends on both. All times are minima of several runs in
one process, in time of the processor, so that a busy machine disturbs them little.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np

from rlsvi.agents import StationaryRLSVI
from rlsvi.agents.stationary import (
    FINE,
    begin_transition,
    draw,
    empty_ring,
    new_work,
    pairs_of,
    plan,
    precision_factors,
    regress,
    set_weights,
    targets,
)
from rlsvi.core.compile import compiled
from rlsvi.core.random import stream
from rlsvi.core.regression import Model
from rlsvi_paper.tetris import Tetris, rules
from rlsvi_paper.tetris.loop import simulate_tetris

PLACEMENTS = (9, 17, 17, 17, 34, 34, 34)  # of the seven pieces
FEATURES, ACTIONS = 22, 34
# A player of some skill: heights, differences, maximum height, holes, constant. Every sign and size is plausible.
THETA = np.array([-0.1] * 10 + [-0.4] * 9 + [-0.3, -2.0, 20.0])


@compiled
def read(data: np.ndarray) -> np.uint64:
    """The sum of all bytes."""
    total = np.uint64(0)
    for i in range(data.size):
        total += data[i]
    return total


def boards(rng, n):
    """Features of n boards of one state, which differ in a few columns."""
    heights = np.repeat(rng.integers(0, 14, size=(1, 10)), n, axis=0)
    column = rng.integers(0, 8, size=n)
    for j in range(3):
        heights[np.arange(n), column + j] += rng.integers(0, 4, size=n)
    holes = rng.integers(0, 20) + rng.integers(0, 4, size=n)
    differences = np.abs(np.diff(heights, axis=1))
    features = [heights, differences, heights.max(axis=1)[:, None], holes[:, None], np.ones((n, 1))]
    return np.hstack(features).astype(np.uint8)


def filled(memory, dtype, seed=0):
    """A ring of so many transitions, which has turned once by a third."""
    rng = np.random.default_rng(seed)
    ring = empty_ring(ACTIONS, 1, np.ones(FEATURES), dtype, False, memory, room=memory)
    row = np.zeros(FEATURES, ring.gram.dtype)
    samples = [boards(rng, ACTIONS).astype(dtype) for _ in range(5000)]
    pieces = rng.choice(PLACEMENTS, size=memory * 4 // 3)
    for n in pieces:
        x = samples[rng.integers(len(samples))]
        p = begin_transition(ring, x[0], 0, float(rng.integers(0, 3)), n, row)
        assert p >= 0
        ring.next_x[:, p : p + n] = x[:n].T
    return ring


def fastest(work, repeats=15):
    """The smallest processor time of several calls, in milliseconds."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.thread_time()
        work()
        times.append(time.thread_time() - begin)
    return 1e3 * min(times)


def learned(memory, seed=0):
    """The ring of an agent that has learned so many transitions or more, and the weights of its last game."""
    agent = StationaryRLSVI(basis=Tetris(), form="afterstate", gamma=0.99, memory=memory, seed=seed)
    while agent.steps < memory:
        simulate_tetris(agent, rules(), 1)
    print(f"{agent.episodes} games of {agent.steps:,} pieces", flush=True)
    return agent._learner.mind.ring, agent._learner.mind.theta[0].copy()


def measure(ring, weights):
    """Milliseconds of a whole regression, of its parts, and of reading."""
    work, noise = new_work(ring, ACTIONS), stream(0)
    model = Model(np.zeros((1, FEATURES)), 1.0, 1.0, 0.0, 0.0, 0.99)
    unknown = model._replace(shape=1.0, scale=1.0)
    data = np.ascontiguousarray(ring.next_x[:, : pairs_of(ring)]).reshape(-1).view(np.uint8)
    theta = np.empty((1, FEATURES))

    def regression(model):
        theta[0] = weights
        assert plan(ring, model, work, theta, True, 1, noise) == FINE

    def start():
        theta[0] = weights
        set_weights(work.w, ring.units, theta, 0.99)

    start()
    assert precision_factors(ring, 1.0, work)
    return {
        "MB": data.size / 1e6,
        "read": fastest(lambda: read(data)),
        "regression": fastest(lambda: regression(model)),
        "regression, unknown noise": fastest(lambda: regression(unknown)),
        "targets": fastest(lambda: targets(ring, work, 0.99)),
        "A'b and solve": fastest(lambda: regress(ring, model, work, theta)),
        "factor": fastest(lambda: precision_factors(ring, 1.0, work)),
        "draw": fastest(lambda: draw(ring, model, work, noise)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--memory", type=int, default=100_000)
    options = parser.parse_args()
    result = {"machine": platform.machine(), "memory": options.memory}
    for name, make in {
        "uint8": lambda: (filled(options.memory, np.uint8), THETA),
        "float64": lambda: (filled(options.memory, np.float64), THETA),
        "uint8, real games": lambda: learned(options.memory),
    }.items():
        times = result[name] = measure(*make())
        print(f"{name}: {options.memory:,} transitions, {times['MB']:.0f} MB of next features")
        for what, value in times.items():
            if what != "MB":
                print(f"  {what:<28}{value:>9.3f} ms{value / times['read']:>8.2f} x reading", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "stationary.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
