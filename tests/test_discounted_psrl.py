"""DiscountedPSRL: counts, samples and values against plain Python, its evidence, and observations of any kind."""

from itertools import product

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text, Tuple

import rlsvi
import saved
from contract.environments import MDP
from rlsvi import DiscountedPSRL, NoProgressWarning
from rlsvi.agents.contract import POSTERIOR
from rlsvi.agents.diagnosis import FIRST_EPISODES, earned, nothing_earned
from rlsvi.agents.tabular.discounted_psrl import EARLY, END, STAGES, WORST, count, no_model, plain_bytes
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.core.random import normal, stream
from rlsvi.envs import FiniteMDPEnv
from twin import Transitions

GAMMA = 0.9


class Grid(gymnasium.Env):
    """A square; the reward in the far corner ends the episode. Its observations are made by `show`."""

    def __init__(self, size=6, prize=1.0, space=None, show=None):
        self.size, self.prize, self.show = size, prize, show or (lambda i, j: i * size + j)
        self.action_space, self.observation_space = Discrete(4), space or Discrete(size * size)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.t = (0, 0), 0
        return self.show(*self.at), {}

    def step(self, action):
        move = ((-1, 0), (0, 1), (1, 0), (0, -1))[action]
        i, j = (min(max(x + dx, 0), self.size - 1) for x, dx in zip(self.at, move, strict=True))
        self.at, self.t = (i, j), self.t + 1
        found = i == j == self.size - 1
        return self.show(i, j), self.prize * found, found, self.t >= self.size**2, {}


def walk():
    """A walk with masks, chance, an end, and a time limit that is no end."""
    return Transitions(gymnasium.wrappers.TimeLimit(FiniteMDPEnv(MDP, endless=True), 7))


# ---- against plain Python ---------------------------------------------------------------------------------


class Table:
    """Counts of raw transitions in dictionaries."""

    def __init__(self, rows, order):
        self.cells, self.order, met = {}, order, set()
        self.revisits = []  # whether the cell has varied, its visits, whether this was new, and a state never met
        for s, a, r, y in rows:
            outcomes = self.cells.setdefault((order[s], a), {})
            visits = sum(len(rewards) for rewards in outcomes.values())
            new = order[y] not in outcomes
            if 1 <= visits < EARLY:
                self.revisits.append((len(outcomes) > 1, visits, new, new and y not in {*met, s, None}))
            outcomes.setdefault(order[y], []).append(r)
            met |= {s, y}

    def alpha_and_rho(self):
        """The fixed points of both kinds and all stages, and the part of new outcomes that was a find."""
        found = np.zeros((2, 2, STAGES))
        for kind in (0, 1):
            alpha, rho = 1.0, 1.0
            for stage in range(STAGES):
                some = [each[1:] for each in self.revisits if (each[0], each[1].bit_length() - 1) == (kind, stage)]
                news, before = 1 + sum(new for _, new, _ in some), alpha
                for _ in range(1000):
                    alpha = news / (1 / before + sum(1 / (i + alpha) for i, _, _ in some))
                rho = (rho + sum(find for _, _, find in some)) / news
                found[:, kind, stage] = alpha, rho
        return found

    def draw(self, legal, alpha, rho, noise):
        """A model: of each cell the chances by next state, of a find and of another new outcome; its reward."""
        spread = {
            cell: sum(((np.array(r) - np.mean(r)) ** 2).sum() for r in outcomes.values())
            for cell, outcomes in self.cells.items()
        }
        freedom = sum(len(r) - 1 for outcomes in self.cells.values() for r in outcomes.values())
        pooled, model = sum(spread.values()) / max(freedom, 1), {}
        for s, a in np.argwhere(legal):
            outcomes = self.cells.get((s, a), {})
            if not outcomes:
                model[s, a] = {}, 1.0, 0.0, 0.0
                continue
            n = sum(len(r) for r in outcomes.values())
            group = int(len(outcomes) > 1), min(n.bit_length() - 1, STAGES - 1)
            weights = [gamma_variate(noise, alpha[group])]
            weights += [gamma_variate(noise, float(len(r))) for r in reversed(outcomes.values())]
            p = np.array(weights) / sum(weights)
            variance = (spread[s, a] + pooled) / (n - len(outcomes) + 1)
            shift = np.sqrt(variance / n) * normal(noise) if variance > 0 else 0.0
            chances = dict(zip(reversed(outcomes), p[1:], strict=True))
            reward = sum(chances[y] * np.mean(r) for y, r in outcomes.items())
            model[s, a] = chances, rho[group] * p[0], (1 - rho[group]) * p[0], reward + shift
        return model

    def best(self, s, V):
        """The value of the best outcome of any action in a state."""
        outcomes = [(np.mean(r), y) for (at, _), each in self.cells.items() if at == s for y, r in each.items()]
        return max((r + (GAMMA * V[y] if y != END else 0.0) for r, y in outcomes), default=0.0)


