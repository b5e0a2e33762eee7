"""Logs that are read in chunks: against plain normal equations, in bounded memory, and refused if they are bad."""

import pickle
import sys
import weakref

import numpy as np
import polars as pl
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete

import rlsvi
from contract.environments import Drift, numbered
from contract.state import assert_equal, everything
from rlsvi import bases
from rlsvi.agents.practice import chunks as log_learner
from rlsvi.agents.practice.bounded_rlsvi import BoundedLearner
from rlsvi.agents.practice.chunks import returns_in
from rlsvi.agents.practice.regression import FeatureRegression, returns_to_go
from rlsvi.bases.layout import grown, ranges_of, seen_in
from rlsvi.core.archive import ArchiveError, opened
from rlsvi.core.regression import FactorError
from rlsvi.offline.stream import Stream, _compute, sources


def env():
    return Drift(horizon=20)


@pytest.fixture(scope="module")
def log():
    return rlsvi.record(env(), None, 30, seed=4)


def agent(**changes):
    return rlsvi.BoundedRLSVI(**{"seed": 0, "basis": bases.Polynomial(degree=2), **changes})


@pytest.fixture(autouse=True)
def _few_sweeps(monkeypatch):
    monkeypatch.setattr(BoundedLearner, "SWEEPS", 10)


def fitted(log, chunk=50, **changes):
    return agent(**changes).fit(log, env(), chunk=chunk)


# ---- what is computed -------------------------------------------------------------------------------------


def twin(log, chunk, lookup, bounds, sweeps, gamma=0.99, ridge=0.1, alike=0.5):
    """Fitted Q iteration, row by row and with the whole precision matrix."""
    phi, then = (lookup.features(log[name].to_numpy()) for name in ("observation", "next_observation"))
    legal, action, (T, d) = log["next_mask"].to_list(), log["action"].to_list(), phi.shape
    A, trace = len(legal[0]), lookup.traits.trace
    X = np.zeros((T, A * d))
    for i in range(T):
        X[i, action[i] * d : (action[i] + 1) * d] = phi[i]
    prior = ridge * np.kron(np.linalg.inv((1 - alike) * np.eye(A) + alike * np.ones((A, A))), np.eye(d))
    last = [i + 1 == T or log["episode"][i] != log["episode"][i + 1] for i in range(T)]
    Q = np.zeros((T, A))
    for _ in range(sweeps):
        b = np.zeros(T)
        for i in reversed(range(T)):
            V = np.clip(max(q for q, allowed in zip(Q[i], legal[i], strict=True) if allowed), *bounds)
            V = 0.0 if log["terminated"][i] else V
            ends = last[i] or (i + 1) % chunk == 0 or i + 1 == T
            later = V if ends or (b[i + 1] < V and not lookup.centred) else b[i + 1]
            b[i] = log["reward"][i] + gamma * ((1 - trace) * V + trace * later)
        theta = np.linalg.solve(X.T @ X + prior, X.T @ b).reshape(A, d)
        Q = then @ theta.T
    return theta, X.T @ X + prior, ((b - X @ theta.ravel()) ** 2).sum() + theta.ravel() @ prior @ theta.ravel()


@pytest.mark.parametrize("basis", [bases.Polynomial(degree=2), bases.Waves(features=5, length=1.0)])
@pytest.mark.parametrize("chunk", [1, 7, 10_000])
def test_the_weights_are_those_of_plain_normal_equations(log, basis, chunk, monkeypatch):
    monkeypatch.setattr(BoundedLearner, "TOLERANCE", 0.0)
    log = log.head(60 if chunk > 1 else 20)  # the last episode just stops
    found = fitted(log, chunk, basis=basis, bounds=(0.5, 1.6), gamma=0.6)
    assert found.planned.sweeps == 10
    assert 0 < found.planned.at_bounds < 1
    theta, _, misfit = twin(log, chunk, found._learner.lookup, (0.5, 1.6), 10, gamma=0.6)
    assert np.allclose(found.planned.theta, theta, rtol=1e-9, atol=1e-9)
    unit = np.exp(np.log(log["reward"].to_numpy()[log["reward"].to_numpy() > 0]).mean())
    assert found._learner.rate == pytest.approx(unit**2 + misfit / 2)
    assert found.steps == log.height
    assert found.episodes == log["episode"].n_unique()


