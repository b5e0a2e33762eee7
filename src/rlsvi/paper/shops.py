"""What the figure on shops measures: the function of its jobs."""

from typing import Any

import numpy as np

from rlsvi.agents import ContextualBandit, ThompsonSampling
from rlsvi.bases import Recommendation
from rlsvi.core.compile import Floats
from rlsvi.core.random import stream, uniform
from rlsvi.envs import RecommendationEnv
from rlsvi.mdp.recommendation import History, Taste, draw_taste, like_probability
from rlsvi.shop import Recommender

PARTS = 20  # of a run, whose mean likes are the result
LAM, SIGMA = 0.2, 1e-3**0.5  # of the paper's linear bandit


def served(
    *,
    agent: str,
    products: int,
    slots: int,
    customers: int,
    seed: int,
    pooled: bool = True,
    sketch: int | None = None,
    every: int | None = None,
) -> dict[str, Any]:
    """Likes to be expected of a customer, given what she was shown and answered: means of twenty parts of a run.

    agent : "RLSVI" or "linear bandit", both a `Recommender`, pooled, sketched and sampling as told; "pooled
        bandit", the paper's `ContextualBandit` with its lambda; "Thompson sampling"; "myopic policy", which knows
        the truth; or "random".

    `seed` decides what customers like, gamma_an ~ N(0, 4), and all else.
    """
    taste = draw_taste(products, seed=seed)
    if agent in ("RLSVI", "linear bandit"):
        form: dict[str, Any] = {"pooled": pooled, "sketch": sketch, "every": every}
        shop = Recommender(products, slots, **form, myopic=agent != "RLSVI", seed=seed)
        likes = _recommended(shop, taste, customers, seed)
    elif agent in ("Thompson sampling", "pooled bandit"):
        likes = _learned(agent, taste, slots, customers, seed)
    else:
        likes = _known(taste, slots, customers, seed, myopic=agent == "myopic policy")
    parts = np.array_split(likes, PARTS)
    return {
        "customer": np.cumsum([len(part) for part in parts]),
        "likes": np.array([part.mean() for part in parts]),
    }


def _recommended(shop: Recommender, taste: Taste, customers: int, seed: int) -> Floats:
    """Customers one after another, who answer at once."""
    likes, answers = np.zeros(customers), stream(np.random.SeedSequence([seed, 1]))
    for i in range(customers):
        x: History = np.zeros(shop.products, dtype=np.int8)
        for _ in range(shop.slots):
            a = shop.recommend(i)
            p = like_probability(taste, x, a)
            liked = bool(uniform(answers) < p)
            likes[i] += p
            x[a] = 1 if liked else -1
            shop.feedback(i, a, liked)
    return likes


class _Watched(RecommendationEnv):
    """Keeps the likes to be expected of each customer."""

    likes: list[float]

    def reset(self, **options: Any) -> Any:
        self.likes = [*getattr(self, "likes", []), 0.0]
        return super().reset(**options)

    def step(self, action: int) -> Any:
        self.likes[-1] += like_probability(self.taste, self._x, int(action))
        return super().step(action)


def _learned(agent: str, taste: Taste, slots: int, customers: int, seed: int) -> Floats:
    env = _Watched(len(taste.beta), slots, gamma=taste.gamma)
    player: Any = ThompsonSampling(seed=seed)
    if agent == "pooled bandit":
        player = ContextualBandit(lam=LAM, sigma=SIGMA, pooled=True, basis=Recommendation(), seed=seed)
    player.learn(env, episodes=customers)
    return np.array(env.likes[-customers:])


def _known(taste: Taste, slots: int, customers: int, seed: int, *, myopic: bool) -> Floats:
    """Who knows what customers like and shows the best next product, or who does not look."""
    rng, likes = np.random.default_rng([seed, 2]), np.zeros(customers)
    for i in range(customers):
        logit, unseen = taste.beta.copy(), np.ones(len(taste.beta), dtype=bool)
        for _ in range(slots):
            worth = np.where(unseen, logit if myopic else 0.0, -np.inf)
            a = int(rng.choice(np.flatnonzero(worth == worth.max())))
            p = 1.0 / (1.0 + np.exp(-logit[a]))
            unseen[a] = False
            logit += taste.gamma[:, a] * (1.0 if rng.random() < p else -1.0)
            likes[i] += p
    return likes
