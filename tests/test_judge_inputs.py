"""`rlsvi.value_of` with bad input: errors that name the argument, column or row."""

import gymnasium as gym
import numpy as np
import polars as pl
import pytest

import rlsvi
from contract.environments import numbered
from rlsvi.envs import Spaces

pytestmark = pytest.mark.filterwarnings("ignore:importance sampling rests on")
SPACES = Spaces(gym.spaces.Discrete(4), gym.spaces.Discrete(3))


@pytest.fixture(scope="module")
def log():
    return rlsvi.record(numbered(), None, 12, seed=4)


def at(log, row, **values):
    """The log with other values in one row."""
    for name, value in values.items():
        given = log[name].to_list()
        given[row] = value
        log = log.with_columns(pl.Series(name, given, dtype=log[name].dtype))
    return log


def refuses(log, match, policy=lambda s: 1, env=None, error=ValueError, **options):
    with pytest.raises(error, match=match):
        rlsvi.value_of(policy, log, numbered() if env is None else env, **{"draws": 50, **options})


def test_arguments(log):
    for gamma in (-0.1, 1.1, np.nan, "0.9", True):
        refuses(log, "gamma must lie in", gamma=gamma)
    for level in (0, 1, 95, np.nan, "high"):
        refuses(log, "level must lie between 0 and 1", level=level)
    refuses(log, "draws must be a whole number of at least 40", draws=10)
    refuses(log, "draws must be a whole number", draws=2.5)
    refuses(log, "draws must be at most", draws=2**70)
    refuses(log, "gamma must lie in", gamma=1j)
    refuses(log, "policy must be a function of one observation", policy=lambda: 0, error=TypeError)
    refuses(log, "horizon must be a whole number of at least 1", horizon=0)
    refuses(log, "seed must be a whole number", seed=-1)
    refuses(log, "ridge must be a positive", ridge=0)
    refuses(log, "per_period must be True or False", per_period=1)
    refuses(log, "give horizon=", env=SPACES)
    refuses(log, "per_period=True needs a horizon", env=SPACES, per_period=True, gamma=0.9)
    refuses(log, "basis must be an object with a method bind", basis=3, error=TypeError)
    refuses(log, "env must be a Gymnasium environment", env=3, error=TypeError)


def test_policies(log):
    refuses(log, "policy must be an agent", policy=3, error=TypeError)
    refuses(log, "policy must be an agent", policy=rlsvi.RLSVI, error=TypeError)
    refuses(log, "has learned nothing yet", policy=rlsvi.RLSVI(), error=RuntimeError)
    for action in (-1, 3):
        refuses(
            log,
            f"row .* of the log: policy gives action {action}: actions are 0 to 2",
            policy=lambda s, a=action: a,
        )
    refuses(log, "must give an action, 0 to 2, or 3 probabilities", policy=lambda s: 0.5)
    refuses(log, "must give an action, 0 to 2, or 3 probabilities", policy=lambda s: np.ones(4) / 4)
    refuses(log, "must give an action, 0 to 2, or 3 probabilities", policy=lambda s: "left")
    refuses(
        log, "add up to 0.9: they must not be negative, and must add up to 1", policy=lambda s: [0.4, 0.5, 0.0]
    )
    refuses(log, "must not be negative", policy=lambda s: [1.5, -0.5, 0.0])
    refuses(log, "must not be negative", policy=lambda s: [np.nan, 0.5, 0.5])
    refuses(
        log,
        r"at the observation of row \d+ of the log: policy gives action 2: the mask does not allow",
        policy=lambda s: 2,
    )

    class Recurrent:
        def predict(self, observation, state=None, deterministic=False, action_mask=None):
            return 1, np.zeros(3)

    refuses(log, "returns a state", policy=Recurrent(), error=TypeError)
    agent = rlsvi.RLSVI(seed=1).fit(log, numbered())
    refuses(log, "policy is an agent for 3 periods", policy=agent, env=SPACES, horizon=5)
    agent.held = 4
    refuses(log, "holds each action for 4 steps", policy=agent)


