"""The recommendation engine of section 6.3 as a Gymnasium environment, for any number of products and slots."""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rlsvi.core.checks import flag
from rlsvi.core.random import bits, uniform
from rlsvi.envs.environment import Environment, Info
from rlsvi.envs.render import CORAL, GREY, INK, Canvas, mix
from rlsvi.mdp.finite import FiniteMDP
from rlsvi.mdp.recommendation import (
    coding,
    count_histories,
    draw_taste,
    like_probability,
    number_of,
    recommendation,
)


class RecommendationEnv(Environment):
    """The recommendation engine of `rlsvi.mdp.recommendation`, for any number of products and slots.

    An observation is the history x, (N,): 1 for a product liked, -1 for one disliked, 0 for one not seen yet.
    info["action_mask"] contains the latter. With the same seeds, customers answer as in the table of
    `rlsvi.mdp.recommendation`: one random number begins an episode, and one determines each answer.

    Parameters
    ----------
    products, slots, reward_values
        As for `rlsvi.mdp.recommendation`.
    numbered
        Observe the number of the history, as in the table of `rlsvi.mdp.recommendation`, which is then the
        attribute `mdp`. If the histories can be enumerated, OptimalPolicy and tables can then play too.
    render_mode
        "rgb_array" for pictures, "ansi" for a line of text, or None.
    **taste
        `beta`, `gamma`, `scale` and `seed`, as for `rlsvi.mdp.draw_taste`.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> env = gymnasium.make("rlsvi/Recommendation-v0", products=4, slots=2)
    >>> observation, info = env.reset(seed=0)
    >>> observation.tolist(), info["action_mask"].tolist()
    ([0, 0, 0, 0], [1, 1, 1, 1])
    """

    metadata: dict[str, Any] = {**Environment.metadata, "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        products: int = 10,
        slots: int = 5,
        *,
        reward_values: tuple[float, float] = (0.0, 1.0),
        numbered: bool = False,
        render_mode: str | None = None,
        **taste: Any,
    ) -> None:
        super().__init__(render_mode)
        count_histories(products, slots)
        self.products, self.slots = int(products), int(slots)
        self.taste = draw_taste(products, **taste)
        self.reward_values = coding(reward_values)
        self.mdp: FiniteMDP | None = None
        if flag("numbered", numbered):
            self.mdp = recommendation(products, slots, **self.taste._asdict(), reward_values=self.reward_values)
        self.observation_space: gymnasium.Space[Any] = (
            gymnasium.spaces.Box(-1, 1, (self.products,), np.int8)
            if self.mdp is None
            else gymnasium.spaces.Discrete(self.mdp.table.states)
        )
        self.action_space = gymnasium.spaces.Discrete(self.products)
        self._x = np.zeros(self.products, dtype=np.int8)
        self._shown: list[int] = []  # products shown in this episode, in order

    def _observation(self) -> Any:
        """Return the history, or its number; all full histories share the last number."""
        if self.mdp is None:
            return self._x.copy()
        full = np.count_nonzero(self._x) == self.slots
        return self.mdp.table.states - 1 if full else int(number_of(self._x[None])[0])

    @property
    def horizon(self) -> int:
        """H, the number of slots."""
        return self.slots

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Start with a new customer; a seed restarts the random stream."""
        super().reset(seed=seed)
        bits(self._stream)  # like the table, which draws its first state
        self._x[:] = 0
        self._shown = []
        return self._observation(), self._info()

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Show a product; an invalid one is refused and changes nothing."""
        a = self._checked(action, self.products)
        if self._x[a] != 0:
            raise ValueError(f"product {a} was shown already: choose one that info['action_mask'] allows")
        liked = uniform(self._stream) < like_probability(self.taste, self._x, a)
        self._x[a] = 1 if liked else -1
        self._shown.append(a)
        self._running = len(self._shown) < self.slots
        return self._observation(), self.reward_values[bool(liked)], not self._running, False, self._info()

    def _info(self) -> dict[str, Any]:
        mask = (self._x == 0).astype(np.int8)
        return {"action_mask": mask if mask.any() else np.ones_like(mask)}

    def _text(self) -> str:
        signs = "".join({-1: "-", 0: ".", 1: "+"}[int(value)] for value in self._x)
        return f"{signs}  {len(self._shown)} of {self.slots} shown"

    def _picture(self) -> NDArray[np.uint8]:
        """One disc per product: liked ones are dark, disliked ones hollow, and the last one is marked."""
        shown, pitch, margin = self._shown, max(8.0, min(56.0, 960 / self.products)), 20.0
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
