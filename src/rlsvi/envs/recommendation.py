"""The recommendation engine of section 6.3 as a Gymnasium environment, for any number of products and slots."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import ArrayLike, NDArray

from rlsvi.core.random import Seed, discard, uniform
from rlsvi.envs.render import CORAL, GREY, INK, Canvas, mix
from rlsvi.envs.seeding import seed_stream, unseeded
from rlsvi.mdp.finite import FiniteMDP
from rlsvi.mdp.recommendation import (
    coding,
    count_histories,
    draw_taste,
    like_probability,
    number_of,
    recommendation,
)


class RecommendationEnv(gymnasium.Env[Any, Any]):
    """A customer is shown J of N products, one after another; only those she has not seen are legal.

    An observation is her history x, (N,): 1 for a product she liked, -1 for one she did not, 0 for one she has not
    seen. info["action_mask"] says which those are. With the same seeds she answers as in the table of
    `rlsvi.mdp.recommendation`: one random number begins an episode, and one decides each answer.

    Parameters
    ----------
    products, slots : N and J.
    beta, gamma, scale, seed : what customers like, as for `rlsvi.mdp.draw_taste`; `seed` draws it once for all.
    reward_values : of a dislike and of a like.
    numbered : observe the number of the history, as in the table of `rlsvi.mdp.recommendation`, which is then the
        attribute `mdp`; so OptimalPolicy and tables can play too, where the histories can be counted.
    render_mode : "rgb_array" for pictures, "ansi" for a line of text, or None.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        products: int = 10,
        slots: int = 5,
        *,
        beta: ArrayLike = 0.0,
        gamma: ArrayLike | None = None,
        scale: float = 2.0,
        reward_values: tuple[float, float] = (0.0, 1.0),
        seed: Seed = 0,
        numbered: bool = False,
        render_mode: str | None = None,
    ) -> None:
        modes = self.metadata["render_modes"]
        if render_mode is not None and (not isinstance(render_mode, str) or render_mode not in modes):
            raise ValueError(f"render_mode must be one of {', '.join(modes)} or None, got {render_mode!r:.80}")
        count_histories(products, slots)
        self.products, self.slots = int(products), int(slots)
        self.taste = draw_taste(products, beta=beta, gamma=gamma, scale=scale, seed=seed)
        self.reward_values = coding(reward_values)
        self.render_mode = render_mode
        self.mdp = self._table() if numbered else None
        self.observation_space: gymnasium.Space[Any] = (
            gymnasium.spaces.Box(-1, 1, (self.products,), np.int8)
            if self.mdp is None
            else gymnasium.spaces.Discrete(self.mdp.table.states)
        )
        self.action_space = gymnasium.spaces.Discrete(self.products)
        self._stream = unseeded()
        self._x = np.zeros(self.products, dtype=np.int8)
        self._shown: list[int] | None = None  # in this episode, in order

    def _table(self) -> FiniteMDP:
        return recommendation(
            self.products,
            self.slots,
            beta=self.taste.beta,
            gamma=self.taste.gamma,
            reward_values=self.reward_values,
        )

    def _observation(self) -> Any:
        """The history, or its number; that of a full one is the last."""
        if self.mdp is None:
            return self._x.copy()
        full = np.count_nonzero(self._x) == self.slots
        return self.mdp.table.states - 1 if full else int(number_of(self._x[None])[0])

    @property
    def horizon(self) -> int:
        """H, which is the number of slots."""
        return self.slots

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """A new customer; with a seed, start the random stream anew."""
        super().reset(seed=seed)
        seed_stream(self, self._stream, seed)
        discard(self._stream, 1)
        self._x[:] = 0
        self._shown = []
        return self._observation(), self._info()

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Show a product; one that is not possible is refused and changes nothing."""
        if self._shown is None or len(self._shown) == self.slots:
            raise ResetNeeded("call reset() first" if self._shown is None else "the episode is over: call reset()")
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is not one of 0..{self.products - 1}")
        a = int(action)
        if self._x[a] != 0:
            raise ValueError(f"product {a} was shown already: choose one that info['action_mask'] allows")
        liked = uniform(self._stream) < like_probability(self.taste, self._x, a)
        self._x[a] = 1 if liked else -1
        self._shown.append(a)
        reward = self.reward_values[1 if liked else 0]
        return self._observation(), reward, len(self._shown) == self.slots, False, self._info()

    def _info(self) -> dict[str, Any]:
        mask = (self._x == 0).astype(np.int8)
        return {"action_mask": mask if mask.any() else np.ones_like(mask)}

    def render(self) -> Any:
        """The picture, (height, width, 3), or the text, as render_mode says."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() shows nothing: make the environment with a render_mode")
            return None
        if self._shown is None:
            raise ResetNeeded("call reset() before render()")
        if self.render_mode == "rgb_array":
            return self._picture(self._shown)
        signs = "".join({-1: "-", 0: ".", 1: "+"}[int(value)] for value in self._x)
        return f"{signs}  {len(self._shown)} of {self.slots} shown"

    def _picture(self, shown: list[int]) -> NDArray[np.uint8]:
        """A disc a product: liked ones dark, disliked ones hollow, the last one marked."""
        pitch, margin = max(8.0, min(56.0, 960 / self.products)), 20.0
        canvas = Canvas(round(self.products * pitch + 2 * margin), round(pitch + 3 * margin))
        for n, value in enumerate(self._x):
            centre = margin + (n + 0.5) * pitch, margin + 0.5 * pitch
            if shown and n == shown[-1]:
                canvas.disc(centre, 0.46 * pitch, CORAL)
            canvas.disc(centre, 0.36 * pitch, mix(GREY, INK, 0.7) if value else GREY)
            if value < 0:
                canvas.disc(centre, 0.24 * pitch, mix(GREY, INK, 0.05))
        canvas.progress(len(shown) / self.slots, margin=margin / 2)
        return canvas.image()
