"""Past visits as steps: what was known, what was shown and earned, and what each sample would have shown.

Memory is that of the answers of every visit, and a number for each sample: no step has the size of the catalogue.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.shop.events import Event
from rlsvi.shop.model.draws import Draws, best_by_sample, known_row
from rlsvi.shop.settings import ShopSettings


class JudgedSteps(NamedTuple):
    """Recommendations that were answered, in visits that have ended; visit e has start[e] .. start[e + 1] - 1."""

    start: Longs  # (E + 1,)
    features: Any  # (R, d) sparse: what was known, u of `Sizes`, and the slot, scaled to between -1 and 1
    shown: Longs  # (R,) the product
    reward: Floats  # (R,)
    propensity: Floats | None  # (R,) None if it is not known of all
    chosen: Longs  # (R, S) the product that each sample would have shown
    products: int  # N

    @property
    def visits(self) -> int:
        """The number of visits."""
        return len(self.start) - 1

    @property
    def last(self) -> Bools:
        """Which steps are the last of their visits, (R,)."""
        found = np.zeros(len(self.shown), np.bool_)
        found[self.start[1:] - 1] = True
        return found


class _Step(NamedTuple):
    """A recommendation: what was known, what was shown, and what each sample would have shown."""

    places: Longs  # where the features are not zero
    value: Floats
    product: int
    propensity: float | None
    chosen: Longs


def steps_of(
    settings: ShopSettings, products: dict[str, int], draws: Draws, events: Iterable[Event]
) -> JudgedSteps:
    """Return the steps of visits that have ended, and what the samples 1 .. S of the posterior would have shown.

    A sample chooses among the products that were offered at that time, and new to the visit, and in `among` if the
    event has it.
    """
    every = draws._replace(offered=np.ones(len(products), np.bool_))  # the samples know only what is offered now
    offered = np.zeros(len(products), np.bool_)
    visits: dict[str, _JudgedVisit] = {}
    ended: list[list[tuple[_Step, float]]] = []
    added: set[str] = set()
    for event in events:
        if event.kind in ("added", "removed"):
            offered[products[event.product]] = event.kind == "added"
            added.add(event.product)
            continue
        if event.product and event.product not in products:  # it was never added: it is not learned from either
            continue
        visit = visits.get(event.visit)
        if visit is None:
            visit = visits[event.visit] = _JudgedVisit(settings, products, event)
        if visit.take(event, every, offered, min(settings.slots, len(added))):
            ended.append(visit.answered())
            visit.steps.clear()
    return _joined([visit for visit in ended if visit], every)


class _JudgedVisit:
    """A visit on its way to its end."""

    def __init__(self, settings: ShopSettings, products: dict[str, int], first: Event) -> None:
        self._settings, self._products = settings, products
        self._customer = settings.customer.encode_stored(first.features)
        self._answers: dict[int, float] = {}  # 1 or -1 by product
        self.steps: dict[int, tuple[_Step, float | None]] = {}  # with the reward, by product
        self._over = False

    def take(self, event: Event, draws: Draws, offered: Bools, enough: int) -> bool:
        """Take an event, and return whether the visit ends with it: it is closed, or has enough answers."""
        if self._over:
            return False
        if event.kind == "recommended":
            self.steps[self._products[event.product]] = self._step(event, draws, offered), None
        elif event.kind == "answered" and (a := self._products[event.product]) in self.steps:
            self.steps[a] = self.steps[a][0], event.reward or 0.0
            self._answers[a] = 1.0 if (event.reward or 0.0) > self._settings.reward.liked_above else -1.0
        elif event.kind == "closed":
            for a, (step, reward) in self.steps.items():
                self.steps[a] = step, self._settings.reward.unanswered if reward is None else reward
        self._over = event.kind == "closed" or (event.kind == "answered" and len(self._answers) >= enough)
        return self._over

    def answered(self) -> list[tuple[_Step, float]]:
        """Return the steps that have a reward, with it."""
        return [(step, reward) for step, reward in self.steps.values() if reward is not None]

    def _step(self, event: Event, draws: Draws, offered: Bools) -> _Step:
        """Return what was known when a product was shown, and what the samples would have shown."""
        a, allowed = self._products[event.product], offered.copy()
        if event.among is not None:
            allowed[:] = False
            among = [self._products[name] for name in event.among if name in self._products]
            allowed[among] = offered[among]
        allowed[list(self.steps)] = False
        allowed[a] = True  # also if it was removed in this moment
        u = known_row(draws, self._customer, list(self._answers), list(self._answers.values()))
        chosen, _ = best_by_sample(draws, u, 0, allowed)
        features = np.append(u, 2.0 * (event.slot or 0) / self._settings.slots - 1)
        index = np.flatnonzero(features)
        return _Step(index, features[index], a, event.propensity, chosen[1:].astype(np.int32))


def _joined(visits: list[list[tuple[_Step, float]]], draws: Draws) -> JudgedSteps:
    """Return the steps of all visits in arrays."""
    if not visits:
        raise ValueError("no visit of the events has ended: close visits, or judge by others")
    steps = [step for visit in visits for step, _ in visit]
    known = all(step.propensity is not None for step in steps)
    indptr = np.cumsum([0, *(len(step.places) for step in steps)])
    parts = np.concatenate([step.value for step in steps]), np.concatenate([step.places for step in steps]), indptr
    _, e, N = draws.weight.shape
    return JudgedSteps(
        np.cumsum([0, *map(len, visits)]),
        csr_matrix(parts, shape=(len(steps), e + 1)),
        np.array([step.product for step in steps]),
        np.array([reward for visit in visits for _, reward in visit]),
        np.array([step.propensity for step in steps], dtype=np.float64) if known else None,
        np.array([step.chosen for step in steps]),
        N,
    )