def test_samples_have_the_covariance_of_the_last_regression(log, monkeypatch):
    monkeypatch.setattr(BoundedLearner, "TOLERANCE", 0.0)
    known = {"sigma": 0.3, "lam": 0.1 / 0.3**2}  # the ridge is .1
    found = fitted(log.head(60), 7, basis=bases.Polynomial(degree=1), **known)
    _, P, _ = twin(log.head(60), 7, found._learner.lookup, (0.0, 1.0), 1)
    drawn = np.array([found._plan(False, first=True).theta.ravel() for _ in range(4000)])
    expected = 0.09 * np.linalg.inv(P)
    assert np.allclose(drawn.mean(axis=0), found.planned.theta.ravel(), atol=0.05)
    assert np.allclose(np.cov(drawn.T), expected, atol=0.1 * expected.max())
    unknown = fitted(log, 50)
    sigmas = [unknown._plan(False, first=True).sigma for _ in range(300)]
    assert np.mean(sigmas) == pytest.approx(unknown.planned.sigma, rel=0.02)
    assert np.std(sigmas) > 0


def test_one_chunk_gives_what_learning_from_the_log_gives(log, monkeypatch):
    """Where the features are the same: their bounds are given."""
    monkeypatch.setattr(BoundedLearner, "SWEEPS", 200)
    monkeypatch.setattr(BoundedLearner, "TOLERANCE", 1e-12)
    basis = bases.of(env(), bases.Polynomial(degree=2), low=[-2, 0], high=[2, 1])
    given = {"basis": basis, "repeat": 1}
    lived, read = agent(**given).fit(log, env()), fitted(log, 10**6, **given)
    assert np.allclose(lived._plan(True).theta, read.planned.theta, atol=1e-6)
    assert np.allclose(lived._learner.regression.sums, read._learner.regression.sums, rtol=1e-12)


def test_there_is_no_learning_curve_of_a_log_in_chunks(log):
    with pytest.raises(RuntimeError, match="read in chunks keeps none"):
        fitted(log).plot()
    with pytest.raises(RuntimeError, match="call learn first"):
        agent().plot()


def test_returns_are_followed_through_all_chunks(log):
    history = agent(repeat=1).fit(log, env())._learner.history
    expected, chosen = returns_to_go(history, 0.9), np.array([0, 6, 7, 100])
    for chunk in (1, 7, 10**6):
        least, most, found = returns_in(Stream(log, env(), None, chunk), 0.9, chosen)
        assert (least, most) == (expected.min(), expected.max())
        assert np.array_equal(found, expected[chosen])


@pytest.mark.parametrize("basis", [bases.Waves(features=70), bases.Fourier(order=2), bases.Radial(features=9)])
def test_features_are_scaled_by_all_rows(log, basis):
    last = log.filter((pl.col("episode").diff(-1) != 0) | pl.col("episode").is_last_distinct())
    ended = last.filter(~pl.col("terminated"))["next_observation"].to_numpy()
    x = np.concatenate([log["observation"].to_numpy(), ended])
    found, whole = (fitted(log, chunk, basis=basis)._learner.lookup for chunk in (7, 10**6))
    assert np.allclose(found.ranges, whole.ranges, rtol=1e-12)
    assert found.functions == whole.functions
    if found.centred:
        assert np.allclose(found.ranges, found.traits.spread(found.ranges, seen_in(x)), rtol=1e-12)
    else:
        assert np.allclose(found.ranges, grown(ranges_of([-4, -4], [4, 4], observed=True), x))


