"""agent.diagnose: what it shows of every kind of agent, its one sentence of advice, and warnings of no reward."""

import re
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import rlsvi
from rlsvi import BoundedRLSVI, DiscountedPSRL, NoProgressWarning, TableOrFeatures
from rlsvi.agents.diagnosis import avoids_costs, fallen, lack_of_progress, lack_of_progress_at_random
from rlsvi.agents.practice.bounded_rlsvi import BoundedLearner


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
        *("returns", "choice", "actions", "plan", "bounds", "features", "basis", "scales"),
    }
    assert capsys.readouterr().out == f"{found}\n"
    assert str(found).startswith(f"TableOrFeatures after 20 episodes, {agent.steps} steps\n  returns ")
    assert found.facts["choice"] == agent.explain()
    assert "sweeps of at most 200, values" in found.facts["plan"]
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


def test_after_loading_all_returns_of_a_table_are_known(tmp_path):
    agent = DiscountedPSRL(seed=0).learn(Line(noise=0.0), episodes=10)
    agent.save(tmp_path / "agent")
    loaded = rlsvi.load(tmp_path / "agent").learn(Line(noise=0.0), episodes=3)
    whole = DiscountedPSRL(seed=0).learn(Line(noise=0.0), episodes=13)
    assert loaded.diagnose().facts["returns"] == whole.diagnose().facts["returns"]


def test_sweeps_are_counted_against_those_that_a_plan_may_take(monkeypatch):
    monkeypatch.setattr(BoundedLearner, "SWEEPS", 3)
    monkeypatch.setattr(BoundedLearner, "TOLERANCE", 1e-12)
    found = BoundedRLSVI(seed=0).learn(Line(), episodes=3).diagnose()
    assert found.facts["plan"].startswith("3 sweeps of at most 3, values still changing by ")


class Two(Line):
    """The line with another number before its own that tells nothing."""

    def __init__(self):
        super().__init__()
        self.observation_space = Box(-1.0, 8.0, (2,), np.float64)

    def look(self):
        return np.array([self.np_random.uniform(), super().look().item()])


def test_numbers_that_are_left_out_are_shown():
    agent = BoundedRLSVI(seed=0, repeat=1).learn(Two(), episodes=3)
    assert "relevant" not in agent.diagnose().facts
    agent._learner.lookup.relevant[0] = False
    agent._learner.build()
    agent._forget_plans()
    found = agent.diagnose()
    assert found.facts["relevant"] == "1 of 2 (number 0 left out)"
    assert len(found.facts["scales"].split(",")) == 1


@pytest.mark.parametrize("kind", ["LSVI", "BootstrapRLSVI", "EnsembleRLSVI", "StationaryRLSVI", "ContinualLSVI"])
def test_an_agent_is_not_advised_to_change_an_argument_that_it_does_not_have(kind):
    agent = getattr(rlsvi, kind)()
    own, _, _ = agent._what_to_try().partition("rlsvi.")
    assert set(re.findall(r"(\w+)=", own)) <= set(agent.get_params())


@pytest.mark.filterwarnings("ignore::rlsvi.NoProgressWarning")
@pytest.mark.parametrize("agent", [TableOrFeatures(seed=0), BoundedRLSVI(seed=0)], ids=["either", "features"])
def test_the_same_is_said_after_loading(agent, tmp_path, monkeypatch):
    monkeypatch.setattr("rlsvi.agents.practice.bounded_rlsvi.UNSETTLED_CHANGE", 0.0)
    agent = agent.clone().learn(Line(), episodes=40)
    agent.save(tmp_path / "agent")
    loaded = rlsvi.load(tmp_path / "agent")
    found = loaded.diagnose()
    assert found == agent.diagnose()
    assert "; in learning, the last " in found.facts["plan"]
    assert loaded._what_to_try() == agent._what_to_try()


def test_values_above_their_bound_are_spoken_of_if_they_are_most(monkeypatch):
    agent = BoundedRLSVI(seed=0).learn(Line(), episodes=20)
    monkeypatch.setattr(BoundedRLSVI, "_returns", lambda self: np.repeat([1.0, 0.0], [8, 12]))
    for share, spoken_of in ((0.5, False), (0.51, True)):
        monkeypatch.setattr(
            "rlsvi.agents.practice.bounded_rlsvi.BoundedLearner.above", lambda *_, share=share: share
        )
        assert ("lie above their upper bound" in agent.diagnose().advice) == spoken_of


