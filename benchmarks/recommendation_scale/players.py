"""Who may stand behind a shop's counter in place of a Recommender, and how customers come to it."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

import numpy as np

from rlsvi.core.compile import Bools, Floats
from rlsvi.mdp.recommendation import History, Taste, like_probability, myopic_products

Choose = Callable[[History, Bools], int]  # from what she is known to have answered, and what may be shown


class Counter(Protocol):
    """What customers need of a recommender."""

    def recommend(self, customer: int) -> int:
        """A product for her next slot."""

    def feedback(self, customer: int, product: int, liked: bool) -> None:
        """Her answer."""

    def close(self, customer: int) -> None:
        """She will answer no more."""


class Chooser:
    """Serves by a function of what is known of a customer, and learns nothing."""

    def __init__(self, products: int, choose: Choose) -> None:
        self._products, self._choose = products, choose
        self._known: dict[int, tuple[History, Bools]] = {}

    def recommend(self, customer: int) -> int:
        """A product for her next slot."""
        blank = np.zeros(self._products, dtype=np.int8), np.ones(self._products, dtype=bool)
        x, unseen = self._known.setdefault(customer, blank)
        a = self._choose(x, unseen)
        unseen[a] = False
        return a

    def feedback(self, customer: int, product: int, liked: bool) -> None:
        """Her answer."""
        self._known[customer][0][product] = 1 if liked else -1

    def close(self, customer: int) -> None:
        """She will answer no more."""


def myopic_policy(taste: Taste, rng: np.random.Generator) -> Chooser:
    """The optimal myopic policy: it knows what customers like, and looks one slot ahead."""
    return Chooser(len(taste.beta), lambda x, unseen: int(rng.choice(myopic_products(taste, x, unseen))))


def random_play(products: int, rng: np.random.Generator) -> Chooser:
    """Any product, whatever she answered."""
    return Chooser(products, lambda x, unseen: int(rng.choice(np.flatnonzero(unseen))))


class TabularBandit(Chooser):
    """Thompson sampling with a Beta posterior for each product after each history: nothing is said of others."""

    def __init__(self, products: int, rng: np.random.Generator) -> None:
        super().__init__(products, self._sampled)
        self._rng = rng
        self._answers: dict[bytes, dict[int, list[int]]] = {}  # likes and dislikes
        self._asked: dict[tuple[int, int], bytes] = {}

    def _sampled(self, x: History, unseen: Bools) -> int:
        chance = self._rng.random(len(x))  # Beta(1, 1), where nothing was tried
        for a, (likes, dislikes) in self._answers.get(x.tobytes(), {}).items():
            chance[a] = self._rng.beta(1 + likes, 1 + dislikes)
        return int(np.where(unseen, chance, -1.0).argmax())

    def recommend(self, customer: int) -> int:
        """A product for her next slot."""
        before = self._known[customer][0].tobytes() if customer in self._known else bytes(self._products)
        a = super().recommend(customer)
        self._asked[customer, a] = before
        return a

    def feedback(self, customer: int, product: int, liked: bool) -> None:
        """Her answer, counted after the history that she had when asked."""
        super().feedback(customer, product, liked)
        row = self._answers.setdefault(self._asked.pop((customer, product)), {})
        row.setdefault(product, [0, 0])[0 if liked else 1] += 1


def served_by(
    counter: Counter,
    taste: Taste,
    slots: int,
    customers: int,
    rng: np.random.Generator,
    *,
    at_once: int = 1,
    late: float = 0.0,
    lost: float = 0.0,
) -> Floats:
    """Likes to be expected of each customer, given what she was shown and truly thought of it, told or not.

    So many are `at_once` in the shop; whose slot is next is drawn. An answer is told after a random number of
    other slots, `late` of them in the mean (geometric), or never, with probability `lost`. Who has seen all of
    hers makes place for the next, and is closed when nothing more will be told.
    """
    likes, shown, untold = np.zeros(customers), np.zeros(customers, dtype=int), np.zeros(customers, dtype=int)
    opinions: dict[int, History] = {}  # of those in the shop
    messages: list[tuple[int, int, int, bool]] = []  # when, who, what, liked
    silent: set[int] = set()  # whose answers do not all come
    came = now = 0

    def leave(i: int) -> None:
        """Close who has no more to see and to tell; all whose answers came were closed with the last of them."""
        if shown[i] == slots and untold[i] == 0 and i in silent:
            counter.close(i)

    while opinions or messages or came < customers:
        while len(opinions) < at_once and came < customers:
            opinions[came] = np.zeros(len(taste.beta), dtype=np.int8)
            came += 1
        if opinions:
            i = list(opinions)[int(rng.integers(len(opinions)))]
            a = counter.recommend(i)
            p = like_probability(taste, opinions[i], a)
            liked = bool(rng.random() < p)
            likes[i] += p
            opinions[i][a] = 1 if liked else -1
            shown[i] += 1
            if rng.random() < lost:
                silent.add(i)
            else:
                heappush(messages, (now + int(rng.geometric(1.0 / (1.0 + late))) - 1, i, a, liked))
                untold[i] += 1
            if shown[i] == slots:
                del opinions[i]
            leave(i)
        while messages and messages[0][0] <= now:
            _, i, a, liked = heappop(messages)
            untold[i] -= 1
            counter.feedback(i, a, liked)
            leave(i)
        now += 1
    return likes