def test_nothing_is_kept_but_one_chunk(log, monkeypatch):
    alive, most, read = weakref.WeakValueDictionary(), [], Stream.read

    def watched(stream, k):
        chunk = read(stream, k)
        alive[id(chunk.x)] = chunk.x
        most.append(sum(len(x) for x in alive.values()))
        return chunk

    monkeypatch.setattr(Stream, "read", watched)
    found = fitted(log, 20)
    assert len(most) == (2 + found.planned.sweeps + 1) * -(-log.height // 20)
    assert max(most) <= 2 * (20 + 20)  # of two chunks, each with what followed at the ends of episodes


def test_the_order_of_files_does_not_matter_and_columns_have_names(log, tmp_path):
    for name, part in (("b", log[:100]), ("a", log[100:250]), ("c", log[250:])):
        part.write_parquet(tmp_path / f"{name}.parquet")
    log[:0].write_parquet(tmp_path / "empty.parquet")
    reference = fitted(log).planned.theta
    flat = log.with_columns(
        pl.col(f"{name}observation").arr.get(i).alias(f"{name}observation_{i}")
        for name in ("", "next_")
        for i in (0, 1)
    ).drop("observation", "next_observation")
    renamed = log.rename({"reward": "points"}).lazy()
    assert np.array_equal(fitted(tmp_path).planned.theta, reference)
    assert np.array_equal(fitted(flat.lazy()).planned.theta, reference)
    assert np.array_equal(
        agent().fit(renamed, env(), chunk=50, columns={"reward": "points"}).planned.theta, reference
    )


def test_spaces_of_other_kinds():
    """Whole numbers as zeros and ones, with actions and states that do not begin with 0."""
    rng, n = np.random.default_rng(0), 200
    state = rng.integers(5, 8, n + 1)
    columns = {
        "episode": [0] * n,
        "step": range(n),
        "action": rng.integers(2, 4, n),
        "reward": 1.0 * (state[1:] == 6),
    }
    columns |= {"observation": state[:-1], "next_observation": state[1:], "terminated": False, "truncated": False}
    frame = pl.DataFrame({name: pl.Series(np.broadcast_to(v, n)) for name, v in columns.items()})
    spaces = rlsvi.envs.Spaces(Discrete(3, start=5), Discrete(2, start=2))
    one = rlsvi.BoundedRLSVI(seed=0, gamma=0.5, basis=bases.Fourier()).fit(frame, spaces, chunk=30)
    assert one.planned.theta.shape == (2, 3)
    assert one.predict(6, deterministic=True)[0] in (2, 3)
    pairs = frame.with_columns(
        pl.concat_list(pl.col(name) - 5, pl.lit(1)).alias(name) for name in ("observation", "next_observation")
    )
    spaces = rlsvi.envs.Spaces(MultiDiscrete([3, 2]), Discrete(2, start=2))
    two = rlsvi.BoundedRLSVI(seed=0, gamma=0.5, basis=bases.Fourier()).fit(pairs, spaces, chunk=30)
    assert np.allclose(two.planned.theta[:, [1, 3, 5]], one.planned.theta)


def test_values_that_are_not_finite_are_refused(log, monkeypatch):
    monkeypatch.setattr(FeatureRegression, "solve", lambda self, y: np.full_like(y, np.nan))
    with pytest.raises(FactorError, match="not finite"):
        fitted(log, 300)


# ---- what the agent can do afterwards ---------------------------------------------------------------------


def test_it_acts_and_is_saved(log, tmp_path):
    for basis in (bases.Waves(features=20), bases.Fourier(order=2)):
        found = fitted(log, basis=basis)
        found.save(tmp_path / "agent.rlsvi")
        loaded, x = rlsvi.load(tmp_path / "agent.rlsvi"), [0.3, 0.5]
        assert_equal(everything(loaded, tmp_path), everything(found, tmp_path))
        assert [loaded.predict(x) for _ in range(9)] == [found.predict(x) for _ in range(9)]
        assert loaded.predict(x, deterministic=True, action_mask=[0, 1, 0])[0] == 1
        loaded.export(tmp_path / "policy.npz")
        assert np.array_equal(np.load(tmp_path / "policy.npz")["weights"], found.planned.theta)
        assert rlsvi.evaluate(loaded, env(), 3, seed=0, progress=False).returns.shape == (3,)


def _change_sums(learner):
    learner.regression.sums[0, 0, 1] = 99.0


def _negate_sums(learner):
    learner.regression.sums[0] = -1e6 * np.eye(learner.regression.dim)


def _negate_ridge(learner):
    learner.ridge = -1.0


def _cut_weights(learner):
    learner.theta = learner.theta[:, :3]


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (_change_sums, "its sums are not those of features"),
        (_negate_sums, "not positive definite"),
        (_negate_ridge, "its noise must be positive"),
        (_cut_weights, "theta is"),
    ],
)
def test_damaged_files(log, tmp_path, damage, match):
    found = fitted(log)
    damage(found._learner)
    found.save(tmp_path / "agent.rlsvi")
    with pytest.raises(ArchiveError, match=match):
        rlsvi.load(tmp_path / "agent.rlsvi")


