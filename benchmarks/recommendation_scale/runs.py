"""The experiment of the study: the function that its jobs call."""

from typing import Any

import numpy as np

from benchmarks.recommendation_scale.players import Counter, TabularBandit, myopic_policy, random_play, served_by
from rlsvi.agents import ThompsonSampling
from rlsvi.core.compile import Floats
from rlsvi.envs import RecommendationEnv
from rlsvi.mdp.recommendation import Taste, draw_taste, like_probability
from rlsvi.shop import Recommender

PARTS = 20  # of a run, whose mean likes are the result
SIGMA2 = 1e-3  # the paper's noise
NOTHING = 1e-12  # a noise that explores nothing
LEARNERS = ("RLSVI", "linear bandit", "greedy")


def served(
    *,
    study: str,
    agent: str,
    products: int,
    slots: int,
    customers: int,
    seed: int,
    lam: float | None = None,
    sigma2: float | None = None,
    pooled: bool = True,
    sketch: int | None = None,
    every: int | None = None,
    remember: int | None = None,
    at_once: int = 1,
    late: float = 0.0,
    lost: float = 0.0,
) -> dict[str, Any]:
    """Likes to be expected of a customer, given what she was shown and answered: means of twenty parts of a run.

    study : the question that the run belongs to; it names rows of the table and changes nothing.
    agent : "RLSVI", "linear bandit" (no value of later slots) or "greedy" (no exploration: LSVI on the posterior
        mean, with the same ridge), all three a `Recommender`, with the prior, the noise sigma^2 (the paper's
        unless told), the savings and the memory as told; "Thompson sampling"; "tabular bandit"; "myopic policy",
        which knows the truth; or "random".
    at_once, late, lost : how customers come and answer, as for `served_by`.

    `seed` decides what customers like, gamma_an ~ N(0, 4), and all else.
    """
    taste = draw_taste(products, seed=seed)
    if agent == "Thompson sampling":
        likes = _thompson(taste, slots, customers, seed)
    else:
        form: dict[str, Any] = {
            "pooled": pooled,
            "sketch": sketch,
            "every": every,
            "lam": lam,
            "remember": remember,
        }
        form["sigma"] = None if sigma2 is None else sigma2**0.5
        counter = _counter(agent, taste, slots, seed, {name: of for name, of in form.items() if of is not None})
        way: dict[str, Any] = {"at_once": at_once, "late": late, "lost": lost}
        likes = served_by(counter, taste, slots, customers, np.random.default_rng([seed, 1]), **way)
    parts = np.array_split(likes, PARTS)
    return {
        "customer": np.cumsum([len(part) for part in parts]),
        "likes": np.array([part.mean() for part in parts]),
    }


def _counter(agent: str, taste: Taste, slots: int, seed: int, form: dict[str, Any]) -> Counter:
    products, rng = len(taste.beta), np.random.default_rng([seed, 2])
    if agent in LEARNERS:
        form = {"sigma": SIGMA2**0.5, **form}
        if agent == "greedy":
            form |= {"sigma": NOTHING, "lam": form["lam"] * (form["sigma"] / NOTHING) ** 2}
        return Recommender(products, slots, **form, myopic=agent == "linear bandit", seed=seed)
    if agent == "tabular bandit":
        return TabularBandit(products, rng)
    return myopic_policy(taste, rng) if agent == "myopic policy" else random_play(products, rng)


class _Watched(RecommendationEnv):
    """Keeps the likes to be expected of each customer."""

    def __init__(self, *size: int, **options: Any) -> None:
        super().__init__(*size, **options)
        self.likes: list[float] = []

    def reset(self, **options: Any) -> Any:
        self.likes.append(0.0)
        return super().reset(**options)

    def step(self, action: int) -> Any:
        self.likes[-1] += like_probability(self.taste, self._x, int(action))
        return super().step(action)


def _thompson(taste: Taste, slots: int, customers: int, seed: int) -> Floats:
    env = _Watched(len(taste.beta), slots, gamma=taste.gamma)
    ThompsonSampling(seed=seed).learn(env, episodes=customers)
    return np.array(env.likes[-customers:])
