"""agent.diagnose: what it shows of every kind of agent, its one sentence of advice, and warnings of no reward."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import rlsvi
from rlsvi import BoundedRLSVI, DiscountedPSRL, NoProgressWarning, TableOrFeatures
from rlsvi.agents.no_progress import lack_of_progress


class Line(gymnasium.Env):
    """Seven places, seen with noise or as their number; the last one pays `prize` and ends the episode."""

    action_space = Discrete(2)

    def __init__(self, noise=0.1, prize=1.0):
        self.noise, self.prize = noise, prize
        self.observation_space = Box(-1.0, 8.0, (1,), np.float64) if noise else Discrete(7)

    def look(self):
        return np.array([self.x + self.noise * self.np_random.uniform()]) if self.noise else self.x

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = 0, 0
        return self.look(), {}

    def step(self, action):
        self.x, self.t = min(max(self.x + (1 if action else -1), 0), 6), self.t + 1
        return self.look(), self.prize * (self.x == 6), self.x == 6, self.t == 20, {}


def test_an_agent_that_has_learned_nothing_says_so():
    for agent in (TableOrFeatures(), BoundedRLSVI(), DiscountedPSRL(), rlsvi.RLSVI()):
        assert "learned nothing yet" in agent.diagnose().advice


def test_features_show_their_plan_and_basis(capsys):
    agent = TableOrFeatures(seed=0).learn(Line(), episodes=20)
    found = agent.diagnose()
    assert not agent.uses_table
    assert set(found.facts) == {
        *("returns", "choice", "actions", "last plan", "bounds", "features", "basis", "scales"),
    }
    assert capsys.readouterr().out == f"{found}\n"
    assert str(found).startswith(f"TableOrFeatures after 20 episodes, {agent.steps} steps\n  returns ")
    assert found.facts["choice"] == agent.explain()
    assert f"sweeps of at most {agent.acting.regressions}" in found.facts["last plan"]
    assert f"from {agent.steps} steps" in found.facts["features"]
    assert repr(found) == f"Diagnosis({found.advice!r})"
    assert found.advice in found._repr_html_()


def test_a_table_shows_what_recurs():
    agent = DiscountedPSRL(seed=0).learn(Line(noise=0.0), episodes=20)
    found = agent.diagnose()
    assert found.facts["table"] == "6 observations, 12 of 12 actions at them were tried"
    assert found.facts["recurrence"] == f"{agent.steps / 12:.3g} visits for each action tried, on average"


def test_returns_are_those_of_the_episodes():
    returns = []
    agent = BoundedRLSVI(seed=0, repeat=1)
    agent.learn(Line(), 24, on_episode=lambda _, total: returns.append(total))
    first, recent = np.mean(returns[:8]), np.mean(returns[-6:])
    told = f"{first:.4g} in the first 8, {recent:.4g} in the last 6, at best 1"
    assert agent.diagnose().facts["returns"] == told


def test_after_loading_only_later_returns_of_a_table_are_known(tmp_path):
    agent = DiscountedPSRL(seed=0).learn(Line(noise=0.0), episodes=10)
    agent.save(tmp_path / "agent")
    loaded = rlsvi.load(tmp_path / "agent").learn(Line(noise=0.0), episodes=3)
    assert loaded.diagnose().facts["returns"].endswith("in the last 3 episodes, the only ones known here")


def test_diagnosing_changes_nothing():
    one, other = (TableOrFeatures(seed=0).learn(Line(), episodes=6) for _ in range(2))
    one.diagnose()
    for agent in (one, other):
        agent.learn(Line(), episodes=3)
    assert one.steps == other.steps
    assert np.array_equal(one._streams, other._streams)


@pytest.mark.filterwarnings("ignore::rlsvi.NoProgressWarning")
@pytest.mark.parametrize(
    ("agent", "noise"),
    [(TableOrFeatures(seed=0), 0.1), (BoundedRLSVI(seed=0), 0.1), (DiscountedPSRL(seed=0), 0.0)],
    ids=lambda value: type(value).__name__,
)
def test_advice_speaks_of_missing_rewards(agent, noise):
    advice = agent.learn(Line(noise, prize=0.0), episodes=20).diagnose().advice
    assert advice.startswith("no reward was found: make sure that one can be reached, or try ")


FIRST = np.array([-200.0] * 8)


@pytest.mark.parametrize(
    ("first", "recent", "episodes", "explored", "says"),
    [
        (FIRST, FIRST, 64, True, "no more than most of the first 8"),
        (FIRST, FIRST, 64, False, ""),  # something may yet be found
        (FIRST, FIRST, 32, True, ""),
        (FIRST, FIRST - 1, 32, False, "earn -201, where most of the first 8"),
        (FIRST, FIRST + 50, 64, True, ""),
        (np.arange(8.0), np.full(16, 3.0), 64, True, ""),  # within the noise of the first
    ],
)
def test_what_counts_as_no_progress(first, recent, episodes, explored, says):
    wrong = lack_of_progress(first, recent, episodes, explored)
    assert says in wrong
    assert bool(says) == bool(wrong)


UNCOUNTED = [
    rlsvi.BootstrapRLSVI(horizon=8, seed=0),
    rlsvi.IncrementalRLSVI(horizon=8, seed=0),
    rlsvi.GradientRLSVI(horizon=8, seed=0),
    rlsvi.ThompsonSampling(seed=0),
    rlsvi.ContextualBandit(horizon=8, seed=0),
]


@pytest.mark.parametrize("prize", [0.0, 1.0])
@pytest.mark.parametrize("agent", UNCOUNTED, ids=lambda agent: type(agent).__name__)
def test_agents_that_keep_no_counts_tell_of_missing_rewards_late(agent, prize, monkeypatch):
    monkeypatch.setattr("rlsvi.agents.agent.UNREWARDED", 20)
    agent, env = agent.clone(), Line(noise=0.0, prize=prize)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        agent.learn(gymnasium.wrappers.TransformReward(env, lambda r: prize), episodes=19)
        assert not caught
        agent.learn(gymnasium.wrappers.TransformReward(env, lambda r: prize), episodes=11)
    told = [str(each.message) for each in caught if each.category is NoProgressWarning]
    assert len(told) == (prize == 0.0)
    assert all("there was no reward in any of 20 episodes: make sure" in said for said in told)


def test_a_life_without_rewards_is_told_of_once(monkeypatch):
    monkeypatch.setattr("rlsvi.agents.continual.UNREWARDED_STEPS", 50)
    agent = rlsvi.ContinualRLSVI(seed=0)
    with pytest.warns(NoProgressWarning, match="no reward in any of 50 steps: make sure .* or try a smaller lam="):
        agent.learn(Line(noise=0.0, prize=0.0), steps=50)
    agent.learn(Line(noise=0.0, prize=0.0), steps=50)