def test_a_file_contains_no_data(log, tmp_path):
    found = fitted(log)
    found.save(tmp_path / "agent.rlsvi")
    with opened(tmp_path / "agent.rlsvi") as file:
        sizes = {name: file.take_any(name).size for name in file.header["arrays"]}
    assert max(sizes.values()) == found._learner.regression.sums.size < log.height


def test_more_is_refused(log, tmp_path):
    found = fitted(log)
    before = everything(found, tmp_path)
    for more in (
        lambda: found.learn(env(), episodes=1),
        lambda: found.fit(log, env()),
        lambda: found.fit(log, env(), chunk=50),
    ):
        with pytest.raises(ValueError, match="clone"):
            more()
        assert_equal(everything(found, tmp_path), before)
    with pytest.raises(ValueError, match="has learned nothing yet"):
        agent().learn(env(), episodes=2).fit(log, env(), chunk=50)
    assert found.clone().learn(env(), episodes=2).episodes == 2


# ---- what is refused --------------------------------------------------------------------------------------


def at(log, row, **values):
    """The log with other values in one row."""
    for name, value in values.items():
        given = log[name].to_list()
        given[row] = value
        log = log.with_columns(pl.Series(name, given, dtype=log[name].dtype))
    return log


def refuses(log, match, tmp_path, error=ValueError, make=agent, chunk=10, env=env, **options):
    new = make()
    before = everything(new, tmp_path)
    with pytest.raises(error, match=match):
        new.fit(log, env() if callable(env) else env, chunk=chunk, **options)
    assert_equal(everything(new, tmp_path), before)


@pytest.mark.parametrize("place", [3, 9, 0])  # within a chunk of 10 rows, at its end and at its beginning
def test_bad_rows(log, place, tmp_path):
    within = (log["step"][1:-1] > 0).to_numpy() & (log["step"][2:] > 1).to_numpy()
    row = next(i for i in range(1, log.height - 1) if within[i - 1] and i % 10 == place)
    refuses(at(log, row, reward=np.nan), f"column 'reward', row {row}: NaN", tmp_path)
    refuses(at(log, row, action=3), f"column 'action', row {row}: actions are 0 to 2", tmp_path)
    refuses(at(log, row, observation=[np.inf, 0.0]), f"column 'observation', row {row}: NaN, infinity", tmp_path)
    refuses(at(log, row, terminated=None), f"column 'terminated', row {row}: there is no value", tmp_path)
    refuses(at(log, row, terminated=True), f"column 'step', row {row + 1}: it comes after the end", tmp_path)
    gap = log.filter(pl.Series(np.arange(log.height) != row))
    refuses(gap, f"column 'step', row {row}: step .* of episode .* is missing", tmp_path)
    refuses(at(log, row, step=-1), f"column 'step', row {row}: steps count from 0", tmp_path)
    twice = at(log, row, step=log["step"][row - 1])
    refuses(twice, f"column 'step', row {row}: this step of the episode is there twice", tmp_path)
    refuses(at(log, row, next_observation=[0.1, 0.1]), f"'next_observation', row {row}: it is not", tmp_path)
    mask = [True] * 3
    mask[log["action"][row]] = False
    refuses(at(log, row, mask=mask), f"column 'action', row {row}: the mask does not allow", tmp_path)
    refuses(at(log, row, mask=[False] * 3), f"column 'mask', row {row}: the mask allows no action", tmp_path)


def test_the_order_of_rows(log, tmp_path):
    refuses(log.reverse(), "must be in the order of episodes and steps: sort the log once", tmp_path)
    refuses(log[1:], "column 'step', row 0: step .* of episode .* is missing", tmp_path)
    second = int(np.argmax(log["episode"].to_numpy() == 1))
    swapped = pl.concat([log[second:], log[:second]])
    refuses(swapped, f"column 'episode', row {log.height - second}: rows that are read in chunks", tmp_path)
    assert fitted(log.reverse().lazy().sort("episode", "step")).steps == log.height


@pytest.mark.parametrize(
    "column", ["episode", "observation", "action", "reward", "next_observation", "terminated"]
)
def test_columns_that_are_missing_or_of_another_type(log, column, tmp_path):
    refuses(log.drop(column), f"no column '{column}', it has", tmp_path)
    wrong = log.with_columns(pl.lit(0.5 if column == "episode" else "high").alias(column))
    refuses(wrong, f"column '{column}': it holds (Float64|String), not", tmp_path)