def test_logs(log, tmp_path):
    refuses(log.head(0), "the log is empty")
    refuses([], "the log is empty")
    refuses(log.drop("reward"), "no column 'reward'")
    refuses(tmp_path / "none.parquet", "there is no log", error=FileNotFoundError)
    for chance in (0.0, -0.5, 1.5, np.nan):
        refuses(at(log, 6, propensity=chance), r"column 'propensity', row 6: it must lie in \(0, 1\]")
    refuses(at(log, 6, propensity=None), "column 'propensity', row 6: there is no value: fill it in, or drop")
    named = at(log, 6, propensity=None).rename({"propensity": "chance"})
    refuses(named, "column 'chance', row 6: there is no value", columns={"propensity": "chance"})
    refuses(log.with_columns(propensity=pl.lit("often")), "column 'propensity': it holds String, not numbers")
    text = log.with_columns(pl.col("observation", "next_observation").cast(pl.String))
    spaces = Spaces(gym.spaces.Text(9), gym.spaces.Discrete(3))
    refuses(text, "text has no features", env=spaces, horizon=3, basis=rlsvi.bases.Polynomial())
    refuses(text, "the tabular basis needs", env=spaces, horizon=3, basis=rlsvi.bases.Tabular())


def test_a_log_of_one_episode(log):
    found = rlsvi.value_of(lambda s: 1, log.filter(pl.col("episode") == 0), numbered(), draws=50)
    assert found.episodes == 1
    assert np.isfinite(found.fitted.value)


def test_masks_that_differ_at_one_observation():
    """A table would take one of them for all rows."""
    rows = [(e, 0, 0, 0, 1.0, 0, True, False, [True, e != 2]) for e in range(4)]
    names = (
        "episode",
        "step",
        "observation",
        "action",
        "reward",
        "next_observation",
        "terminated",
        "truncated",
        "mask",
    )
    log, env = (
        pl.DataFrame(rows, schema=names, orient="row"),
        Spaces(gym.spaces.Discrete(1), gym.spaces.Discrete(2)),
    )
    refuses(log, "other legal actions in row 0 than in row 2 for the same", policy=lambda s: 0, env=env, horizon=1)
    same = log.filter(pl.col("episode") != 2)
    assert rlsvi.value_of(lambda s: 0, same, env, horizon=1, draws=50).fitted.value == 1
    ones = rlsvi.bases.StateFeatures(lambda s: np.ones(1))
    found = rlsvi.value_of(lambda s: 0, log, env, horizon=1, basis=ones, ridge=1e-9)
    assert found.fitted.value == pytest.approx(1)  # features ask for the policy in every row


def test_a_policy_that_acts_at_random(log):
    rng = np.random.default_rng(0)
    refuses(log, "again at the observation of row .*return the prob", policy=lambda s: rng.integers(3))
    one = np.array([0.0, 1.0, 0.0])
    refuses(log, "acts at random", policy=lambda s: 1 if rng.random() < 0.7 else one[[1, 0, 2]])
    nearly = rlsvi.value_of(lambda s: one * (1 - 1e-9 * rng.random()), log, numbered(), draws=50)
    exactly = rlsvi.value_of(lambda s: 1, log, numbered(), draws=50)
    assert nearly.fitted.value == pytest.approx(exactly.fitted.value)


def test_predict_is_called_with_what_it_takes(log):
    class Plain:
        def predict(self, X):
            return np.array([1])

    class Open:
        def predict(self, observation, **options):
            return (1 if {"state", "deterministic", "action_mask"} == set(options) else 0), None

    expected = rlsvi.value_of(lambda s: 1, log, numbered(), draws=50)
    for policy in (Plain(), Open()):
        assert rlsvi.value_of(policy, log, numbered(), draws=50) == expected


def test_a_policy_that_raises_names_the_row(log):
    def fails(s):
        raise KeyError("no such state")

    with pytest.raises(KeyError, match="no such state") as found:
        rlsvi.value_of(fails, log, numbered())
    assert "observation of row 0 of the log" in found.value.__notes__[0]
