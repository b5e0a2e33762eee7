"""What a shop's recommender would earn, judged by the events of the past before it serves any customer."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from gymnasium.spaces import Box, Discrete
from scipy.stats import t as student_t

from rlsvi.bases import StateFeatures
from rlsvi.core.compile import Bools, Floats
from rlsvi.envs.spaces import Spaces
from rlsvi.judge.result import OfflineValue
from rlsvi.judge.value import value_of
from rlsvi.shop.catalogue import with_features
from rlsvi.shop.event import Event
from rlsvi.shop.events import Events
from rlsvi.shop.model.draws import Draws, choose
from rlsvi.shop.model.learner import ShopLearner
from rlsvi.shop.model.targets import sign_of
from rlsvi.shop.settings import ShopSettings
from rlsvi.study.bootstrap import Interval

AT_ONCE = 20_000  # events that are read at once


class ShopValue(NamedTuple):
    """Estimates of the reward per visit, each with its interval."""

    logged: Interval  # of the policy that made the events
    halves: tuple[OfflineValue, OfflineValue]  # by the first half of the visits, and by the second

    @property
    def estimates(self) -> dict[str, Interval]:
        """The mean of both halves, by every estimator that both have. They are independent given the policies."""
        first, second = (half.estimates for half in self.halves)
        return {name: _mean(first[name], second[name]) for name in first if name in second}

    def __str__(self) -> str:
        known = {"the policy of the log": self.logged, **self.estimates}
        lines = [f"{name:<30}{interval}" for name, interval in known.items()]
        effective = [half.effective for half in self.halves if half.effective is not None]
        notes = [f"{sum(half.episodes for half in self.halves)} visits"]
        notes += [f"{sum(effective):.1f} effective visits of importance sampling"] if effective else []
        notes += [f"{name}: {why}" for half in self.halves for name, why in half.absent.items()]
        level = f"reward per visit, with {100 * self.halves[0].level:g}% intervals"
        return "\n".join([level, *lines, *dict.fromkeys(notes)])


def judge(
    settings: ShopSettings, events: Iterable[Event] | Events | None = None, *, level: float = 0.95
) -> ShopValue:
    """Estimate the reward per visit of the recommender, from events that another policy has made.

    The visits are split in two halves, in the order in which they began. What is judged by each half is the
    posterior mean that is learned from the other one, so nothing is judged by the data that it was fitted to.
    Visits that have not ended are left out.

    Parameters
    ----------
    settings : the settings of the shop.
    events : the events, in order. If None, those of the shop's database.
    level : the probability of the intervals.

    Returns
    -------
    Estimates by fitted Q evaluation and, if every recommendation has a propensity, by importance sampling and the
    doubly robust one.
    """
    if events is None:
        with Events(settings.database) as opened:
            return judge(settings, opened, level=level)
    stored = with_features(_all_of(events) if isinstance(events, Events) else list(events), settings)
    begun = list(dict.fromkeys(event.visit for event in stored if event.visit))
    if len(begun) < 4:
        raise ValueError(f"events must have at least 4 visits, to learn from one half of them, got {len(begun)}")
    halves = set(begun[: len(begun) // 2]), set(begun[len(begun) // 2 :])
    found, returns = zip(*(_judged(settings, stored, halves[1 - i], level) for i in (0, 1)), strict=True)
    return ShopValue(_student(np.concatenate(returns), level), found)


def _all_of(events: Events) -> list[Event]:
    found: list[Event] = []
    while some := events.since(found[-1].id if found else 0, AT_ONCE):
        found += some
    return found


def _mean(a: Interval, b: Interval) -> Interval:
    value = (a.value + b.value) / 2
    return Interval(
        value,
        value - math.hypot(a.value - a.low, b.value - b.low) / 2,
        value + math.hypot(a.high - a.value, b.high - b.value) / 2,
    )


def _student(returns: Floats, level: float) -> Interval:
    """Return the mean of the rewards of visits, with Student's interval."""
    mean, n = float(returns.mean()), returns.size
    wide = float(student_t.ppf((1 + level) / 2, n - 1) * returns.std(ddof=1) / math.sqrt(n)) if n > 1 else math.inf
    return Interval(mean, mean - wide, mean + wide)


