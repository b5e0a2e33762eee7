"""Large logs, side by side: `python -m benchmarks.logs --rows 100000 1000000 10000000`.

A log of 10 numbers and 4 actions is written to Parquet files in a temporary folder, and removed in the end. Every
method runs in a process of its own, on one thread, so that its time and peak memory are its own. A sweep is one
pass of value iteration with 256 features per action; for CQL it is one epoch of gradient steps. The floor is to
read the columns once. Needs scikit-learn, and d3rlpy for CQL: methods that are not installed are left out.
"""

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl

NUMBERS, ACTIONS, FEATURES, GAMMA, RIDGE = 10, 4, 256, 0.99, 0.1
LENGTH = 1000  # steps of an episode
FILE = 500_000  # rows of a file
CHUNK = 65_536
BATCH = 1024  # of a gradient step
IN_MEMORY = 10**6  # rows up to which the features of all rows are held in memory
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")} | {"POLARS_MAX_THREADS": "1"}


def write_log(folder, rows, seed=0):
    """Episodes of a noisy linear system that actions push, and whose rewards fall with the distance from 0."""
    rng = np.random.default_rng(seed)
    push = rng.normal(size=(ACTIONS, NUMBERS)) / 3
    for first in range(0, rows, FILE):
        count = min(FILE, rows - first) // LENGTH
        action = rng.integers(ACTIONS, size=(count, LENGTH))
        x = np.zeros((count, LENGTH + 1, NUMBERS), np.float32)
        x[:, 0] = rng.normal(size=(count, NUMBERS))
        for t in range(LENGTH):
            x[:, t + 1] = 0.95 * x[:, t] + push[action[:, t]] + 0.2 * rng.normal(size=(count, NUMBERS))
        before, after = x[:, :-1].reshape(-1, NUMBERS), x[:, 1:].reshape(-1, NUMBERS)
        columns = {
            "episode": np.repeat(first // LENGTH + np.arange(count), LENGTH),
            "step": np.tile(np.arange(LENGTH), count),
            "action": action.ravel(),
            "reward": np.exp(-(after.astype(np.float64) ** 2).mean(axis=1)),
            "terminated": np.zeros(count * LENGTH, bool),
            "truncated": np.tile(np.arange(LENGTH) == LENGTH - 1, count),
        }
        columns |= {f"observation_{i}": before[:, i] for i in range(NUMBERS)}
        columns |= {f"next_observation_{i}": after[:, i] for i in range(NUMBERS)}
        pl.DataFrame(columns).write_parquet(Path(folder) / f"{first:09}.parquet")


class Clock:
    """The seconds of the processor and of the wall that parts of a method took."""

    def __init__(self):
        self.parts = {"once": [], "sweep": []}

    @contextmanager
    def __call__(self, part):
        """Context manager that times a part."""
        begin = time.process_time(), time.perf_counter()
        yield
        self.parts[part].append((time.process_time() - begin[0], time.perf_counter() - begin[1]))


def chunks(folder):
    """The log in chunks, as frames."""
    scan = pl.scan_parquet(sorted(Path(folder).glob("*.parquet")))
    rows = scan.select(pl.len()).collect().item()
    return (scan.slice(first, CHUNK).collect() for first in range(0, rows, CHUNK))


def numbers(frame, name):
    return frame.select(f"{name}_{i}" for i in range(NUMBERS)).to_numpy()


def reading(folder, sweeps, clock):
    """The floor: every column, once per sweep."""
    for _ in range(sweeps):
        with clock("sweep"):
            rows = sum(frame.height for frame in chunks(folder))
            assert rows > 0


def ours(folder, sweeps, clock):
    """`fit(log, env, chunk=..)`: waves, with a block of weights per action."""
    from gymnasium.spaces import Box, Discrete

    import rlsvi
    from rlsvi.agents.practice import bounded_rlsvi as passes

    plain = passes.all_chunks

    @contextmanager
    def timed(stream, executor):
        with plain(stream, executor) as each:

            def pass_of(function, *arguments):
                with clock("sweep" if function.__name__ == "products_of" else "once"):
                    yield from each(function, *arguments)

            yield pass_of

    passes.all_chunks = timed
    passes.BoundedLearner.SWEEPS, passes.BoundedLearner.TOLERANCE = sweeps - 1, 0.0
    env = rlsvi.envs.Spaces(Box(-np.inf, np.inf, (NUMBERS,), np.float32), Discrete(ACTIONS))
    basis = rlsvi.bases.Waves(features=FEATURES - NUMBERS - 1)
    agent = rlsvi.BoundedRLSVI(basis=basis, gamma=GAMMA, lam=RIDGE, seed=0)
    agent.fit(folder, env, chunk=CHUNK, progress=False)
    assert agent.planned.sweeps == sweeps - 1


def sampler(folder):
    """Features of scikit-learn for standardized numbers."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    made = make_pipeline(StandardScaler(), RBFSampler(gamma=0.05, n_components=FEATURES, random_state=0))
    return made.fit(numbers(next(chunks(folder)), "observation"))


def ridge(folder, sweeps, clock):
    """RBFSampler and Ridge: exact, with the features of all rows in memory."""
    from sklearn.linear_model import Ridge

    features, models = sampler(folder), [Ridge(alpha=RIDGE) for _ in range(ACTIONS)]
    with clock("once"):
        frame = pl.concat(chunks(folder))
        action, reward = frame["action"].to_numpy(), frame["reward"].to_numpy()
        phi, then = (features.transform(numbers(frame, name)) for name in ("observation", "next_observation"))
        del frame
    for k in range(sweeps):
        with clock("sweep"):
            V = np.max([model.predict(then) for model in models], axis=0) if k else 0.0
            b = reward + GAMMA * V
            for a, model in enumerate(models):
                model.fit(phi[action == a], b[action == a])


def gradient(folder, sweeps, clock):
    """RBFSampler and SGDRegressor.partial_fit, chunk by chunk: approximate, with bounded memory."""
    from sklearn.linear_model import SGDRegressor

    features, models = sampler(folder), [SGDRegressor(random_state=0) for _ in range(ACTIONS)]
    for k in range(sweeps):
        with clock("sweep"):
            for frame in chunks(folder):
                action, reward = frame["action"].to_numpy(), frame["reward"].to_numpy()
                phi, then = (
                    features.transform(numbers(frame, name)) for name in ("observation", "next_observation")
                )
                V = np.max([model.predict(then) for model in models], axis=0) if k else 0.0
                b = reward + GAMMA * V
                for a, model in enumerate(models):
                    model.partial_fit(phi[action == a], b[action == a])


def cql(folder, sweeps, clock):
    """d3rlpy's discrete CQL with one hidden layer: an epoch of gradient steps, and not a regression."""
    import d3rlpy
    import torch

    torch.set_num_threads(1)
    with clock("once"):
        frame = pl.concat(chunks(folder))
        data = d3rlpy.dataset.MDPDataset(
            numbers(frame, "observation"),
            frame["action"].to_numpy()[:, None],
            frame["reward"].to_numpy().astype(np.float32)[:, None],
            frame["terminated"].to_numpy().astype(np.float32),
            timeouts=frame["truncated"].to_numpy().astype(np.float32),
            action_space=d3rlpy.ActionSpace.DISCRETE,
            action_size=ACTIONS,
        )
        rows = frame.height
    encoder = d3rlpy.models.encoders.VectorEncoderFactory([FEATURES])
    learner = d3rlpy.algos.DiscreteCQLConfig(batch_size=BATCH, gamma=GAMMA, encoder_factory=encoder).create("cpu")
    steps, silent = rows // BATCH, d3rlpy.logging.NoopAdapterFactory()
    with clock("sweep"):
        learner.fit(data, n_steps=steps, n_steps_per_epoch=steps, logger_adapter=silent, show_progress=False)


METHODS = {
    "reading the columns": (reading, "polars"),
    "rlsvi, in chunks": (ours, "rlsvi"),
    "scikit-learn, RBFSampler + Ridge": (ridge, "sklearn"),
    "scikit-learn, RBFSampler + SGDRegressor": (gradient, "sklearn"),
    "d3rlpy, DiscreteCQL": (cql, "d3rlpy"),
}


def measured(name, folder, sweeps):
    """Run a method in this process; what it took."""
    clock = Clock()
    METHODS[name][0](folder, sweeps, clock)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # megabytes, on Linux
    times = clock.parts["sweep"]
    sweep = times[1:] or times  # the first one also compiles, and has no values yet
    total = [sum(part) for part in zip(*clock.parts["once"], strict=True)] or [0.0, 0.0]
    return {"once": total, "sweep": np.median(sweep, axis=0).tolist(), "peak": peak}


def in_own_process(name, folder, sweeps):
    command = [sys.executable, "-m", "benchmarks.logs", "--one", name, "--folder", folder, "--sweeps", str(sweeps)]
    done = subprocess.run(command, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1][:120] if done.stderr.strip() else done.returncode}
    return json.loads(done.stdout.splitlines()[-1])