def test_files_that_are_cut_or_differ(log, tmp_path):
    file, folder = tmp_path / "log.parquet", tmp_path / "folder"
    log.write_parquet(file)
    data = file.read_bytes()
    for size in (0, len(data) // 2, len(data) - 1):
        file.write_bytes(data[:size])
        refuses(file, "log.parquet cannot be read, is it a whole Parquet file", tmp_path)
    damaged = bytearray(data)
    damaged[100:2000] = bytes(1900)
    file.write_bytes(damaged)
    refuses(file, "cannot be read", tmp_path)
    refuses(tmp_path / "none.parquet", "there is no log", tmp_path, FileNotFoundError)
    folder.mkdir()
    refuses(folder, "no Parquet or CSV file in the folder", tmp_path, FileNotFoundError)
    log[:50].write_parquet(folder / "a.parquet")
    log[50:].with_columns(pl.col("reward").cast(pl.Float32)).write_parquet(folder / "b.parquet")
    refuses(folder, "b.parquet has the columns .* the same columns in the same order", tmp_path)
    refuses(log[:0], "the log is empty", tmp_path)


def test_a_log_that_changes_while_it_is_read(log, tmp_path, monkeypatch):
    file = tmp_path / "log.parquet"
    log.write_parquet(file)
    sums = log_learner.gram_of

    def shortened(*arguments):
        log[:35].write_parquet(file)
        return sums(*arguments)

    monkeypatch.setattr(log_learner, "gram_of", shortened)
    refuses(file, f"the log had {log.height} rows, and now only 35|cannot be read", tmp_path)


def test_arguments(log, tmp_path):
    refuses(log, "chunk must be a whole number of at least 1", tmp_path, chunk=0)
    refuses(log, "executor must be None", tmp_path, TypeError, executor=4)
    refuses(log, "no Ray cluster answers at 'somewhere'", tmp_path, ConnectionError, executor="somewhere")
    refuses(log, "give the environment by fit", tmp_path, env=None)
    refuses(log, "leave out repeat= and memory=", tmp_path, make=lambda: agent(repeat=4))
    refuses(log, "leave out repeat= and memory=", tmp_path, make=lambda: agent(memory=40))
    table = rlsvi.record(numbered(), None, 12, seed=4)
    refuses(table, "use rlsvi.DiscountedPSRL", tmp_path, make=rlsvi.BoundedRLSVI, env=numbered)
    own = lambda: agent(basis=bases.StateFeatures(lambda x: np.ones(2)))  # noqa: E731
    refuses(log, "chunk= is for features", tmp_path, make=own)
    other = rlsvi.envs.Spaces(Box(-1, 1, (3,)), Discrete(3))
    refuses(log, "column 'observation': there must be 3 numbers", tmp_path, env=other)


def test_what_a_worker_receives(monkeypatch):
    """It must have the same sources, and finds the modules that the sender finds."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert _compute((sources(), ["/nowhere"]), pickle.dumps((pow, (3,))), 2) == 8
    assert sys.path[-1] == "/nowhere"
    with pytest.raises(RuntimeError, match="other sources of rlsvi"):
        _compute(("other", []), pickle.dumps((len, ())), "a chunk")


def test_an_interrupt_leaves_an_agent_that_can_be_fitted(log, monkeypatch):
    reference, new, calls = fitted(log).planned.theta, agent(), []
    products = log_learner.sweep_log

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return products(*arguments)

    monkeypatch.setattr(log_learner, "sweep_log", interrupted)
    with pytest.raises(KeyboardInterrupt):
        new.fit(log, env(), chunk=50)
    assert new.steps == 0
    assert np.array_equal(new.fit(log, env(), chunk=50).planned.theta, reference)


@pytest.mark.parametrize("given", [{"chunk": 100}, {"executor": "ray"}])
def test_agents_that_read_a_log_as_a_whole_name_the_one_that_does_not(given):
    agent = rlsvi.PSRL(seed=0)
    with pytest.raises(ValueError, match=r"PSRL reads a log as a whole.*use rlsvi\.BoundedRLSVI"):
        agent.fit("log.parquet", **given)
    assert agent.steps == 0
