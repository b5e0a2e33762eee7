"""`agent.fit(log)`: learning from a log is learning from life, bit for bit."""

import gzip
import warnings
from types import SimpleNamespace

import gymnasium
import numpy as np
import polars as pl
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Text, Tuple

import rlsvi
from contract.cases import BY_NAME, predictions
from contract.environments import drifting, numbered
from contract.interrupts import every_line, interrupted, some
from contract.state import assert_equal, everything
from rlsvi.agents.tabular.table import TabularAgent
from rlsvi.offline.recorder import Recorder
from rlsvi.offline.replay import Replay, replay_of

NAMES = list(BY_NAME)


def lived(case, amount, **changes):
    """An agent that has learned, and the log of it."""
    env = Recorder(case.env())
    return case.learn(case.make(**changes), amount, env), env.frame()


@pytest.mark.parametrize("name", NAMES)
def test_fitting_a_log_is_having_lived_it(name, tmp_path):
    case = BY_NAME[name]
    agent, log = lived(case, 9)
    log = log.sample(fraction=1.0, shuffle=True, seed=3)  # the order of rows does not matter
    fitted = case.make().fit(log, case.env())
    assert fitted.steps == agent.steps > 0
    assert_equal(everything(fitted, tmp_path), everything(agent, tmp_path))
    assert predictions(case, fitted) == predictions(case, agent)
    case.learn(fitted, 3)
    case.learn(agent, 3)
    if not case.endless:  # one of them goes on in a new environment, the other where it was
        assert_equal(everything(fitted, tmp_path), everything(agent, tmp_path))


@pytest.mark.parametrize("name", [name for name in NAMES if not BY_NAME[name].endless])
def test_learning_goes_on_with_a_log(name, tmp_path):
    case = BY_NAME[name]
    agent, log = lived(case, 9)
    episodes = log.partition_by("episode")
    first = [part for part in episodes if part["episode"][0] < 4]
    rest = [part for part in episodes if part["episode"][0] >= 4]
    parts = case.learn(case.make(), 4)
    parts.fit(iter(rest[::-1]), case.env())
    twice = case.make().fit(first, case.env()).fit(pl.concat(rest), case.env())
    assert_equal(everything(parts, tmp_path), everything(agent, tmp_path))
    assert_equal(everything(twice, tmp_path), everything(agent, tmp_path))


# What another seed changes: where the next plan starts, and samples that are kept instead of the data.
OF_THE_SEED = {
    "IncrementalRLSVI": {"memory.reward", "memory.reward_error", "memory.squares"},
    "EnsembleRLSVI": {"keys", "noise", "weights"},
    "GradientRLSVI": {"keys", "mass", "start", "theta"},
    "StationaryRLSVI": {"theta", "watch"},
    "BoundedRLSVI": {"earned", "mistakes", "theta", "warm"},
    "DiscountedPSRL": {"V"},
    "TableOrFeatures": {"V", "earned", "mistakes", "theta", "warm"},
    "ContinualRLSVI": {"theta", "walk.mean", "walk.reach", "walk.w", "walk.watch"},
    **{kind.__name__: {"plan.Q", "plan.V"} for kind in TabularAgent.__subclasses__() if kind._samples},
}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_of_the_data_does_not_depend_on_the_seed(name, tmp_path):
    case = BY_NAME[name]
    agent, log = lived(case, 12)
    other = case.make(seed=99).fit(log, case.env())
    one, two = (everything(each, tmp_path).contents.arrays for each in (agent, other))
    different = {array for array in {*one, *two} if one.get(array) != two.get(array)}
    assert {"streams"} <= different <= {"streams"} | OF_THE_SEED.get(case.agent, set())


INTERRUPTED = ["RLSVI-table", "BoundedRLSVI-vector", "TableOrFeatures-vector", "StationaryRLSVI-table"]


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interruption_leaves_whole_episodes(name, tmp_path):
    case = BY_NAME[name]
    _, log = lived(case, 2)
    after = [everything(case.learned(n) if n else case.make(), tmp_path).contents.arrays for n in range(3)]
    for at in some(every_line(lambda: case.make().fit(log, case.env())), 12):
        agent = case.make()
        stopped = interrupted(lambda agent=agent: agent.fit(log, case.env()), at)
        assert stopped or agent.episodes == 2
        assert everything(agent, tmp_path).contents.arrays == after[agent.episodes]


# ---- kinds of observations --------------------------------------------------------------------------------


