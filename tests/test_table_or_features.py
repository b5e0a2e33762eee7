"""TableOrFeatures: when it changes how it learns, that nothing is lost then, and what `agent_for` returns."""

import logging
import warnings
from functools import partial

import gymnasium
import numpy as np
import polars as pl
import pytest
from benchmarks.practice.worlds import DeepSeaPicture, Rooms
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Text, Tuple

import rlsvi
from contract.interrupts import every_line, interrupted, some
from contract.state import assert_equal, everything
from rlsvi import BoundedRLSVI, DiscountedPSRL, NoProgressWarning, TableOrFeatures, agent_for
from rlsvi.agents import table_or_features
from rlsvi.agents.contract import Place, Step
from rlsvi.agents.practice.bounded_rlsvi import sweep
from rlsvi.agents.table_or_features import Record, is_judged
from rlsvi.agents.tabular.table import TabularAgent
from rlsvi.bases.layout import layout_of, observation_of, vector_of
from rlsvi.envs import Spaces


class Line(gymnasium.Env):
    """Seven places, seen as `places` numbers; with `noise`, no observation is seen twice."""

    def __init__(self, noise=0.0, places=7):
        self.noise = noise
        self.action_space = Discrete(2, start=5)
        self.observation_space = Box(-2.0, 2.0, (places,), np.float32)

    def look(self):
        seen = np.zeros(self.observation_space.shape, np.float32)
        seen[self.x] = 1.0
        return seen + np.float32(self.noise) * self.np_random.uniform(size=seen.shape).astype(np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = 0, 0
        return self.look(), {}

    def step(self, action):
        self.x, self.t = min(max(self.x + (1 if action == 6 else -1), 0), 6), self.t + 1
        return self.look(), float(self.x == 6), self.x == 6, self.t == 20, {}


class Counted(Line):
    """The same with counted observations, of which there could be more than a table holds."""

    def __init__(self, others=2000):
        super().__init__()
        self.observation_space = MultiDiscrete([7, others])

    def look(self):
        return np.array([self.x, 0])


def test_observations_that_recur_stay_a_table():
    agent = TableOrFeatures(seed=0).learn(Line(), episodes=10)
    assert agent.uses_table
    assert isinstance(agent.acting, DiscountedPSRL)
    assert agent.acting.states == 6
    assert rlsvi.evaluate(agent, Line(), 3).mean == 1


def test_nothing_is_chosen_where_features_would_be_a_table_too(monkeypatch, tmp_path):
    monkeypatch.setattr(table_or_features, "LEAST_SEEN", 1.1)  # nothing recurs often enough
    monkeypatch.setattr(table_or_features, "FEWEST_WHOLE", 1)
    assert not TableOrFeatures(seed=0).learn(Counted(), episodes=2).uses_table
    agent = TableOrFeatures(seed=0).learn(Counted(others=2), episodes=3)
    assert agent.uses_table
    assert agent.explain().endswith("with so few values that features would be a table too.")
    assert len(agent._returns()) == 3, "the returns are known, though episodes are not kept"
    agent.save(tmp_path / "agent")
    assert rlsvi.load(tmp_path / "agent").explain() == agent.explain()


def test_observations_that_do_not_recur_get_features_that_know_everything(caplog):
    with caplog.at_level(logging.INFO, "rlsvi"):
        agent = TableOrFeatures(seed=0).learn(Line(noise=0.1), episodes=3)
    assert not agent.uses_table
    assert "Learning with features, as judged after 2 episodes: 0% of observations were seen" in caplog.text
    history = agent._learner.active.history
    assert len(history.transitions.row) == agent.steps
    assert agent._learner.counters[:2].tolist() == [agent.episodes, agent.steps]
    assert agent.episodes == 3
    assert len(history.x) == agent.steps + agent.episodes - (history.transitions.next == -1).sum()


def test_a_change_that_fails_is_not_reported(caplog, monkeypatch):
    def broken(*arguments):
        raise MemoryError

    monkeypatch.setattr(table_or_features.ChoosingLearner, "_replay", broken)
    with caplog.at_level(logging.INFO, "rlsvi"), pytest.raises(MemoryError):
        TableOrFeatures(seed=0).learn(Line(noise=0.1), episodes=3)
    assert "Learning with" not in caplog.text


def test_it_goes_back_to_a_table_when_observations_turn_out_to_recur():
    env = Line(noise=0.1)
    agent = TableOrFeatures(seed=0).learn(env, episodes=3)
    assert not agent.uses_table
    env.noise = 0.0
    agent.learn(env, episodes=20)
    assert agent.uses_table
    assert agent._learner.active.model.visits.sum() == agent.steps
    assert rlsvi.evaluate(agent, Line(), 3).mean == 1


def test_the_choice_becomes_final(monkeypatch):
    monkeypatch.setattr(table_or_features, "FINAL_STEPS", 30)
    env = Line(noise=0.1)
    agent = TableOrFeatures(seed=0).learn(env, episodes=9)
    assert not agent.uses_table
    assert agent._learner.record is not None, "it changed after two episodes, and may have to go back"
    agent.learn(env, episodes=2)
    assert agent._learner.record is None
    env.noise = 0.0
    assert not agent.learn(env, episodes=20).uses_table


def test_a_long_first_episode_decides_nothing(monkeypatch):
    monkeypatch.setattr(table_or_features, "FINAL_STEPS", 10)
    env = Line(noise=0.1)
    agent = TableOrFeatures(seed=0).learn(env, episodes=1)
    assert agent.steps >= 10
    assert agent._learner.record is not None
    assert not agent.learn(env, episodes=3).uses_table


@pytest.mark.parametrize(("name", "change"), [("record.x", 5.5), ("record.lengths", None)])
def test_a_file_whose_record_does_not_fit_is_refused(name, change, tmp_path):
    agent = TableOrFeatures(seed=0).learn(Counted(), episodes=4)
    state = agent._learner.state()
    if change is None:  # two episodes as one
        joined = state[name][0] + state[name][1]
        state[name] = np.array([joined, *state[name][2:]])
    else:
        state[name] = np.where(state[name] == state[name].max(), change, state[name])
    agent._learner.state = lambda: state
    agent.save(tmp_path / "agent.rlsvi")
    with pytest.raises(ValueError, match="damaged"):
        rlsvi.load(tmp_path / "agent.rlsvi")


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_saving_at_any_time_changes_nothing(noise, tmp_path):
    """Also before, at and after the change to features."""
    whole = TableOrFeatures(seed=4).learn(Line(noise), episodes=6)
    parts = TableOrFeatures(seed=4)
    for _ in range(6):
        parts.learn(Line(noise), episodes=1)
        parts.save(tmp_path / "agent")
        parts = rlsvi.load(tmp_path / "agent")
    assert parts.uses_table == (noise == 0.0)
    assert_equal(everything(parts, tmp_path), everything(whole, tmp_path))


def test_an_interruption_of_the_change_leaves_the_episode_before(tmp_path):
    def learned(episodes):
        return TableOrFeatures(seed=0).learn(Line(noise=0.1), episodes=episodes)

    change = next(n for n in range(1, 6) if not learned(n).uses_table)
    states = [everything(learned(n), tmp_path) for n in (change - 1, change)]
    for at in some(every_line(partial(learned(change - 1).learn, Line(noise=0.1), episodes=1)), 25):
        agent = learned(change - 1)
        interrupted(partial(agent.learn, Line(noise=0.1), episodes=1), at)
        assert everything(agent, tmp_path) in states


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_many_environments_are_predicted_at_once(noise):
    agent = TableOrFeatures(seed=0).learn(Line(noise), episodes=6)
    seen = np.eye(7, dtype=np.float32)[:6]
    together = agent.predict(seen, deterministic=True)[0]
    assert together.tolist() == [agent.predict(x, deterministic=True)[0] for x in seen]


# ---- what is decided, and why ------------------------------------------------------------------------------


class Queues(gymnasium.Env):
    """Three queues, seen as their lengths, one of which is served in each step; waiting costs 4, 2 or 1.

    Lengths are whole numbers that soon recur, and a table has to try every action at all of them.
    """

    action_space = Discrete(3)
    observation_space = Box(0.0, 10.0, (3,), np.float32)
    cost, arrive, serve = np.array([0.4, 0.2, 0.1]), np.array([0.35, 0.25, 0.3]), np.array([0.9, 0.5, 1.0])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = self.np_random.integers(0, 6, 3), 0
        return self.x.astype(np.float32), {}

    def step(self, action):
        reward = -float(self.cost @ self.x)
        self.x[action] -= self.x[action] > 0 and self.np_random.random() < self.serve[action]
        self.x = np.minimum(self.x + (self.np_random.random(3) < self.arrive), 10)
        self.t += 1
        return self.x.astype(np.float32), reward, False, self.t == 40, {}


def play(kinds, totals, length=8, actions=2):
    """Return a record of episodes played by a table ("T") or features ("F"), with these returns."""
    record = Record.empty()
    for kind, total in zip(kinds, totals, strict=True):
        place = Place(0, None, np.ones(actions, np.bool_), block=np.zeros(1))
        steps = [Step(place, 0, total / length, place)] * length
        record = record.with_episode(steps, kind == "T")
    return record


def test_judgements_come_after_2_3_4_6_8_12_16_episodes():
    assert [n for n in range(1, 70) if is_judged(n)] == [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]


def test_what_recurs_is_an_observation_with_its_action():
    record = Record.empty()
    for action in (0, 1, 1):
        place = Place(0, None, np.array([True, True]), block=np.zeros(1))
        record = record.with_episode([Step(place, action, 1.0, place)] * 30, True)
    assert record.recurring == [0, 0, 30]
    assert record.seen == 60
    assert record.known == 1.0


@pytest.mark.parametrize(
    ("kinds", "totals", "fallen"),
    [
        ("TTFFFFFTTTT", [0, 0, 0, 9, 9, 9, 9, 1, 1, 1, 1], (1.0, 9.0)),
        ("TTFFFFFTTTT", [0, 0, 0, 9, 9, 9, 9, 7, 7, 7, 7], None),  # less than half of the gain is lost
        ("TTFFFFFTTT", [0, 0, 0, 9, 9, 9, 9, 1, 1, 1], None),  # too early to tell
        ("TTFFFFFTTTT", [0, 0, 0, 9, 9, 9, 9, 20, -12, 22, -14], None),  # nor is it clear
        ("TTTTTTTTFFFF", [0, 0, 0, 0, 8, 8, 8, 8, 1, 1, 1, 1], (8.0, 1.0)),
        ("TTTTTTFFFF", [5, 5, 5, 5, 5, 5, 5, 5, 5, 5], None),
    ],
)
def test_returns_have_fallen_if_most_of_the_gain_is_lost(kinds, totals, fallen):
    assert play(kinds, totals).fallen_returns() == fallen


@pytest.mark.slow
def test_whole_numbers_that_recur_are_left_to_features():
    queues = agent_for(Queues(), seed=100).learn(Queues(), episodes=48)
    record = queues._learner.record
    assert record.seen / record.counted > 0.4  # more than half was once enough for a table
    assert not queues.uses_table
    assert "what steps led to is predicted" in queues.explain()


def test_a_table_of_whole_numbers_gives_way_to_features(monkeypatch):
    """Though so many observations recur that nothing else decides against the table."""
    monkeypatch.setattr(table_or_features, "LEAST_SEEN", 0.0)
    agent, said = TableOrFeatures(seed=100), []
    agent.learn(Queues(), episodes=12, on_episode=lambda agent, _: said.append(agent.explain()))
    assert not agent.uses_table
    assert any("with features" in why and "predicted with an error of" in why for why in said)


class CountedQueues(Queues):
    """The same as three categories, of 1,331 combinations: features are sums of what each category is worth."""

    observation_space = MultiDiscrete([11, 11, 11])

    def reset(self, *, seed=None, options=None):
        x, info = super().reset(seed=seed)
        return x.astype(np.int64), info

    def step(self, action):
        x, *rest = super().step(action)
        return x.astype(np.int64), *rest


@pytest.mark.parametrize("seed", [100, 101])
def test_categories_of_many_combinations_are_left_to_features(seed):
    agent = agent_for(CountedQueues(), seed=seed).learn(CountedQueues(), episodes=16)
    assert not agent.uses_table
    assert "what steps led to is predicted" in agent.explain()


class Sales(gymnasium.Env):
    """Thirty days to sell ten seats at one of three prices: days and seats recur, and demand is mostly noise.

    With `scrambled` days and seats are one number in no order, which only a table can make sense of; the action
    that pays 1 differs from number to number, and the next one is drawn from three.
    """

    action_space = Discrete(3)

    def __init__(self, scrambled=False):
        self.scrambled = scrambled
        self.observation_space = Box(0.0, 60.0, (1 if scrambled else 2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.days, self.seats, self.at = 30, 10, 0
        return self.look(), {}

    def look(self):
        return np.array([self.at * 7 % 60] if self.scrambled else [self.days, self.seats], np.float32)

    def step(self, action):
        self.days -= 1
        if self.scrambled:
            reward = float(self.at**2 % 7 % 3 == action)
            self.at = (self.at * 11 + int(self.np_random.integers(3)) + 1) % 60
            return self.look(), reward, False, self.days == 0, {}
        sold = min(int(self.np_random.poisson((1.2, 0.6, 0.3)[action])), self.seats)
        self.seats -= sold
        return self.look(), sold * (1.0, 1.8, 3.0)[action], self.days == 0 or self.seats == 0, False, {}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_noise_at_numbers_that_recur_is_left_to_features(seed):
    agent = TableOrFeatures(seed=seed).learn(Sales(), episodes=16)
    assert agent._learner.record.is_random
    assert not agent.uses_table


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_numbers_in_no_order_are_left_to_a_table(seed):
    played = []
    env = Sales(scrambled=True)
    agent = TableOrFeatures(seed=seed).learn(env, 24, on_episode=lambda one, _: played.append(one.uses_table))
    assert agent._learner.record.is_random
    assert all(played)


@pytest.mark.slow
def test_a_table_comes_back_if_it_predicts_better(monkeypatch):
    monkeypatch.setattr(table_or_features, "LEAST_SEEN", 1.1)  # nothing recurs often enough
    agent = TableOrFeatures(seed=1).learn(Sales(scrambled=True), episodes=4)
    assert not agent.uses_table
    monkeypatch.setattr(table_or_features, "LEAST_SEEN", 0.1)
    assert agent.learn(Sales(scrambled=True), episodes=60).uses_table
    assert "with a table" in agent.explain()
    assert "predicted with an error of" in agent.explain()


class OneDecision(gymnasium.Env):
    """One action at each observation of two real numbers."""

    action_space, observation_space = Discrete(2), Box(-1.0, 1.0, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-1.0, 1.0, 2).astype(np.float32)
        return self.x, {}

    def step(self, action):
        return self.x, float(self.x[0] * (2 * action - 1)), True, False, {}


def test_a_few_short_episodes_that_meet_nothing_known_are_enough():
    agent = TableOrFeatures(seed=0).learn(OneDecision(), episodes=8)
    assert agent.uses_table, "seven steps after the first episode are not"
    assert not agent.learn(OneDecision(), episodes=4).uses_table


@pytest.mark.parametrize(("following", "random"), [([1, 1, 1], False), ([1, 2, 1], True), ([1], False)])
def test_outcomes_are_random_if_the_same_step_leads_elsewhere(following, random):
    def place(x):
        return Place(0, None, np.array([True, True]), block=np.array([float(x)]))

    record = Record.empty()
    for x in following:
        record = record.with_episode([Step(place(0), 1, -0.5, place(x))], True)
    assert record.is_random == random
    assert not record.is_rewarded


@pytest.mark.slow
def test_costs_of_looking_for_a_treasure_do_not_end_the_search():
    """With these seeds so little recurs at first that features learn, until a table does."""
    for seed in (3, 4):
        assert agent_for(DeepSeaPicture(size=30), seed=seed).learn(DeepSeaPicture(size=30), 40).uses_table


def test_it_goes_back_if_returns_fall(monkeypatch):
    class Trap(Line):
        """Features of it are as good as ever, and a table is paid nothing."""

        def step(self, action):
            observation, _, *rest = super().step(action)
            return observation, 0.0 if self.agent.uses_table else 1.0, *rest

    env = Trap(noise=0.1)
    env.agent = agent = TableOrFeatures(seed=0).learn(Line(noise=0.1), episodes=3)
    agent.learn(env, episodes=5)
    assert not agent.uses_table
    env.noise = 0.0
    played, said = [], []
    agent.learn(env, 60, on_episode=lambda *_: (played.append(agent.uses_table), said.append(agent.explain()))[:0])
    back = played.index(False, played.index(True))
    assert "returns had fallen from" in said[back]
    assert back - played.index(True) == 4
    again = agent.episodes - 60 + back + 1  # the number of episodes when it went back
    assert not any(played[back : back + again - 1]), "until there are twice as many"


def test_the_reason_of_a_choice_is_told_and_saved(tmp_path):
    agent = TableOrFeatures(seed=0)
    assert agent.explain().startswith("Learning with a table for now: ")
    agent.learn(Line(noise=0.1), episodes=2)
    assert agent.explain() == (
        "Learning with features, as judged after 2 episodes: 0% of observations were seen in an earlier episode."
    )
    assert agent.explain() in agent._repr_html_()
    agent.save(tmp_path / "agent")
    assert rlsvi.load(tmp_path / "agent").explain() == agent.explain()


def test_a_file_of_before_still_loads(tmp_path):
    agent = TableOrFeatures(seed=0).learn(Line(), episodes=4)
    state = agent._learner.state()
    state = {name: array for name, array in state.items() if name not in ("choice", "record.tables")}
    agent._learner.state = lambda: state
    agent.save(tmp_path / "agent")
    older = rlsvi.load(tmp_path / "agent")
    assert older.learn(Line(), episodes=6).uses_table
    assert older._learner.record.tables == [True] * 10


SPACES = [
    Discrete(5, start=-2),
    Box(-1, 1, (2, 3)),
    MultiDiscrete([3, 4]),
    Tuple((Box(0, 1, (2,)), Discrete(3), Dict({"a": MultiDiscrete([[2, 2], [3, 3]]), "b": Box(0, 1, ())}))),
]


@pytest.mark.parametrize("space", SPACES)
def test_an_observation_can_be_made_of_its_vector(space):
    layout = layout_of(space)
    space.seed(0)
    for _ in range(5):
        x = vector_of(layout, space.sample())
        assert np.array_equal(vector_of(layout, observation_of(layout, x)), x)


def test_the_agent_for_an_environment():
    assert isinstance(agent_for(gymnasium.make("rlsvi/Chain-v0", length=5)), rlsvi.RLSVI)
    assert isinstance(agent_for(gymnasium.make("FrozenLake-v1"), seed=7, gamma=0.9), DiscountedPSRL)
    assert isinstance(agent_for(Spaces(Text(5), Discrete(2))), DiscountedPSRL)
    made = agent_for(gymnasium.make("CartPole-v1"), seed=7)
    assert isinstance(made, TableOrFeatures)
    assert made.seed == 7
    for space in (MultiDiscrete([3, 4]), Box(0, 255, (8, 8), np.uint8), Dict({"a": Discrete(2)})):
        assert isinstance(agent_for(Spaces(space, Discrete(2))), TableOrFeatures)
    basis = rlsvi.bases.Fourier()
    assert isinstance(agent_for(gymnasium.make("CartPole-v1"), basis=basis), BoundedRLSVI)
    assert isinstance(agent_for(Spaces(Dict(a=Text(5), b=Discrete(2)), Discrete(2))), TableOrFeatures)
    with pytest.raises(ValueError, match="BoundedRLSVI learns with features"):
        agent_for(Spaces(Text(5), Discrete(2)), sigma=1.0)


# ---- runs without progress --------------------------------------------------------------------------------


class Unpaid(Line):
    """The same line without a reward."""

    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, 0.0, terminated, truncated, info


class Poorer(Line):
    """Observations recur; the first eight episodes pay 1, later ones one half."""

    played = 0

    def reset(self, *, seed=None, options=None):
        self.played += 1
        return super().reset(seed=seed)

    def step(self, action):
        observation, *_, truncated, info = super().step(action)
        return observation, 1.0 if self.played <= 8 else 0.5, True, truncated, info


def warned(agent, env, episodes):
    """Return what NoProgressWarning says while an agent learns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        agent.learn(env, episodes)
    told = [each for each in caught if each.category is NoProgressWarning]
    assert {each.filename for each in told} <= {__file__}, "a warning points at the line that called learn"
    return [str(each.message) for each in told]


def numbered(env):
    """Return the line with numbered observations."""
    space = Discrete(7)
    return gymnasium.wrappers.TransformObservation(env, lambda x: int(x.argmax()), space)


TABULAR = [kind for kind in TabularAgent.__subclasses__() if kind.__module__.startswith("rlsvi.")]


@pytest.mark.parametrize(
    ("agent", "env", "episodes", "tries"),
    [
        (TableOrFeatures(seed=0), Unpaid(), 200, "or try another gamma=, or rlsvi.DiscountedPSRL with"),
        (
            TableOrFeatures(seed=0),
            Unpaid(noise=1.0),
            40,
            "or try a larger gamma=, or rlsvi.BoundedRLSVI with",
        ),
        (DiscountedPSRL(seed=0), numbered(Unpaid()), 200, "or try another gamma= or optimism="),
        (DiscountedPSRL(seed=0), Unpaid(noise=1.0), 40, "or features, since few observations recur"),
        (BoundedRLSVI(seed=0), Unpaid(noise=1.0), 40, "or try repeat=1 or 4"),
        (rlsvi.RLSVI(horizon=8, seed=0), numbered(Unpaid()), 200, "or try a smaller lam= or a larger sigma="),
        (rlsvi.LSVI(horizon=8, seed=0), numbered(Unpaid()), 200, "or try rlsvi.RLSVI, which explores"),
        *((kind(horizon=8, seed=0), numbered(Unpaid()), 130, "or try another agent") for kind in TABULAR),
        (rlsvi.StationaryRLSVI(seed=0), numbered(Unpaid()), 130, "or try a smaller lam= or a larger sigma="),
        (
            rlsvi.StationaryLSVI(basis=rlsvi.bases.StateFeatures(np.copy), seed=0),
            Unpaid(),
            130,
            "or try rlsvi.StationaryRLSVI, which explores",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_run_that_never_finds_a_reward_says_so_once(agent, env, episodes, tries):
    (said,) = warned(agent, env, episodes)
    assert "there was no reward in any of" in said
    assert tries in said


def test_rewards_that_cancel_each_other_are_rewards():
    class Cancelling(Unpaid):
        gain = -1.0

        def step(self, action):
            observation, *_, info = super().step(action)
            self.gain = -self.gain
            return observation, self.gain, True, False, info

    agent = rlsvi.PSRL(reward_range=(-1, 1), horizon=1, homogeneous=True, seed=0)
    env = gymnasium.wrappers.TransformAction(numbered(Cancelling()), lambda action: 0, Discrete(1))
    assert warned(agent, env, 64) == []
    assert not agent._learner.mind.counts.reward.any()


@pytest.mark.parametrize(
    ("agent", "episodes"),
    [pytest.param(rlsvi.PSRL(seed=0), 64, marks=pytest.mark.slow), (rlsvi.StationaryRLSVI(seed=0), 64)],
    ids=lambda value: type(value).__name__,
)
def test_a_table_that_still_explores_does_not_warn(agent, episodes):
    assert warned(agent, deep_sea(20), episodes) == []


def deep_sea(size):
    """DeepSea without its costs, so that nothing but the treasure is rewarded."""
    env = gymnasium.make("rlsvi/DeepSea-v0", size=size)
    return gymnasium.wrappers.TransformReward(env, lambda reward: float(reward > 0.5))


@pytest.mark.parametrize(
    ("env", "episodes"),
    [(partial(deep_sea, 20), 64), (partial(gymnasium.make, "FrozenLake-v1", map_name="8x8"), 32)],
    ids=["deep-sea", "FrozenLake"],
)
def test_a_run_that_still_explores_does_not(env, episodes):
    env, returns = env(), []
    agent = agent_for(env, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoProgressWarning)
        agent.learn(env, episodes, on_episode=lambda _, total: returns.append(total))
    assert returns == [0.0] * episodes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("env", "episodes"),
    [
        (partial(deep_sea, 20), 512),
        (partial(gymnasium.make, "FrozenLake-v1"), 256),
        (partial(gymnasium.make, "FrozenLake-v1", map_name="8x8"), 256),
        (partial(Rooms, 20), 64),
    ],
    ids=["deep-sea", "FrozenLake", "FrozenLake-8x8", "rooms"],
)
def test_runs_of_the_usual_length_find_their_reward_without_a_warning(env, episodes, seed):
    env, found = env(), []
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoProgressWarning)
        agent_for(env, seed=seed).learn(env, episodes, on_episode=lambda _, total: found.append(total > 0))
    assert any(found)


def test_a_table_is_told_of_features_but_not_that_little_recurs():
    (said,) = warned(TableOrFeatures(seed=0), Poorer(), 40)
    assert "the recent ones earn 0.5" in said
    assert ": try another gamma=, or rlsvi.DiscountedPSRL with another optimism=, or features of the" in said


def test_costs_of_exploration_are_not_held_against_a_table():
    """DeepSea charges for every step to the right, where the treasure is."""
    env = gymnasium.make("rlsvi/DeepSea-v0", size=10)
    measured = gymnasium.wrappers.TransformObservation(env, lambda s: np.float32([s]), Box(0, 1000, (1,)))
    assert warned(DiscountedPSRL(seed=0), env, 64) == []
    assert warned(TableOrFeatures(seed=0), measured, 64) == []


class Cut(Line):
    """A line that is cut off before anything but the costs of its steps is seen."""

    def step(self, action):
        observation, *_, info = super().step(action)
        return observation, -1.0, False, self.t == 5, info


@pytest.mark.parametrize(
    "agent", [TableOrFeatures(seed=0), BoundedRLSVI(seed=0, repeat=1)], ids=["table", "features"]
)
def test_a_run_that_stays_at_random_play_says_so_once(agent):
    (said,) = warned(agent, Cut(noise=0.0 if isinstance(agent, TableOrFeatures) else 0.1), 130)
    assert "the recent ones earn -5, no more than most of the first 8, played almost at random" in said


def test_plans_that_end_far_from_convergence_are_told_of_once(monkeypatch):
    changes = iter([0.5] * 20 + [0.01] + [0.5] * 40)  # one that converges begins the count anew

    def swept(*given):
        return sweep(*given)._replace(change=next(changes))

    monkeypatch.setattr("rlsvi.agents.practice.bounded_rlsvi.sweep", swept)
    agent = BoundedRLSVI(seed=0, repeat=1)
    assert warned(agent, Line(noise=0.1), 53) == []  # the first episode has no plan
    (said,) = warned(agent, Line(noise=0.1), 5)
    assert said.startswith("the last 32 plans ended before their values had converged: try a smaller gamma=")
    assert agent._learner.unsettled == 36


def test_plans_that_are_kept_count_once(monkeypatch):
    monkeypatch.setattr("rlsvi.agents.practice.bounded_rlsvi.STEPS_PLANNED_ALWAYS", 40)
    monkeypatch.setattr("rlsvi.agents.practice.bounded_rlsvi.UNSETTLED_CHANGE", -1.0)
    agent, plans = BoundedRLSVI(seed=0, repeat=1), []
    agent.learn(Line(noise=0.1), 24, on_episode=lambda agent, _: plans.append(agent.planned))
    made = [plan for before, plan in zip([None, *plans], plans, strict=False) if plan is not before]
    assert agent._learner.unsettled < 23
    assert agent._learner.unsettled == len(made)


def test_a_log_that_was_fitted_does_not_use_up_the_warning():
    log = rlsvi.record(numbered(Unpaid()), DiscountedPSRL(seed=0), episodes=31, learning=True)
    log = pl.concat([log, log.with_columns(pl.col("episode") + 31)])  # so that 32 episodes are passed
    agent = DiscountedPSRL(seed=0).fit(log, numbered(Unpaid()))
    assert len(warned(agent, numbered(Unpaid()), 64)) == 1
