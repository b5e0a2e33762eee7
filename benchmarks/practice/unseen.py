"""Eight problems from as many trades, fixed with their references before any agent of this library met one.

They are tasks on which the default agent is only reported. A problem says in `moves` what can follow an action,
for many states at once, so that the same lines are played and solved: its reference is the expected return of
the best policy, by dynamic programming over the steps of an episode. Numbers that are measured are interpolated
between the points of a grid.

Whatever the best policy needs is seen, also the number of the step where time matters. Random play is 0 in the
tables of `python -m benchmarks.practice.shares`, and the reference 1.
"""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from scipy.interpolate import RegularGridInterpolator
from scipy.stats import poisson

from benchmarks.practice.task import Task, budgets, by_name

Moves = list[tuple[Any, Any, Any]]


class Planned(gym.Env[Any, Any]):
    """A problem with known chances, which ends after `limit` steps if it does not end before.

    A state is a row of numbers; `axes` has the points that each of them is solved at. Time is a part of the
    observation, because every return ends with the last step.
    """

    limit: int
    start: tuple[float, ...]
    axes: tuple[Any, ...]
    choices: Any  # the actions that dynamic programming chooses from, if they are real numbers

    def moves(self, t: int, states: Any, action: Any) -> Moves:
        """Return what can follow an action in step t: chances, rewards and next states, with NaN where it ends."""
        raise NotImplementedError

    def observe(self) -> Any:
        """Return what is seen: the state, and the steps that are left."""
        return np.array([*self.state, self.limit - self.t], self.observation_space.dtype)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        self.state, self.t = np.array(self.start, dtype=float), 0
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act."""
        outcomes = self.moves(self.t, self.state[None], float(np.ravel(action)[0]))
        chances = np.array([float(np.ravel(chance)[0]) for chance, _, _ in outcomes])
        drawn = min(int(np.searchsorted(np.cumsum(chances), self.np_random.random())), len(outcomes) - 1)
        _, reward, following = outcomes[drawn]
        self.t += 1
        over = bool(np.isnan(following).any()) or self.t == self.limit
        if not np.isnan(following).any():
            self.state = following[0]
        return self.observe(), float(np.ravel(reward)[0]), over, False, {}


def solve(env: Planned) -> float:
    """Return the expected return of the best policy."""
    states = np.stack(np.meshgrid(*env.axes, indexing="ij"), axis=-1).reshape(-1, len(env.axes))
    actions = range(env.action_space.n) if isinstance(env.action_space, Discrete) else env.choices
    V = np.zeros(len(states))
    for t in reversed(range(env.limit)):
        later = RegularGridInterpolator(env.axes, V.reshape([len(axis) for axis in env.axes]))
        Q = np.zeros((len(actions), len(states)))
        for a, action in enumerate(actions):
            for chance, reward, following in env.moves(t, states, float(action)):
                ends = np.isnan(following).any(axis=1)
                Q[a] += chance * (reward + np.where(ends, 0.0, later(np.where(ends[:, None], states, following))))
        V = Q.max(axis=0)
    return float(RegularGridInterpolator(env.axes, V.reshape([len(axis) for axis in env.axes]))([env.start])[0])


class Servers(Planned):
    """Switch web servers on and off for two days.

    A server that is on costs 1 an hour and answers 3 requests. Requests come by a Poisson law whose mean is 9 -
    7 cos(2 pi hour / 24). Each that waits costs 0.5 an hour, and each that comes when 40 wait is lost and costs
    5.
    """

    limit, start = 48, (0, 4)
    axes = np.arange(41), np.arange(1, 9)
    law = poisson.pmf(np.arange(40)[:, None], 9.0 - 7.0 * np.cos(2 * np.pi * np.arange(24) / 24))

    def __init__(self) -> None:
        self.action_space = Discrete(3)  # one fewer, as many, one more
        self.observation_space = Box(np.array([0, 1, 0]), np.array([40, 8, self.limit]), dtype=np.int64)

    def moves(self, t: int, states: Any, action: Any) -> Moves:
        """Switch, answer, and let requests come."""
        waiting, on = states.T
        on = np.clip(on + action - 1, 1, 8)
        left = np.maximum(waiting - 3 * on, 0)
        outcomes = []
        for come, chance in enumerate(self.law[:, t % 24]):
            after = np.minimum(left + come, 40)
            outcomes.append(
                (chance, -on - 0.5 * left - 5.0 * (left + come - after), np.stack([after, on], axis=1))
            )
        return outcomes


class Fishery(Planned):
    """Choose what share of a stock of fish to catch in each of 30 seasons.

    What is left, y, grows to y exp(1.2 (1 - y)), a fifth less or more in two years of four. A catch pays its
    size, less 0.05 times the square of the share. A stock below 0.02 does not recover, which ends the episode.
    """

    limit, start = 30, (0.8,)
    axes = (np.concatenate([[0.0], np.geomspace(0.01, 2.0, 200)]),)
    choices = np.linspace(0.0, 1.0, 101)

    def __init__(self) -> None:
        self.action_space = Box(0.0, 1.0, (1,), np.float64)
        self.observation_space = Box(np.zeros(2), np.array([2.0, self.limit]), dtype=np.float64)

    def moves(self, t: int, states: Any, action: Any) -> Moves:
        """Catch, and let the rest grow."""
        share = min(max(action, 0.0), 1.0)
        stock = states[:, 0]
        y = stock * (1.0 - share)
        outcomes = []
        for luck, chance in ((0.8, 0.25), (1.0, 0.5), (1.2, 0.25)):
            after = np.minimum(luck * y * np.exp(1.2 * (1.0 - y)), 2.0)
            after = np.where(after < 0.02, np.nan, after)
            outcomes.append((chance, stock * share - 0.05 * share**2, after[:, None]))
        return outcomes


class Ward(Planned):
    """Admit patients to a ward of six beds, or send them to another hospital.

    In every hour nobody (chance 0.3), a light case (0.5) or a severe one (0.2) comes. A light case pays 1, a
    severe one 5, and one that is sent away costs 5. In an hour one of n light cases leaves with chance 1 -
    0.9^n, and one of n severe ones with chance 1 - 0.94^n.
    """

    limit, start = 60, (0, 0, 1)
    axes = np.arange(7), np.arange(7), np.arange(3)

    def __init__(self) -> None:
        self.action_space = Discrete(2)
        self.observation_space = MultiDiscrete([7, 7, 3, self.limit + 1])

    def moves(self, t: int, states: Any, action: Any) -> Moves:
        """Admit if there is a bed, and let patients leave and come."""
        light, severe, comes = states.T
        admitted = (action == 1) & (comes > 0) & (light + severe < 6)
        reward = np.where(admitted, np.where(comes == 2, 5.0, 1.0), np.where(comes == 2, -5.0, 0.0))
        light, severe = light + (admitted & (comes == 1)), severe + (admitted & (comes == 2))
        outcomes = []
        for fewer_light, chance_light in ((0, 0.9**light), (1, 1.0 - 0.9**light)):
            for fewer_severe, chance_severe in ((0, 0.94**severe), (1, 1.0 - 0.94**severe)):
                staying = np.maximum(light - fewer_light, 0), np.maximum(severe - fewer_severe, 0)
                for following, p in enumerate((0.3, 0.5, 0.2)):
                    after = np.stack([*staying, np.full(len(states), following)], axis=1)
                    outcomes.append((p * chance_light * chance_severe, reward, after))
        return outcomes


class Lessons(Planned):
    """Choose what to practise in each of 24 lessons before an exam on four skills.

    A skill rises by one of three levels with chance 0.6 if the one before it has at least level 2, and with
    chance 0.1 otherwise; the first needs none. The exam pays the sum of levels times 1, 2, 3 and 4 for the four
    skills, divided by 30. After a lesson one skill, each with chance 0.05, falls by a level.
    """

    limit, start = 24, (0, 0, 0, 0)
    axes = (np.arange(4),) * 4

    def __init__(self) -> None:
        self.action_space = Discrete(4)
        self.observation_space = MultiDiscrete([4, 4, 4, 4, self.limit + 1])

    def moves(self, t: int, states: Any, action: Any) -> Moves:
        """Practise a skill, and forget a little of any."""
        skill = int(action)
        ready = np.ones(len(states), bool) if skill == 0 else states[:, skill - 1] >= 2
        rises = np.where(ready, 0.6, 0.1)
        outcomes = []
        for learned, chance in ((1, rises), (0, 1.0 - rises)):
            for forgotten, p in ((None, 0.8), *((each, 0.05) for each in range(4))):
                after = states.copy()
                after[:, skill] = np.minimum(after[:, skill] + learned, 3)
                if forgotten is not None:
                    after[:, forgotten] = np.maximum(after[:, forgotten] - 1, 0)
                exam = after @ [1.0, 2.0, 3.0, 4.0] / 30.0 if t == self.limit - 1 else np.zeros(len(states))
                outcomes.append((p * chance, exam, after))
        return outcomes


class Train(Planned):
    """Drive a train two kilometres to a platform with little energy: brake, coast or accelerate every 5 seconds.

    Accelerating by 0.5 m/s^2 costs 0.01 times the speed that is reached, braking takes 0.8 m/s^2, coasting 0.03.
    At the end of the way the train stops: that pays 10 at a speed of at most 3 m/s, and costs 5 at a higher one.
    A step costs 0.05.
    """

    limit, start = 60, (0.0, 0.0)
    axes = np.linspace(0.0, 2000.0, 401), np.linspace(0.0, 30.0, 121)

    def __init__(self) -> None:
        self.action_space = Discrete(3)
        self.observation_space = Box(np.zeros(3), np.array([2000.0, 30.0, self.limit]), dtype=np.float64)

    def moves(self, t: int, states: Any, action: Any) -> Moves:
        """Drive for five seconds."""
        way, speed = states.T
        after = np.clip(speed + 5.0 * (-0.8, -0.03, 0.5)[int(action)], 0.0, 30.0)
        way = way + 2.5 * (speed + after)
        arrives = way >= 2000.0
        reward = -0.05 - 0.01 * after * (action == 2) + np.where(arrives, np.where(after <= 3.0, 10.0, -5.0), 0.0)
        return [(1.0, reward, np.stack([np.where(arrives, np.nan, way), after], axis=1))]


class Advertising(Planned):
    """Bid for 50 views of an advertisement with a budget of 30.

    The worth of a view, 1 to 8, is seen before the bid of 0 to 5. The highest other bid is 0 to 5, with chances
    .1, .25, .25, .2, .1 and .1. Whoever bids more than that gets the view and pays it.
    """

    limit, start = 50, (30, 3)
    axes = np.arange(31), np.arange(1, 9)
    worths = (0.25, 0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.04)
    others = (0.1, 0.25, 0.25, 0.2, 0.1, 0.1)

    def __init__(self) -> None:
        self.action_space = Discrete(6)
        self.observation_space = Box(np.array([0, 1, 0]), np.array([30, 8, self.limit]), dtype=np.int64)

    def moves(self, t: int, states: Any, action: Any) -> Moves:
        """Bid, and show the next view."""
        budget, worth = states.T
        outcomes = []
        for other, chance in enumerate(self.others):
            wins = (np.minimum(action, budget) > other) & (budget >= other)
            reward, left = np.where(wins, worth, 0.0), np.where(wins, budget - other, budget)
            for following, p in enumerate(self.worths, 1):
                outcomes.append((p * chance, reward, np.stack([left, np.full(len(states), following)], axis=1)))
        return outcomes


class Pig(Planned):
    """The dice game Pig, alone against the clock: reach 60 points with few turns.

    A roll adds to the points of the turn, but a one loses them and the turn. Holding keeps them. A turn costs 1;
    with 60 points the game is over. There are 150 rolls and holds.
    """

    limit, start = 150, (0, 0)
    axes = np.arange(60), np.arange(66)

    def __init__(self) -> None:
        self.action_space = Discrete(2)
        self.observation_space = MultiDiscrete([60, 66])

    def observe(self) -> Any:
        """Return the points that are kept, and those of the turn."""
        return self.state.astype(np.int64)

    def moves(self, t: int, states: Any, action: Any) -> Moves:
        """Roll or hold."""
        kept, turn = states.T
        if action == 0:
            sure = kept + turn
            held = np.stack([np.where(sure >= 60, np.nan, sure), np.zeros(len(states))], axis=1)
            return [(1.0, np.full(len(states), -1.0), held)]
        outcomes: Moves = [(1 / 6, np.full(len(states), -1.0), np.stack([kept, np.zeros(len(states))], axis=1))]
        for face in range(2, 7):
            outcomes.append((1 / 6, np.zeros(len(states)), np.stack([kept, np.minimum(turn + face, 65)], axis=1)))
        return outcomes


class Field(Planned):
    """Water a field for 60 days by its moisture and the forecast.

    A day's growth is 1 - ((moisture - 0.55) / 0.3)^2, at least 0. Water, 0.08 or 0.2 of the field's capacity,
    costs 0.2 or 0.4; a tenth and 0.06 of the moisture are lost every day. The forecast is dry, mixed or wet;
    then 0.15 falls with chance 0.05, 0.4 or 0.8, and the next forecast is the same with chance 0.6.
    """

    limit, start = 60, (0.5, 0)
    axes = np.linspace(0.0, 1.0, 201), np.arange(3)

    def __init__(self) -> None:
        self.action_space = Discrete(3)
        self.observation_space = Box(np.zeros(3), np.array([1.0, 2.0, self.limit]), dtype=np.float64)

    def moves(self, t: int, states: Any, action: Any) -> Moves:
        """Water, grow, and let it rain or not."""
        moisture, forecast = states[:, 0], states[:, 1].astype(int)
        water, cost = ((0.0, 0.0), (0.08, 0.2), (0.2, 0.4))[int(action)]
        wet = np.minimum(moisture + water, 1.0)
        reward = np.maximum(0.0, 1.0 - ((wet - 0.55) / 0.3) ** 2) - cost
        outcomes = []
        rain = np.array([0.05, 0.4, 0.8])[forecast]
        for falls, chance in ((0.15, rain), (0.0, 1.0 - rain)):
            after = np.clip(0.9 * wet - 0.06 + falls, 0.0, 1.0)
            for following in range(3):
                p = np.where(forecast == following, 0.6, 0.2)
                outcomes.append((p * chance, reward, np.stack([after, np.full(len(states), following)], axis=1)))
        return outcomes


# ---- The tasks ---------------------------------------------------------------------------------------------

POINTS = (20, 50, 200)
# The mean return of 100 episodes of random play, and `solve(env)`.
RANDOM = {
    "Servers": -683.8,
    "Fishery": 5.518,
    "Ward": 10.46,
    "Lessons": 0.262,
    "Train": -4.55,
    "Advertising": 63.8,
    "Pig": -24.96,
    "Field": 11.67,
}
REFERENCES = {
    "Servers": -178.552,
    "Fishery": 12.6454,
    "Ward": 62.7799,
    "Lessons": 0.892939,
    "Train": 7.77552,
    "Advertising": 97.1686,
    "Pig": -7.60496,
    "Field": 50.9845,
}


def task(make: Any, why: str, *learners: str) -> Task:
    """Return a task whose threshold is nine tenths of the way; the rivals have ten times as many episodes."""
    name, low = make.__name__, RANDOM[make.__name__]
    level = low + 0.9 * (REFERENCES[name] - low)
    steps = budgets(**dict.fromkeys(learners or ("dqn", "ppo"), 10 * POINTS[-1] * make.limit))
    return Task(
        name, make, lambda _: (level,), POINTS, low, f"{why} Nine tenths of the way to the best.", steps=steps
    )


UNSEEN = by_name(
    task(Servers, "Whole numbers, two thousand states an hour, and demand that has to be foreseen."),
    task(Fishery, "One real action and one real number: what pays now costs later.", "ppo"),
    task(Ward, "Counts and a category, where refusing a small reward keeps room for a large one."),
    task(Lessons, "One reward at the end, for doing four things in order."),
    task(Train, "Two real numbers without luck, a sparse prize, and costs on the way to it."),
    task(Advertising, "A budget and a clock, six actions, and rewards that are mostly luck."),
    task(Pig, "A game of dice whose episodes are long at first and short at last."),
    task(Field, "A real number and a category, rewards in every step, and rain."),
)