class Kinds(gymnasium.Env):
    """A walk over 0..4 that is seen through a space of any kind."""

    action_space = Discrete(2, start=3)

    def __init__(self, space, see):
        self.observation_space, self.see = space, see

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.t = 0
        return self.see(self.x), {}

    def step(self, action):
        assert action in (3, 4)
        self.x, self.t = min(max(self.x + 2 * (int(action) - 3) - 1, 0), 4), self.t + 1
        return self.see(self.x), float(self.x == 4), self.x == 4, self.t == 8, {}


KINDS = {
    "numbers from 2": (Discrete(5, start=2), lambda x: x + 2),
    "a picture": (Box(0, 255, (2, 2), np.uint8), lambda x: np.full((2, 2), x, np.uint8)),
    "single precision": (Box(-9, 9, (3,), np.float32), lambda x: np.array([x, 0.1, -x], np.float32)),
    "two parts": (
        Dict(a=Box(0.0, 4.0, (2,), np.float64), b=MultiDiscrete([5, 2])),
        lambda x: {"a": np.array([x, x / 3]), "b": np.array([x, 1])},
    ),
    "text": (Text(9), lambda x: "abcde"[x]),
    "counted from 1 and 2": (MultiDiscrete([5, 2], start=[1, 2]), lambda x: np.array([x + 1, 3])),
    "a pair": (
        Tuple((Discrete(5, start=3), Box(0.0, 4.0, (2,), np.float32))),
        lambda x: (x + 3, np.array([x, x / 3], np.float32)),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_observations_of_any_kind(kind, tmp_path):
    def env():
        return Kinds(*KINDS[kind])

    agent = rlsvi.agent_for(env(), seed=2)
    log = rlsvi.record(env(), agent, 12, learning=True, path=tmp_path / "log.parquet")
    fitted = rlsvi.agent_for(env(), seed=2).fit(tmp_path / "log.parquet", env())
    assert_equal(everything(fitted, tmp_path), everything(agent, tmp_path))
    assert log.equals(pl.read_parquet(tmp_path / "log.parquet"))


def test_a_log_has_the_numbers_that_were_observed():
    counted = rlsvi.record(Kinds(*KINDS["counted from 1 and 2"]), None, 3)
    assert counted["observation"][0].to_list() == [1, 3]
    pair = rlsvi.record(Kinds(*KINDS["a pair"]), None, 3)
    assert pair["observation"][0].to_list() == [3, 0, 0]  # in the order of the space


def test_numbers_of_a_users_log_are_learned_as_they_are():
    space = MultiDiscrete([3, 3], start=[1, 1])
    spaces = rlsvi.envs.Spaces(space, Discrete(2))
    seen = [[1, 1] if k % 2 else [2, 2] for k in range(60)]
    action = [(k // 2) % 2 for k in range(60)]
    log = single_steps(observation=seen, action=action).with_columns(
        reward=pl.Series([float((a == 0) == (o == [1, 1])) for a, o in zip(action, seen, strict=True)])
    )
    agent = rlsvi.agent_for(spaces, seed=0).fit(log, spaces)
    assert [agent.predict(np.array(o), deterministic=True)[0] for o in ([1, 1], [2, 2])] == [0, 1]
    with pytest.raises(ValueError, match=r"column 'observation', row 0: outside .* are 1 to 3, 1 to 3"):
        rlsvi.agent_for(spaces).fit(single_steps(observation=[[0, 1]], action=[0]), spaces)


def single_steps(observation, **columns):
    """A log of episodes of one step."""
    n = len(observation)
    fixed = {"step": 0, "reward": 0.0, "terminated": True, "truncated": False}
    given = {"episode": list(range(n)), "observation": observation, "next_observation": observation, **columns}
    return pl.DataFrame(given).with_columns(pl.lit(value).alias(name) for name, value in fixed.items())


def test_parts_of_an_observation_in_one_column_or_several(tmp_path):
    env = Kinds(
        Dict(n=Discrete(5, start=2), x=Box(0.0, 4.0, (2,))), lambda x: {"n": x + 2, "x": np.array([x, 1.0])}
    )
    log = rlsvi.record(env, None, 8)
    parts, wide = {}, {}
    for name in ("observation", "next_observation"):
        numbers = log[name].to_numpy()
        parts[name] = pl.Series([{"x": [x, y], "n": int(n)} for n, x, y in numbers])
        wide |= {f"{name}_x": numbers[:, 1:], f"{name}_n": numbers[:, 0].astype(int)}
    several = log.drop("observation", "next_observation").with_columns(pl.Series(k, v) for k, v in wide.items())
    mapped = {name: [f"{name}_n", f"{name}_x"] for name in ("observation", "next_observation")}
    expected = everything(rlsvi.agent_for(env, seed=1).fit(log, env), tmp_path)
    for other, names in ((log.with_columns(**parts), None), (several, None), (several, mapped)):
        agent = rlsvi.agent_for(env, seed=1).fit(other, env, columns=names)
        assert_equal(everything(agent, tmp_path), expected)
    with pytest.raises(ValueError, match="no column 'observation_x', it has"):
        rlsvi.agent_for(env).fit(several.drop("observation_x"), env)
    less = pl.Series([{"n": int(n)} for n in log["observation"].arr.get(0)])
    with pytest.raises(ValueError, match="column 'observation': it has no field 'x', it has n"):
        rlsvi.agent_for(env).fit(log.with_columns(observation=less), env)
    box = rlsvi.envs.Spaces(Box(0, 9, (3,)), env.action_space)
    with pytest.raises(ValueError, match="order of the columns observation_x, observation_n is not known"):
        rlsvi.BoundedRLSVI().fit(several, box)


# ---- inputs -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log():
    return rlsvi.record(drifting(), None, 12, seed=4)


def fitted(log, tmp_path, env=drifting, **options):
    agent = rlsvi.BoundedRLSVI(seed=1, basis=rlsvi.bases.Polynomial(degree=1)).fit(log, env and env(), **options)
    return everything(agent, tmp_path)


def test_every_kind_of_log_is_the_same(log, tmp_path):
    expected = fitted(log, tmp_path)
    folder = tmp_path / "log" / "more"
    folder.mkdir(parents=True)
    log[5:].write_parquet(tmp_path / "log" / "a.parquet")
    log[:5].write_parquet(folder / "b.parquet")
    wide = log.with_columns(pl.col("observation").arr.get(i).alias(f"observation_{i}") for i in range(2)).drop(
        "observation"
    )
    lists = log.with_columns(pl.col("observation", "next_observation").arr.to_list())
    renamed = wide.rename({"reward": "r", "observation_0": "x", "observation_1": "clock"})
    assert_equal(fitted(log.lazy(), tmp_path), expected)
    assert_equal(fitted(tmp_path / "log", tmp_path), expected)
    assert_equal(fitted(str(tmp_path / "log"), tmp_path), expected)
    assert_equal(fitted([log[7:], log[:7].lazy()], tmp_path), expected)
    assert_equal(fitted(wide, tmp_path), expected)
    assert_equal(fitted(lists, tmp_path), expected)
    assert_equal(fitted(renamed, tmp_path, columns={"reward": "r", "observation": ["x", "clock"]}), expected)
    flags = log.with_columns(pl.col("terminated", "truncated").cast(pl.Int8))
    assert_equal(fitted(flags, tmp_path), expected)


def test_csv_files_are_the_same(log, tmp_path):
    expected, flat = fitted(log, tmp_path), log
    for name in (name for name, kind in log.schema.items() if kind.is_nested()):
        cells = np.array(log[name].to_list()).T
        flat = flat.drop(name).with_columns(pl.Series(f"{name}_{i}", each) for i, each in enumerate(cells))
    flat.write_csv(tmp_path / "log.csv")
    assert_equal(fitted(tmp_path / "log.csv", tmp_path), expected)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress((tmp_path / "log.csv").read_bytes()))
    assert_equal(fitted(str(tmp_path / "log.csv.gz"), tmp_path), expected)
    (tmp_path / "log").mkdir()
    flat[5:].write_csv(tmp_path / "log" / "a.csv")
    flat[:5].write_csv(tmp_path / "log" / "b.csv")
    assert_equal(fitted(tmp_path / "log", tmp_path), expected)
    expected = fitted(log, tmp_path, chunk=7)
    assert_equal(fitted(tmp_path / "log.csv", tmp_path, chunk=7), expected)
    assert_equal(fitted(tmp_path / "log", tmp_path, chunk=7), expected)


def test_csv_of_single_steps_needs_no_next_observation(tmp_path):
    rows = "".join(f"{i},0,{i % 3},{i % 2},{i / 7},,True\n" for i in range(20))
    (tmp_path / "log.csv").write_text(
        f"episode,step,observation,action,reward,next_observation,terminated\n{rows}"
    )
    agent = rlsvi.RLSVI(horizon=1, seed=1).fit(tmp_path / "log.csv")
    assert (agent.episodes, agent.steps) == (20, 20)
    value = rlsvi.value_of(agent, tmp_path / "log.csv", horizon=1)
    assert value.fitted.low < value.fitted.high


def test_csv_files_in_a_folder_may_differ_in_the_types_of_numbers(tmp_path):
    head, folder = "episode,step,observation,action,reward,next_observation,terminated\n", tmp_path / "log"
    folder.mkdir()
    (folder / "A.CSV").write_text(head + "".join(f"{i},0,{i % 3},{i % 2},{-(i % 2)},,True\n" for i in range(9)))
    (folder / "b.csv").write_text(head + "".join(f"{i},0,{i % 3}.5,{i % 2},0.5,,True\n" for i in range(9, 20)))
    env = rlsvi.envs.Spaces(Box(0, 9, ()), Discrete(2))
    assert_equal(
        fitted(folder, tmp_path, lambda: env, chunk=7),
        fitted(
            pieces := [
                pl.read_csv(file, schema_overrides={"next_observation": pl.Float64})
                for file in sorted(folder.iterdir())
            ],
            tmp_path,
            lambda: env,
            chunk=7,
        ),
    )
    (folder / "b.csv").write_text(head.replace("reward", "paid") + "9,0,1,1,0.5,,True\n")
    with pytest.raises(ValueError, match="has the columns episode, step, observation, action, paid, next_"):
        fitted(folder, tmp_path, lambda: env, chunk=7)
    (folder / "b.csv").write_text(head + "late,0,1,1,0.5,,True\n")
    with pytest.raises(ValueError, match="episodes are numbers in some files"):
        fitted(folder, tmp_path, lambda: env, chunk=7)
    pieces[0].write_parquet(folder / "c.parquet")
    for options in ({}, {"chunk": 7}):
        with pytest.raises(ValueError, match="has Parquet files and CSV files"):
            fitted(folder, tmp_path, lambda: env, **options)


@pytest.mark.slow
def test_arrow_and_pandas(log, tmp_path):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    expected = fitted(log, tmp_path)
    lists = log.with_columns(pl.col("observation", "next_observation").arr.to_list())
    assert_equal(fitted(log.to_arrow(), tmp_path), expected)
    assert_equal(fitted(pandas.DataFrame(lists.to_dicts()), tmp_path), expected)


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)  # its own
def test_a_minari_data_set(tmp_path, monkeypatch):
    pytest.importorskip("jax", reason="a data set is recorded with minari[create]")
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = minari.DataCollector(gymnasium.make("CartPole-v1"))
    recorder = Recorder(env)
    agent = rlsvi.agent_for(env, seed=1).learn(recorder, episodes=4)
    env.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it asks for an author
        data = env.create_dataset("rlsvi/test-v0")
        env.close()
    assert data.total_steps == agent.steps
    known, inferred = (rlsvi.agent_for(env, seed=1).fit(data, e) for e in (gymnasium.make("CartPole-v1"), None))
    lived, fitted = (everything(one, tmp_path).contents for one in (agent, known))
    assert fitted.arrays == lived.arrays == everything(inferred, tmp_path).contents.arrays


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)  # its own
def test_masks_and_time_limit_of_a_minari_data_set(tmp_path, monkeypatch):
    pytest.importorskip("jax", reason="a data set is recorded with minari[create]")
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = minari.DataCollector(gymnasium.make("Taxi-v4", max_episode_steps=20), record_infos=True)
    agent = rlsvi.RLSVI(seed=1).learn(env, episodes=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it asks for an author
        data = env.create_dataset("rlsvi/taxi-v0")
        env.close()
    fitted = rlsvi.RLSVI(seed=1).fit(data)
    assert fitted._task == agent._task == (20, 6, 500, 0, 0, None)
    lived, fitted = (everything(one, tmp_path).contents for one in (agent, fitted))
    assert fitted.arrays == lived.arrays


class Recorded:
    """A data set in the form of Minari's, of two episodes of two steps."""

    observation_space, action_space = Discrete(3), Discrete(2)
    env_spec = gymnasium.envs.registration.EnvSpec("Some-v0", max_episode_steps=2)

    def __init__(self, masks):
        self.masks = masks

    def iterate_episodes(self):
        for id in range(2):
            yield SimpleNamespace(
                id=id,
                observations=np.array([0, 1, 2]),
                actions=np.array([0, 1]),
                rewards=np.ones(2),
                terminations=np.array([False, True]),
                truncations=np.zeros(2, bool),
                infos={"action_mask": np.array(self.masks, np.int8)},
            )


def test_a_data_set_tells_masks_and_periods(monkeypatch):
    monkeypatch.setattr(Recorded, "__module__", "minari.dataset")
    replay = replay_of(Recorded([[1, 1], [0, 1], [1, 0]]))
    assert replay.log.mask.is_known.all()
    assert replay.log.mask.legal.tolist() == [[True, True], [False, True]] * 2
    assert replay.log.next_mask.is_known.all()
    assert replay.log.next_mask.legal.tolist() == [[False, True], [True, False]] * 2
    assert rlsvi.RLSVI(seed=0).fit(Recorded([[1, 1]] * 3))._task.horizon == 2
    with pytest.raises(ValueError, match=r"episode 0 .* masks of shape \(2, 2\), .* each of its 3 observations"):
        replay_of(Recorded([[1, 1]] * 2))


def test_without_an_environment_the_spaces_are_those_of_the_log(log, tmp_path):
    agent = rlsvi.BoundedRLSVI(seed=1, basis=rlsvi.bases.Polynomial(degree=1)).fit(log)
    assert agent._task == (0, 3, None, 0, 0, None)
    table = rlsvi.record(numbered(), None, 30)
    known, inferred = (rlsvi.RLSVI(seed=1, horizon=3).fit(table, env) for env in (numbered(), None))
    assert known._task == inferred._task == (3, 3, 4, 0, 0, None)
    assert_equal(everything(known, tmp_path), everything(inferred, tmp_path))
    with pytest.raises(ValueError, match="the number of periods is not known: pass horizon="):
        rlsvi.RLSVI(seed=1).fit(table)


def test_after_a_log_alone_the_environment_may_differ(log):
    table = rlsvi.record(numbered(), None, 3)
    for agent, env in (
        (rlsvi.BoundedRLSVI(seed=1).fit(log), drifting()),
        (rlsvi.PSRL(seed=1, horizon=3).fit(table.filter(pl.col("episode") == 0)), numbered()),
    ):
        with pytest.raises(ValueError, match=r"fitted to a log without env, fit a new one with fit\(log, env\)"):
            agent.learn(env, episodes=1)


# ---- actions that are held --------------------------------------------------------------------------------


class Slow(gymnasium.Env):
    """Two numbers that move slowly over 80 steps; the last action is illegal on the right."""

    action_space, observation_space = Discrete(3), Box(-9.0, 9.0, (2,), np.float64)

    def look(self):
        drift = self.t / 30
        return np.array([self.x + drift, self.v - drift]), {"action_mask": np.array([1, 1, self.x < 0.1])}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.v, self.t = float(self.np_random.uniform(-0.5, 0.5)), 0.0, 0
        return self.look()

    def step(self, action):
        self.t, self.v = self.t + 1, 0.99 * self.v + 0.002 * (int(action) - 1)
        self.x += self.v
        observation, info = self.look()
        return observation, self.x, False, self.t == 80, info


HOLDING = {
    "features": lambda **options: rlsvi.BoundedRLSVI(seed=1, basis=rlsvi.bases.Polynomial(degree=1), **options),
    "table or features": lambda: rlsvi.TableOrFeatures(seed=1),
}


@pytest.mark.parametrize("kind", HOLDING)
def test_actions_that_were_held_are_held_in_the_log(kind, tmp_path):
    agent = HOLDING[kind]()
    log = rlsvi.record(Slow(), agent, 8, learning=True)
    assert agent.held == 4
    assert agent.steps < log.height == 8 * 80
    assert_equal(everything(HOLDING[kind]().fit(log, Slow()), tmp_path), everything(agent, tmp_path))


@pytest.mark.parametrize("kind", HOLDING)
def test_actions_are_not_held_if_the_log_does_not_hold_them(kind):
    log = rlsvi.record(Slow(), None, 8)
    agent = HOLDING[kind]().fit(log, Slow())
    assert agent.held == 1
    assert agent.steps == log.height
    holds = HOLDING[kind]().learn(Slow(), episodes=5)
    assert holds.held == 4
    with pytest.raises(ValueError, match="holds each action for 4 steps, but the log changes actions sooner"):
        holds.fit(log, Slow())


def test_an_interrupt_leaves_how_long_actions_are_held(monkeypatch):
    """The first episode of the log says four steps, and the second that actions change sooner."""
    log, step = rlsvi.record(Slow(), None, 8), Replay.step

    def interrupted(self, action):
        if self.episode == 1:
            raise KeyboardInterrupt
        return step(self, action)

    agent = HOLDING["features"]()
    monkeypatch.setattr(Replay, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        agent.fit(log, Slow())
    assert (agent.episodes, agent.held) == (1, 4)


def test_a_given_repeat_needs_a_log_that_holds():
    log = rlsvi.record(Slow(), None, 3)
    with pytest.raises(ValueError, match="holds each action for 2 steps"):
        HOLDING["features"](repeat=2).fit(log, Slow())