def solved(table, model, states, worth):
    """Values of a model by value iteration, to the end."""
    V = np.zeros(states)
    for _ in range(300):
        Q, best = {}, [table.best(s, V) for s in range(states)]
        for (s, _), (chances, find, other, reward) in model.items():
            following = sum(p * V[y] for y, p in chances.items() if y != END)
            Q.setdefault(s, []).append(find * worth + other * best[s] + reward + GAMMA * following)
        V = np.array([max(Q[s]) for s in range(states)])
    return V


@pytest.mark.parametrize("episodes", [1, 3, 30])
def test_counts_samples_and_values_are_those_of_raw_transitions(episodes):
    env = walk()
    agent = DiscountedPSRL(seed=1, gamma=GAMMA, sweeps=10**6).learn(env, episodes=episodes)
    learner = agent._learner
    order = {None: END}
    for s, _, _, y in env.rows:
        for state in (s, y):
            order.setdefault(state, len(order) - 1)
    table, S = Table(env.rows, order), len(order) - 1
    model = learner.model
    assert model.sizes.tolist() == [S, sum(len(outcomes) for outcomes in table.cells.values())]
    alpha, rho = table.alpha_and_rho()
    assert model.alpha == pytest.approx(alpha, rel=0.05)
    assert model.rho == pytest.approx(rho)
    noise = agent._streams[POSTERIOR]
    twin = table.draw(model.legal, model.alpha, model.rho, noise.copy())
    sample = learner.plan(True, noise.copy())
    worth = 2 * best_return(env.rows, agent)
    assert sample.worth[0] == pytest.approx(worth)
    assert sample.V[:S] == pytest.approx(solved(table, twin, S, worth), rel=1e-2)


def best_return(rows, agent):
    """The best discounted sum of rewards from any step on; episodes last seven steps, or end.

    One that does not end also counts as if it were repeated for ever.
    """
    best, episode = 0.0, []
    for i, (_, _, r, y) in enumerate(rows):
        episode.append(r)
        if y is None or len(episode) == 7 or i == len(rows) - 1:
            sums = [sum(GAMMA**k * r for k, r in enumerate(episode[t:])) for t in range(len(episode))]
            for_ever = sums[0] / (1 - GAMMA ** len(episode)) if y is not None else 0.0
            best, episode = max(best, for_ever, *sums), []
    return best


def test_values_follow_a_redrawn_cell_as_if_all_were_solved_again():
    env, agent = walk(), DiscountedPSRL(seed=1, gamma=GAMMA, sweeps=10**6, backups=10**6)
    learner = agent.learn(env, episodes=30)._learner
    plan = learner.plan(True, agent._streams[POSTERIOR], learning=True)
    place = learner.look(0, 0, MDP.table.legal[0, 0])
    following = learner.look(1, 1, MDP.table.legal[0, 1])
    later = learner.remember([rlsvi.agents.contract.Step(place, 0, 5.0, following)], plan, False)
    changed = later.plan(True, agent._streams[POSTERIOR], learning=True)
    before = changed.V.copy()
    for s in range(learner.model.sizes[0]):
        Q = later.values(changed, place._replace(row=s))
        assert before[s] == pytest.approx(Q[later.model.legal[s]].max(), rel=1e-3)
    assert learner.model.visits.sum() == later.model.visits.sum() - 1, "the learner before stays as it was"


def test_the_mean_uses_counts_alone_and_avoids_what_was_not_tried():
    agent = DiscountedPSRL(seed=0).learn(Grid(4), episodes=1)
    plan = agent._learner.plan(False, stream(0))
    tried = agent._learner.model.visits > 0
    assert plan.find[tried].max() == plan.other[tried].max() == 0
    assert plan.worth[0] == 0.0