def test_bounds_that_no_reward_exceeds_are_not_to_be_widened():
    learner = BoundedRLSVI(seed=0).learn(Line(), episodes=20)._learner  # the prize is 1, at most once
    assert learner.may_be_wider()
    learner.history.transitions.reward[:] = 1.0
    assert learner.may_be_wider()  # 20 steps were seen, and there may be more
    learner.planning = learner.planning._replace(bounds=(-1.0, 100.0))
    assert not learner.may_be_wider()
    learner.history.transitions.reward[:] = -1.0
    assert learner.may_be_wider()  # a prize may be of any size


def test_values_below_their_bounds_do_not_count():
    learner = BoundedRLSVI(seed=0).learn(Line(), episodes=3)._learner
    plan, (low, high) = learner.plan(False, None), learner._bounds()
    Q = np.full_like(plan.Q, low - 1.0)
    Q[: len(Q) // 2] = high + 1.0
    assert learner.above(plan._replace(Q=Q)) == len(Q) // 2 / len(Q)


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


@pytest.mark.parametrize(("last", "says"), [([0.0, 1.0], "hardly more"), ([0.0, 0.0], "no more")])
def test_a_little_more_is_not_called_no_more(last, says, monkeypatch):
    agent = rlsvi.RLSVI(horizon=20, seed=0).learn(Line(noise=0.0), episodes=1)
    returns = np.array([0.0, 0.0, 1.0, 0.0] * 4 + last * 4)
    monkeypatch.setattr(agent, "_returns", lambda: returns)
    assert agent.diagnose().advice.startswith(f"recent episodes earn {says} than the first: ")


class Short(Line):
    """Episodes of one step, so that nothing is decided after eight."""

    def step(self, action):
        return self.look(), 1.0, True, False, {}


def test_no_arguments_are_advised_before_a_table_or_features_are_chosen():
    agent = TableOrFeatures(seed=0).learn(Short(), episodes=8)
    assert agent.uses_table
    assert agent.diagnose().advice.startswith("it is too early to tell")
    agent.learn(Short(), episodes=20)
    assert "too early" not in agent.diagnose().advice


class Prize(Line):
    """A small prize is two steps to the left, and nobody ever looks farther to the right."""

    def __init__(self, noise):
        super().__init__(noise)
        self.observation_space = Box(-9.0, 9.0, (1,), np.float64) if noise else Discrete(19, start=-9)

    def step(self, action):
        self.x, self.t = self.x + (1 if action else -1), self.t + 1
        return self.look(), float(self.x <= -2), self.x <= -2, self.t == 4, {}


@pytest.mark.parametrize(
    ("agent", "noise", "tries"),
    [
        (BoundedRLSVI(seed=0, repeat=1), 0.1, 'rlsvi.BoundedRLSVI(bounds="optimistic")'),
        (DiscountedPSRL(seed=0), 0.0, "rlsvi.DiscountedPSRL(optimism=10)"),
    ],
    ids=["features", "table"],
)
def test_an_agent_that_explores_no_more_is_not_told_to_learn_for_longer(agent, noise, tries):
    env = Prize(noise)
    random, sure = (
        rlsvi.record(env, None, episodes=12, seed=0),
        rlsvi.record(env, lambda _: 0, episodes=80, seed=1),
    )
    advice = agent.clone().fit(random, env).fit(sure.filter(sure["episode"] < 4), env).diagnose().advice
    assert advice.startswith("returns have risen: ")
    advice = agent.clone().fit(random, env).fit(sure, env).diagnose().advice
    assert advice.startswith("returns have risen, but not lately, and exploration finds nothing better any more: ")
    assert "if more than 1 can be earned, " in advice
    assert tries in advice


FIRST_RETURNS = np.array([-200.0] * 8)


@pytest.mark.parametrize(
    ("first", "recent", "episodes", "explored", "says"),
    [
        (FIRST_RETURNS, FIRST_RETURNS, 64, True, "no more than most of the first 8"),
        (FIRST_RETURNS, FIRST_RETURNS, 64, False, ""),  # something may yet be found
        (FIRST_RETURNS, FIRST_RETURNS, 32, True, ""),
        (FIRST_RETURNS, FIRST_RETURNS - 1, 32, False, "earn -201, where most of the first 8"),
        (FIRST_RETURNS, FIRST_RETURNS + 50, 64, True, ""),
        (np.arange(8.0), np.full(16, 3.0), 64, True, ""),  # within the noise of the first
    ],
)
def test_what_counts_as_no_progress(first, recent, episodes, explored, says):
    wrong = lack_of_progress(first, recent, episodes, explored)
    assert says in wrong
    assert bool(says) == bool(wrong)


@pytest.mark.parametrize(
    ("quarters", "spread", "falls"),
    [
        ((0.0, 8.0, 9.0, 1.0), 0.0, True),
        ((0.0, 8.0, 9.0, 6.0), 0.0, False),  # less than half of the gain is lost
        ((0.0, 8.0, 9.0, 1.0), 15.0, False),  # nor is it clear
        ((5.0, 5.0, 5.0, 5.0), 0.0, False),
        ((5.0, 4.0, 4.0, 4.0), 0.0, True),  # there was no gain
    ],
)
def test_returns_have_fallen_if_most_of_the_gain_is_lost(quarters, spread, falls):
    returns = np.repeat(quarters, 8) + spread * np.tile([-1.0, 1.0], 16)
    assert bool(fallen(returns)) == falls


@pytest.mark.parametrize(
    ("first", "recent", "episodes", "says"),
    [
        (np.arange(8.0), 3.5, 128, "the recent ones earn 3.5 on average, no more than the 3.5 of the first 8"),
        (np.arange(8.0), 3.5, 64, ""),
        (np.arange(8.0), 3.6, 128, ""),
        (np.zeros(8), 0.0, 128, ""),  # a reward has to be found first
    ],
)
def test_what_counts_as_no_progress_where_outcomes_are_random(first, recent, episodes, says):
    wrong = lack_of_progress_at_random(first, recent, episodes)
    assert says in wrong
    assert bool(says) == bool(wrong)


@pytest.mark.parametrize(
    ("returns", "avoided"),
    [
        ([-52.0, -50.1] + [0.0] * 30, True),
        ([-52.0] * 17 + [0.0] * 15, False),  # too few
        ([-1.0] + [0.0] * 80 + [-1.0] + [0.0] * 19, False),  # one of the last quarter
        ([-13.0] * 100, False),  # the best on CliffWalking
        ([0.0] * 100, False),  # no reward at all, which is said in other words
        ([-1.0] * 8 + [1.0] + [0.0] * 30, False),  # there is something to earn
        ([], False),
    ],
)
def test_when_an_agent_may_do_nothing(returns, avoided):
    assert avoids_costs(np.array(returns)) == avoided


class Costly(Line):
    """Every move costs something, a step without one nothing, and the prize is out of reach."""

    action_space = Discrete(3)

    def step(self, action):
        observation, *_, info = super().step(action)
        return observation, -0.1 * (action != 0), False, self.t == 10, info


def test_an_agent_that_has_learned_to_do_nothing_is_not_called_a_success():
    agent = TableOrFeatures(seed=0)
    with pytest.warns(NoProgressWarning, match=r"earn 0, and there were only costs .*repeat=8") as told:
        agent.learn(Costly(), episodes=64)
    assert len(told) == 1
    advice = agent.diagnose().advice
    assert advice.startswith("recent episodes earn 0, and none has earned more: ")
    assert "rlsvi.BoundedRLSVI(repeat=8)" in advice


class Dice(gymnasium.Env):
    """Places and rewards that are random whatever is done; the first eight episodes pay more."""

    observation_space, action_space, played = Box(0, 30, (1,), np.int64), Discrete(3), 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.played = 0, self.played + 1
        return np.array([0]), {}

    def step(self, action):
        self.t += 1
        reward = float(self.np_random.integers(6)) + 6.0 * (self.played <= 8)
        return self.np_random.integers(31, size=1), reward, False, self.t == 10, {}


def test_a_table_whose_outcomes_are_random_says_that_it_stays_at_random_play():
    agent = DiscountedPSRL(seed=0)
    with pytest.warns(NoProgressWarning, match=r"after 128 episodes, .* on average, .*rlsvi.BoundedRLSVI\(\)"):
        agent.learn(Dice(), episodes=130)
    assert not agent._is_explored
    assert agent._is_random
    assert not DiscountedPSRL(seed=0).learn(Line(noise=0.0), episodes=5)._is_random


UNCOUNTED = [
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