def _judged(
    settings: ShopSettings, events: list[Event], learned: set[str], level: float
) -> tuple[OfflineValue, Floats]:
    """Return what the visits that are not in `learned` say of the policy learned from those, and their rewards."""
    learner = ShopLearner(settings)
    for event in events:
        if not event.visit or event.visit in learned:
            learner.take(event)
    policy, others = MeanPolicy(learner.refresh()), [event for event in events if event.visit not in learned]
    log = log_of(settings, learner.products, others)
    spaces = Spaces(Box(-np.inf, np.inf, (policy.width,)), Discrete(len(learner.products)))
    value = value_of(
        policy,
        log,
        spaces,
        horizon=settings.slots,
        per_period=False,
        basis=StateFeatures(policy.features),
        level=level,
    )
    rewards = log.group_by("episode").agg(pl.col("reward").sum())["reward"]
    return value, rewards.to_numpy()


class MeanPolicy:
    """The posterior mean as a policy of observations (c, x, j): the customer, the answers by product, the slot."""

    def __init__(self, draws: Draws) -> None:
        self._draws, self._customer = draws, int(draws.customer)
        N, m = draws.z.shape
        places = draws.weight.shape[1] - 1 - self._customer - m
        self.width = self._customer + N + 1
        self._answers = np.zeros((N, places + m))
        for n in range(N):
            self._answers[n, n % places] = sign_of(n, places)
        self._answers[:, places:] = draws.z

    def predict(self, observation: Any, action_mask: Bools) -> int:
        """Return the product that is shown."""
        x = observation[self._customer : -1]
        known = np.flatnonzero(x)
        return choose(self._draws, 0, observation[: self._customer], known, x[known], action_mask).product

    def features(self, observation: Any) -> Floats:
        """Return the features of fitted Q evaluation: those of the recommender, and the slot."""
        q = self._customer
        return np.concatenate([[1.0], observation[:q], observation[q:-1] @ self._answers, observation[-1:]])


def log_of(settings: ShopSettings, products: dict[str, int], events: Iterable[Event]) -> pl.DataFrame:
    """Return visits that have ended as a log of episodes, a step for every recommendation that was answered."""
    offered = np.zeros(len(products), dtype=np.bool_)
    visits: dict[str, _LoggedVisit] = {}
    for event in events:
        if event.kind in ("added", "removed"):
            offered[products[event.product]] = event.kind == "added"
        elif event.kind == "recommended":
            visit = visits.setdefault(event.visit, _LoggedVisit(settings, products, event))
            visit.show(event, offered)
        elif event.visit in visits:
            visits[event.visit].take(event)
    rows = [row for number, visit in enumerate(visits.values()) for row in visit.rows(number)]
    if not rows:
        raise ValueError("no visit of the events has ended: close visits, or judge by others")
    log = pl.DataFrame(rows, infer_schema_length=None)
    return log if log["propensity"].null_count() == 0 else log.drop("propensity")


class _LoggedVisit:
    """A visit on its way to the log."""

    def __init__(self, settings: ShopSettings, products: dict[str, int], first: Event) -> None:
        self._settings, self._products = settings, products
        self._customer = settings.customer.encode_stored(first.features)
        self._x, self._seen = np.zeros(len(products)), np.zeros(len(products), dtype=np.bool_)
        self._steps: dict[str, dict[str, Any]] = {}
        self._closed = False

    def show(self, event: Event, offered: Bools) -> None:
        """Note what was known when a product was shown."""
        slot = 2.0 * (event.slot or 0) / self._settings.slots - 1
        a = self._products[event.product]
        self._steps[event.product] = {
            "observation": [*self._customer, *self._x, slot],
            "mask": (offered & ~self._seen).tolist(),
            "action": a,
            "reward": None,
            "propensity": event.propensity,
        }
        self._steps[event.product]["mask"][a] = True  # if it was removed in this moment
        self._seen[a] = True

    def take(self, event: Event) -> None:
        """Note an answer, or that the visit was closed."""
        if event.kind == "answered" and event.product in self._steps:
            self._steps[event.product]["reward"] = event.reward
            liked = (event.reward or 0.0) > self._settings.reward.liked_above
            self._x[self._products[event.product]] = 1.0 if liked else -1.0
        self._closed = self._closed or event.kind == "closed"
        for step in self._steps.values() if event.kind == "closed" else ():
            step["reward"] = self._settings.reward.unanswered if step["reward"] is None else step["reward"]

    def rows(self, number: int) -> list[dict[str, Any]]:
        """Return the steps, or nothing if the visit goes on."""
        steps = [step for step in self._steps.values() if step["reward"] is not None]
        if not (self._closed or len(steps) == self._settings.slots):
            return []
        following = [*steps[1:], steps[-1]] if steps else []
        return [
            {
                "episode": number,
                "step": i,
                **step,
                "next_observation": after["observation"],
                "next_mask": after["mask"],
                "terminated": i == len(steps) - 1,
                "truncated": False,
            }
            for i, (step, after) in enumerate(zip(steps, following, strict=True))
        ]