def test_alpha_maximizes_the_posterior_of_the_new_outcomes_of_its_stage():
    rng, model, grid = np.random.default_rng(0), no_model(200, 4000, 1), np.geomspace(1e-3, 30, 4000)
    model.sizes[0] = 200
    logs = np.zeros((2, STAGES, len(grid)))
    for s in range(100):
        seen = []
        for i in range(20):
            y = int(rng.integers(100)) if rng.uniform() < 0.8 / (i + 0.8) else seen[int(rng.integers(i))]
            if i:
                logs[int(len(set(seen)) > 1), i.bit_length() - 1] += np.log(
                    (grid if y not in seen else i) / (i + grid)
                )
            seen.append(y)
            count(model, s, 0, 0.0, y)
    for kind in (0, 1):
        before = 1.0
        for stage in range(STAGES):
            likely = np.log(grid) - grid / before + logs[kind, stage]
            assert model.alpha[kind, stage] == pytest.approx(grid[np.argmax(likely)], rel=0.03)
            before = model.alpha[kind, stage]


# ---- behaviour --------------------------------------------------------------------------------------------


def value(agent, env, episodes=20):
    return rlsvi.evaluate(agent, env, episodes=episodes, seed=5).mean


def test_a_maze_with_one_prize_is_solved_in_few_episodes():
    agent = DiscountedPSRL(seed=0).learn(Grid(12), episodes=8)
    assert value(agent, Grid(12), 3) == 1
    assert agent.states == 143, "the corner ends the episode and is no state"
    assert agent.alpha < 0.01, "nothing is random here"


def test_chance_is_noticed():
    lake = gymnasium.make("FrozenLake-v1")
    agent = DiscountedPSRL(seed=0).learn(lake, episodes=150)
    assert agent.alpha > 0.2


class Lottery(gymnasium.Env):
    """Three places; every action leads anywhere, and pays or costs some of the time. Ends after 12 steps."""

    action_space, observation_space = Discrete(3), Box(0, 2, (1,))

    def __init__(self, low, high):
        self.low, self.high = low, high

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observation_space.low, {}

    def step(self, action):
        self.t += 1
        place, reward = self.np_random.integers(3), self.np_random.uniform(self.low, self.high)
        paid = self.t > 4 and self.np_random.random() < 0.5 + 0.1 * action
        return np.array([place], np.float32), reward * paid, False, self.t >= 12, {}


class Sea(Grid):
    """Going right costs a little, going left nothing; the prize is at the end of the rights."""

    def step(self, action):
        right, self.at, self.t = action % 2, (self.t + 1, self.at[1] + action % 2), self.t + 1
        found = self.at[1] == self.size - 1
        return self.show(*self.at), self.prize * (found - 0.01 * right), self.t == self.size - 1, False, {}


@pytest.mark.parametrize(
    ("make", "size"),
    [*product([DiscountedPSRL], [2.0**-13, 2.0**13, 1e-4, 1e4]), *product([rlsvi.agent_for], [2.0**-13, 2.0**13])],
)
@pytest.mark.parametrize(
    "problem", [lambda: Grid(5, space=Box(0, 24, (1,)), show=lambda i, j: np.array([5.0 * i + j])),
                lambda: Lottery(-1, 0), lambda: Lottery(0, 1), lambda: Lottery(-1, 1)],
    ids=["maze", "costs", "prizes", "both"],
)  # fmt: skip
def test_rewards_of_any_size_are_learned_alike_from_the_first_step_on(problem, size, make):
    seen = []
    for factor in (1.0, size):
        env = Transitions(gymnasium.wrappers.TransformReward(problem(), lambda r, factor=factor: factor * r))
        agent = make(seed=3) if make is DiscountedPSRL else make(env, seed=3)
        agent.learn(env, episodes=10)
        seen.append([a for _, a, _, _ in env.rows])
    assert seen[0] == seen[1]


def test_a_prize_is_found_behind_costs_that_can_be_avoided():
    env = Sea(8)
    agent = DiscountedPSRL(seed=0).learn(env, episodes=60)
    assert value(agent, env, 1) == pytest.approx(0.93)


