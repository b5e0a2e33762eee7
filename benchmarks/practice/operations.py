"""Five decision problems from operations, each with the rule that dynamic programming finds for it.

They are tasks on which the default agent is only reported: each is written as whoever has such a problem would
write it, and no default was, or may be, chosen on them. A problem says in `moves` what can follow an action, so
that the same lines are played and solved.
"""

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete

from benchmarks.practice.task import Task, by_name

State = tuple[Any, ...]


class Operations(gym.Env[Any, Any]):
    """A problem with known chances, which begins in the state `start` and is cut off after `limit` steps."""

    limit: int
    start: State

    def moves(self, state: State, action: int) -> list[tuple[float, float, State | None]]:
        """Return what can follow an action: chances, rewards and next states, None where the episode ends."""
        raise NotImplementedError

    def observe(self, state: State) -> Any:
        """Return what is seen of a state."""
        return np.array(state, self.observation_space.dtype)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        self.state, self.t = self.start, 0
        return self.observe(self.state), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act."""
        outcomes = self.moves(self.state, int(action))
        drawn = np.searchsorted(np.cumsum([chance for chance, _, _ in outcomes]), self.np_random.random())
        _, reward, following = outcomes[min(int(drawn), len(outcomes) - 1)]
        self.t, self.state = self.t + 1, self.state if following is None else following
        over = following is None
        return self.observe(self.state), float(reward), over, not over and self.t >= self.limit, {}


def poisson(mean: float, most: int) -> list[tuple[int, float]]:
    """Return the numbers 0..most with their chances; `most` also stands for all larger numbers."""
    chances = [np.exp(-mean)]
    for n in range(1, most):
        chances.append(chances[-1] * mean / n)
    return list(enumerate([*chances, 1.0 - sum(chances)]))


class Inventory(Operations):
    """Order 0 to 5 units a day, which can be sold from the third day on; unmet demand is lost.

    Seen are the units in stock, those that come tonight, and those that come tomorrow night. A unit costs 3 and
    sells for 5, storing it for a day costs 0.2, and the store has room for 20. Demand is Poisson with mean 2, at
    most 8.
    """

    limit, start, room = 50, (6, 2, 2), 20
    demand = poisson(2.0, 8)

    def __init__(self) -> None:
        self.action_space = Discrete(6)
        self.observation_space = Box(np.zeros(3, np.int64), np.array([self.room, 5, 5]), dtype=np.int64)

    def moves(self, state: State, action: int) -> list[tuple[float, float, State | None]]:
        """Sell what is asked for and in stock, pay, and receive what is due."""
        stock, tonight, tomorrow = state
        outcomes: list[tuple[float, float, State | None]] = []
        for asked, chance in self.demand:
            sold = min(stock, asked)
            left = min(stock - sold + tonight, self.room)
            outcomes.append((chance, 5.0 * sold - 3.0 * action - 0.2 * (stock - sold), (left, tomorrow, action)))
        return outcomes


class Routing(Operations):
    """Deliver parcels at four crossings of 5 x 5 streets and return to the depot in the middle.

    Actions go north, east, south and west. A block of the main streets, the row and the column of the depot, takes
    one minute, any other two, and one time in five there is a jam of three minutes more. The reward is minus the
    minutes.
    """

    limit, start = 200, (12, 15)
    customers = (0, 8, 14, 21)

    def __init__(self) -> None:
        self.action_space = Discrete(4)
        self.observation_space = Dict({"crossing": Discrete(25), "parcels": MultiBinary(4)})

    def observe(self, state: State) -> Any:
        """Return the crossing, and which parcels are left."""
        crossing, parcels = state
        return {"crossing": crossing, "parcels": np.array([parcels >> k & 1 for k in range(4)], np.int8)}

    def moves(self, state: State, action: int) -> list[tuple[float, float, State | None]]:
        """Drive to the next crossing, if there is one, and deliver."""
        crossing, parcels = state
        row, column = divmod(crossing, 5)
        main = row == 2 if action % 2 else column == 2
        row = min(max(row + (-1, 0, 1, 0)[action], 0), 4)
        column = min(max(column + (0, 1, 0, -1)[action], 0), 4)
        there = 5 * row + column
        if there in self.customers:
            parcels &= ~(1 << self.customers.index(there))
        following = None if there == 12 and not parcels else (there, parcels)
        minutes = 1.0 if main else 2.0
        return [(0.8, -minutes, following), (0.2, -minutes - 3.0, following)]


class Maintenance(Operations):
    """Three machines wear out, and one crew renews one of them at a time, or none.

    A machine has worn 0 to 4, or is broken (5). Running, it earns 1 an hour and wears by one with a chance of
    0.15 + 0.1 times its wear. The crew costs 1 for a machine that runs and 5 for a broken one, which is as new in
    the next hour and earns nothing in this one.
    """

    limit, start, broken = 60, (0, 0, 0), 5

    def __init__(self) -> None:
        self.action_space = Discrete(4)  # none, or the number of a machine
        self.observation_space = MultiDiscrete([6, 6, 6])

    def moves(self, state: State, action: int) -> list[tuple[float, float, State | None]]:
        """Renew a machine, and run the others."""
        outcomes: list[tuple[float, float, State]] = [(1.0, 0.0, ())]
        for machine, wear in enumerate(state, 1):
            if machine == action:
                after = [(1.0, -5.0 if wear == self.broken else -1.0, 0)]
            elif wear == self.broken:
                after = [(1.0, 0.0, wear)]
            else:
                p = 0.15 + 0.1 * wear
                after = [(p, 1.0, wear + 1), (1.0 - p, 1.0, wear)]
            outcomes = [(c * p, r + more, (*s, w)) for c, r, s in outcomes for p, more, w in after]
        return list(outcomes)


class Pricing(Operations):
    """Sell 20 seats in the 30 days before a departure, at one of six prices a day.

    Seen are the days and the seats left. A Poisson number of people a day asks for a seat, with mean
    2 exp(-price / w), at most 6: early travellers can pay w = 60, and late ones up to 150. An episode ends with
    the departure or the last seat. The reward is the revenue in hundreds.
    """

    limit, start = 30, (30, 20)
    prices = (40, 70, 100, 140, 190, 250)

    def __init__(self) -> None:
        self.action_space = Discrete(len(self.prices))
        self.observation_space = Box(np.zeros(2, np.int64), np.array(self.start), dtype=np.int64)

    def moves(self, state: State, action: int) -> list[tuple[float, float, State | None]]:
        """Sell seats at the price."""
        days, seats = state
        price, budget = self.prices[action], 60.0 + 90.0 * (1.0 - days / 30.0)
        outcomes: list[tuple[float, float, State | None]] = []
        for asked, chance in poisson(2.0 * float(np.exp(-price / budget)), 6):
            sold = min(asked, seats)
            over = days == 1 or sold == seats
            outcomes.append((chance, sold * price / 100.0, None if over else (days - 1, seats - sold)))
        return outcomes


class Storage(Operations):
    """Buy and sell electricity with a battery that holds four hours of its power, for four days.

    Seen are the charge, the hour of the day, and the price, 50 - 20 cos(2 pi (hour - 4) / 24) + z. The difference
    z from the usual price is 0.8 of the one before and one of five shocks, so that it hardly ever recurs. Actions:
    sell an hour's power, wait, buy. Of what is bought a tenth is lost. The reward is in hundreds.
    """

    limit, start, hold = 96, (0, 0, 0.0), 4
    shocks = ((-14.3, 0.0113), (-6.8, 0.2221), (0.0, 0.5332), (6.8, 0.2221), (14.3, 0.0113))

    def __init__(self) -> None:
        self.action_space = Discrete(3)
        least, most = np.array([[0, 0, -50], [self.hold, 23, 150]], np.float32)
        self.observation_space = Box(least, most)

    def price(self, hour: int, z: Any) -> Any:
        """Return the price in an hour."""
        return 50.0 - 20.0 * np.cos(2.0 * np.pi * (hour - 4) / 24.0) + z

    def observe(self, state: State) -> Any:
        """Return the charge, the hour and the price."""
        charge, hour, z = state
        return np.array([charge, hour, self.price(hour, z)], np.float32)

    def moves(self, state: State, action: int) -> list[tuple[float, float, State | None]]:
        """Sell or buy at the price, if the battery allows it."""
        charge, hour, z = state
        after = min(max(charge + action - 1, 0), self.hold)
        reward = self.price(hour, z) / 100.0 * (charge - after if after < charge else (charge - after) / 0.9)
        return [(p, reward, (after, (hour + 1) % 24, 0.8 * z + shock)) for shock, p in self.shocks]


# ---- The rule: what is best in the first step of an episode, played in every step --------------------------


class Rule(NamedTuple):
    """The best action in every state, and the expected return of choosing it in every step of an episode."""

    actions: dict[State, int]
    value: float
    optimum: float  # the best expected return of all, for whoever knows how much time is left

    def __call__(self, state: State) -> int:
        """Return the action in a state, or in the nearest one whose price is on the grid."""
        if state in self.actions:
            return self.actions[state]
        return self.actions[(*state[:-1], float(GRID[np.abs(GRID - state[-1]).argmin()]))]


def solve(env: Operations) -> Rule:
    """Return the rule of a problem, by dynamic programming over all states that can be reached."""
    if isinstance(env, Storage):
        return solve_storage(env)
    states, at = [env.start], {env.start: 0}
    actions = int(env.action_space.n)  # type: ignore[attr-defined]
    cells, chances, rewards, following = [], [], [], []
    for s, state in enumerate(states):  # grows as states are found
        for a in range(actions):
            for chance, reward, after in env.moves(state, a):
                if after is not None and after not in at:
                    at[after] = len(states)
                    states.append(after)
                cells.append(s * actions + a)
                chances.append(chance)
                rewards.append(reward)
                following.append(-1 if after is None else at[after])
    size, p, r = len(states) * actions, np.array(chances), np.array(rewards)

    def backed_up(V: Any) -> Any:
        later = np.append(V, 0.0)[following]  # the last entry stands for the end
        return np.bincount(cells, p * (r + later), minlength=size).reshape(-1, actions)

    best, value = np.zeros(len(states)), np.zeros(len(states))
    for _ in range(env.limit):
        Q = backed_up(best)
        best = Q.max(axis=1)
    rule = Q.argmax(axis=1)
    for _ in range(env.limit):
        value = backed_up(value)[np.arange(len(states)), rule]
    return Rule(dict(zip(states, rule.tolist(), strict=True)), float(value[0]), float(best[0]))


GRID = np.linspace(-40.0, 40.0, 161)  # differences from the usual price, between which values are interpolated


def solve_storage(env: Storage) -> Rule:
    """Return the rule of energy storage, with values that are linear between the points of a grid."""
    choices, drift = [(c, a) for c in range(env.hold + 1) for a in range(3)], np.zeros((len(GRID), len(GRID)))
    for shock, p in env.shocks:
        drift += [p * np.interp(0.8 * GRID + shock, GRID, one) for one in np.eye(len(GRID))]

    def backed_up(V: Any, hour: int) -> Any:
        Q, later = np.empty((env.hold + 1, 3, len(GRID))), V[:, (hour + 1) % 24] @ drift
        for c, a in choices:
            _, reward, (after, _, _) = env.moves((c, hour, 0.0), a)[0]  # type: ignore[misc]
            paid = reward / env.price(hour, 0.0) * env.price(hour, GRID)
            Q[c, a] = paid + later[after]
        return Q

    best, value = np.zeros((2, env.hold + 1, 24, len(GRID)))
    for _ in range(env.limit):
        Q = np.stack([backed_up(best, hour) for hour in range(24)], axis=1)
        best = Q.max(axis=2)
    rule = Q.argmax(axis=2)
    for _ in range(env.limit):
        after = np.stack([backed_up(value, hour) for hour in range(24)], axis=1)
        value = np.take_along_axis(after, rule[:, :, None], axis=2)[:, :, 0]
    found = {(c, h, float(z)): int(rule[c, h, i]) for c, h, i in np.ndindex(*rule.shape) for z in GRID[i : i + 1]}
    middle = len(GRID) // 2
    return Rule(found, float(value[0, 0, middle]), float(best[0, 0, middle]))


# ---- The tasks ---------------------------------------------------------------------------------------------

POINTS = (20, 50, 200)
# The mean return of 100 episodes of random play, and `solve(env).value`.
RANDOM = {"Inventory": 1.374, "Routing": -368.47, "Maintenance": 83.05, "Pricing": 16.501, "Storage": -2.3595}
RULES = {"Inventory": 161.327, "Routing": -34.6, "Maintenance": 160.111, "Pricing": 21.6255, "Storage": 5.7617}


def task(make: Any, why: str) -> Task:
    """Return a task whose threshold is nine tenths of the way from random play to the rule."""
    name = make.__name__
    level = RANDOM[name] + 0.9 * (RULES[name] - RANDOM[name])
    return Task(name, make, lambda _: (level,), POINTS, RANDOM[name], f"{why} Nine tenths of the way to the rule.")


OPERATIONS = by_name(
    task(Inventory, "Three whole numbers, and orders that show only days later."),
    task(Routing, "A Dict of a crossing and the parcels left; costs only, with random jams."),
    task(Maintenance, "A table of 216 states in which everything is random."),
    task(Pricing, "Two whole numbers, of which one counts down, and revenue that is mostly noise."),
    task(Storage, "A battery, the hour and a price that does not recur: losses now for gains later."),
)