def row_of(rows, name, found, floor):
    if "error" in found:
        return f"| {rows:,} | {name} | {found['error']} | | | |"
    (once, once_wall), (sweep, wall) = found["once"], found["sweep"]
    times = f"{once:.1f} ({once_wall:.1f}) | {sweep:.2f} ({wall:.2f})"
    return f"| {rows:,} | {name} | {times} | {sweep / floor:.1f} | {found['peak']:,.0f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6])
    parser.add_argument("--sweeps", type=int, default=4)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--one", choices=METHODS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measured(given.one, given.folder, given.sweeps)))
        return
    print("| transitions | method | once: CPU s (wall) | a sweep: CPU s (wall) | sweeps of the floor | peak MB |")
    print("|---|---|---|---|---|---|", flush=True)
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            write_log(folder, rows)
            floor = in_own_process("reading the columns", folder, given.sweeps)["sweep"][0]
            for name in given.methods:
                if importlib.util.find_spec(METHODS[name][1]) is None:
                    print(f"| {rows:,} | {name} | not installed | | | |", flush=True)
                elif METHODS[name][0] is ridge and rows > IN_MEMORY:
                    held = 2 * 4 * FEATURES * rows / 1e9
                    print(f"| {rows:,} | {name} | not run: its features take {held:.0f} GB | | | |", flush=True)
                else:
                    print(row_of(rows, name, in_own_process(name, folder, given.sweeps), floor), flush=True)


if __name__ == "__main__":
    main()