class Arms(gymnasium.Env):
    """Three arms with noisy rewards, all negative; one step an episode."""

    action_space, observation_space = Discrete(3), Discrete(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, float(self.np_random.normal((-3.0, -2.0, -2.5)[action], 2.0)), True, False, {}


def test_noisy_rewards_are_explored():
    found = [
        DiscountedPSRL(seed=seed).learn(Arms(), episodes=400).predict(0, deterministic=True) for seed in range(10)
    ]
    assert sum(action == 1 for action, _ in found) >= 8


class Cut(gymnasium.Env):
    """One state that pays 1 for ever, but time is up after one step, or the episode ends there."""

    action_space, observation_space = Discrete(1), Discrete(1)

    def __init__(self, ends):
        self.ends = ends

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, 1.0, self.ends, not self.ends, {}


@pytest.mark.parametrize(("ends", "expected"), [(True, 1.0), (False, 100.0)])
def test_a_time_limit_is_no_end(ends, expected):
    agent = DiscountedPSRL(seed=0).learn(Cut(ends), episodes=3)
    assert agent._plan(True).V[0] == pytest.approx(expected)


class Paying(gymnasium.Env):
    """One state, and actions that pay .5 to 1, or cost as much; time is up after a few steps."""

    action_space, observation_space = Discrete(5), Discrete(1)

    def __init__(self, steps, sign=1.0):
        self.steps, self.sign = steps, sign

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return 0, {}

    def step(self, action):
        self.t += 1
        return 0, self.sign * (0.5, 0.6, 0.7, 0.8, 1.0)[action], False, self.t >= self.steps, {}


@pytest.mark.parametrize("steps", [1, 10, 100])
@pytest.mark.parametrize(("sign", "best"), [(1.0, 4), (-1.0, 0)])
def test_a_short_time_limit_does_not_end_exploration(steps, sign, best):
    """What is seen until time is up is less than a value, which goes on for ever."""
    env = Paying(steps, sign)
    for seed in range(5):
        agent = DiscountedPSRL(seed=seed).learn(env, episodes=-(-200 // steps))
        assert agent.predict(0, deterministic=True)[0] == best


def test_the_mean_avoids_what_was_not_tried_though_all_is_costly():
    agent = DiscountedPSRL(seed=0).learn(Paying(3, -1.0), episodes=1)
    model = agent._learner.model
    untried = model.visits[0] == 0
    assert untried.any()
    assert not untried[agent.predict(0, deterministic=True)[0]]


class Contexts(Arms):
    """Eight real numbers, most of them new or most of them known, and an action that is the best on average."""

    action_space, observation_space = Discrete(5), Box(-np.inf, np.inf, (8,))

    def __init__(self, known=0.0):
        self.known = known

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        new = self.np_random.random() >= self.known
        return (self.np_random.normal(size=8) * new).astype(np.float32), {}

    def step(self, action):
        reward = self.np_random.normal((0.0, 0.2, -0.1, 1.0, 0.1)[action], 0.3)
        return np.zeros(8, np.float32), float(reward), True, False, {}


@pytest.mark.parametrize("known", [0.0, 0.8])
def test_unknown_observations_get_the_action_that_is_best_on_average(known):
    env = Contexts(known)
    for seed in range(5):
        agent = DiscountedPSRL(seed=seed).learn(env, episodes=30)
        new = np.full(8, 7.0)
        assert agent.predict(new, deterministic=True)[0] == 3
        learner, plan = agent._learner, agent._plan(True)
        visits, known = learner.model.visits[: agent.states], plan.Q[:-1]
        met = [
            [Q for Q, n in zip(*cell, strict=True) for _ in range(int(n))]
            for cell in zip(known.T, visits.T, strict=True)
        ]
        mean = np.mean(np.concatenate(met))
        expected = [np.mean([*each, mean]) if each else plan.worth[0] for each in met]
        np.testing.assert_allclose(learner.values(plan, learner.look(0, new, None)), expected)


def test_an_action_that_was_never_tried_is_not_preferred():
    agent = DiscountedPSRL(seed=0).learn(Contexts(), episodes=2)
    tried = agent._learner.model.visits.any(axis=0)
    assert tried[agent.predict(np.full(8, 7.0), deterministic=True)[0]]


def test_only_complete_returns_count():
    class Trap(Arms):
        def reset(self, *, seed=None, options=None):
            self.t = 0
            return super().reset(seed=seed)

        def step(self, action):
            self.t += 1
            return 0, (1000.0, -2000.0)[self.t - 1], self.t == 2, False, {}

    learner = DiscountedPSRL(seed=0).learn(Trap(), episodes=1)._learner
    assert learner.worth == 1500.0
    assert learner.model.totals[WORST] == pytest.approx(-2000.0)


def test_a_plan_of_an_earlier_table_is_refused():
    agent = DiscountedPSRL(seed=0).learn(Grid(3), episodes=1)
    plan = agent._learner.plan(False, stream(0))
    small = plan._replace(V=plan.V[:2])
    with pytest.raises(ValueError, match="plan anew"):
        agent._learner.values(small, agent._learner.look(0, 0, None))


def test_a_table_that_falls_behind_its_first_episodes_says_so():
    class Falling(Paying):
        played = 0

        def reset(self, *, seed=None, options=None):
            self.played += 1
            return super().reset(seed=seed)

        def step(self, action):
            return 0, 1.0 if self.played <= 8 else 0.5, True, False, {}

    with pytest.warns(NoProgressWarning, match=r"after 32 episodes, the recent ones earn 0\.5, .*optimism="):
        DiscountedPSRL(seed=0).learn(Falling(1), episodes=40)


def test_the_summary_of_returns_holds_the_first_and_the_last_quarter():
    held, returns = nothing_earned(), np.arange(1.0, 129.0)
    for i, total in enumerate(returns, 1):
        held = earned(held, i, total)
        if i in (32, 64, 128):
            assert held[FIRST_EPISODES] == returns[i - i // 4 : i].sum()
    assert held[:FIRST_EPISODES].tolist() == returns[:FIRST_EPISODES].tolist()


# ---- observations -----------------------------------------------------------------------------------------

SPACES = {
    "text": (Text(5), lambda i, j: f"{i}-{j}"),
    "picture": (Box(0, 1, (6, 6), np.float32), lambda i, j: np.eye(36, dtype=np.float32)[6 * i + j].reshape(6, 6)),
    "dict": (
        Dict({"i": Discrete(6), "j": Box(0, 9, (1,))}),
        lambda i, j: {"i": i, "j": np.array([j], np.float32)},
    ),
    "tuple": (Tuple((Discrete(6), Text(2))), lambda i, j: (i, str(j))),
}


@pytest.mark.parametrize("kind", SPACES)
def test_observations_of_any_kind_are_one_table(kind, tmp_path):
    """Whatever they look like, the same is learned, and goes on after loading."""
    plain = Transitions(Grid())
    DiscountedPSRL(seed=2).learn(plain, episodes=6)
    env = Transitions(Grid(6, 1.0, *SPACES[kind]))
    agent = DiscountedPSRL(seed=2).learn(env, episodes=3)
    agent.save(tmp_path / "agent")
    agent = rlsvi.load(tmp_path / "agent").learn(env, episodes=3)
    assert [row[1] for row in env.rows] == [row[1] for row in plain.rows]
    assert agent.predict(SPACES[kind][1](5, 4), deterministic=True)[0] == 1


def test_equal_numbers_are_equal_and_others_differ():
    same = [3, 3.0, np.int64(3), np.float32(3), np.array(3), True + 2]
    assert len({plain_bytes(x) for x in same}) == 1
    others = [
        3,
        "3",
        b"4",
        [3],
        [[3]],
        (3, 3),
        {3: 3},
        {"3": 3},
        np.zeros(2),
        np.zeros((2, 1)),
        2**60,
        2**60 + 1,
        (),
    ]
    assert len({plain_bytes(x) for x in others}) == len(others)
    large = np.array([2**53 + 1, 2**62 + 1])
    same_bits = [large, large.view(np.uint64) + np.uint64(0), large.view(np.float64)]
    assert len({plain_bytes(x) for x in same_bits}) == 3
    assert len({plain_bytes(x) for x in (2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2.0**63)}) == 5
    assert plain_bytes({"a": 1, "b": 2}) == plain_bytes({"b": 2, "a": 1})
    assert plain_bytes(np.array([-0.0])) == plain_bytes(np.array([0]))


@pytest.mark.parametrize("bad", [float("nan"), [1, np.inf], None, object(), np.array([None]), 1j])
def test_what_cannot_be_looked_up_is_refused(bad):
    with pytest.raises(ValueError, match="observation"):
        plain_bytes(bad)


def test_other_observations_are_refused_later():
    agent = DiscountedPSRL(seed=0).learn(Grid(4), episodes=2)
    with pytest.raises(ValueError, match="clone"):
        agent.learn(Grid(4, 1.0, *SPACES["text"]), episodes=1)


def test_counted_observations_can_be_exported_and_others_not(tmp_path):
    pair = (gymnasium.spaces.MultiDiscrete([6, 6]), lambda i, j: np.array([i, j]))
    agent = DiscountedPSRL(seed=0).learn(Grid(6, 1.0, *pair), episodes=8)
    agent.export(tmp_path / "policy.npz")
    with np.load(tmp_path / "policy.npz") as file:
        actions = file["actions"].reshape(6, 6)
    for i, j in ((0, 0), (2, 3), (5, 4)):
        assert actions[i, j] == agent.predict(np.array([i, j]), deterministic=True)[0]
    for kind in ("text", "picture"):
        agent = DiscountedPSRL(seed=0).learn(Grid(6, 1.0, *SPACES[kind]), episodes=1)
        with pytest.raises(ValueError, match="save"):
            agent.export(tmp_path / "policy.npz")


# ---- exploration fades ------------------------------------------------------------------------------------


class TwoQueues(gymnasium.Env):
    """Two lines of up to `room` customers, of which one is served at a time; time is up after 60 steps."""

    action_space = Discrete(3)  # which to serve, or none

    def __init__(self, room=5):
        self.room, self.observation_space = room, Discrete((room + 1) ** 2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.lines, self.t = [0, 0], 0
        return 0, {}

    def step(self, action):
        reward, chance = -0.1 * sum(self.lines), self.np_random.random(3)
        if action < 2 and self.lines[action] and chance[2] < 0.8:
            self.lines[action] -= 1
            reward += 1.0 + action
        self.lines = [min(n + int(chance[i] < (0.5, 0.3)[i]), self.room) for i, n in enumerate(self.lines)]
        self.t += 1
        return self.lines[0] * (self.room + 1) + self.lines[1], reward, False, self.t >= 60, {}


def test_exploration_of_a_noisy_problem_fades():
    """New outcomes keep coming here, but none of them is worth more than what is known."""
    earned_greedily, earned_in_learning = [], []
    for seed in range(100, 104):
        env, returns = TwoQueues(), []
        agent = DiscountedPSRL(seed=seed).learn(env, 100, on_episode=lambda _, total, to=returns: to.append(total))
        earned_greedily.append(value(agent, env))
        earned_in_learning.append(np.mean(returns[-25:]))
    assert np.mean(earned_in_learning) > 0.75 * np.mean(earned_greedily)


def test_values_of_a_fixed_plan_are_computed_once_and_are_the_same():
    agent = DiscountedPSRL(seed=1).learn(walk(), episodes=20)
    learner = agent._learner
    for sampled in (False, True):
        plan = learner.plan(sampled, stream(0))
        assert len(plan.Q) == len(learner.rows) + 1
        for s in range(len(learner.rows)):
            place = rlsvi.agents.contract.Place(0, None, learner.model.legal[s], s)
            anew = learner.values(plan._replace(Q=plan.Q[:0]), place)
            np.testing.assert_array_equal(learner.values(plan, place), anew)


def test_a_file_of_an_earlier_version_is_read(tmp_path):
    """It had one alpha for cells of any number of visits, and no count of finds."""
    agent = DiscountedPSRL(seed=1).learn(walk(), episodes=20)
    agent.save(tmp_path / "new")
    header, arrays = saved.read(tmp_path / "new")
    later = {f"model.{name}" for name in ("news", "finds", "alpha", "rho")}
    kept = {name: array for name, array in arrays.items() if name not in later}
    kept["model.totals"] = np.array([7.0, 0.5, *arrays["model.totals"]])
    kept["model.revisits"] = arrays["model.revisits"].sum(axis=0)
    saved.write(tmp_path / "old", header, kept)
    old = rlsvi.load(tmp_path / "old")
    model = old._learner.model
    assert (model.alpha == 0.5).all()
    assert (model.rho == 1).all()
    assert old._plan(True).Q.tolist() == agent._plan(True).Q.tolist(), "the mean is that of the counts"
    old.learn(walk(), episodes=3)
    assert (model.news >= model.finds).all()
