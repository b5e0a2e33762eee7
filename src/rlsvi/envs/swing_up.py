"""The swing-up of a cart and pole with a sparse reward, as a Gymnasium environment."""

from math import cos, pi, sin
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlsvi.core.checks import finite, shaped, shown
from rlsvi.envs.environment import Environment, Info
from rlsvi.envs.render import CORAL, GREY, INK, Canvas

GRAVITY, CART, POLE, HALF = 9.8, 1.0, 0.1, 0.5  # m/s^2, kg, kg, and m: half of the length of the pole
PUSH, DT, STEPS = 10.0, 0.02, 500  # N, s, and the steps of an episode
EDGE = 3.0  # where the track ends
MIDDLE, SLOW_SPIN = 1.0, 1.0  # |x| and |spin| below which the pole is paid for
SCALE, WIDTH = 60.0, 480  # pixels to a metre, and in all


class SwingUpEnv(Environment):
    """A cart with a pole that hangs down; 1 for every step with the pole up, slow, and the cart near the middle.

    The pole is up if the cosine of its angle exceeds `height`: with 0 in the upper half of its circle, with .95
    within 18 degrees of upright. Pushing costs `cost` a step, so that a learner that has never had the pole up
    learns to do nothing. The equations are those of Barto, Sutton and Anderson (1983), without friction; the
    rewards those of the behaviour suite (Osband et al. 2020), which has steps half as long, and pays in a middle
    that gets narrower as the height rises.

    Observations are x, its speed, the cosine and the sine of the angle, and its speed. Actions push to the left,
    not at all, or to the right. An episode is cut off after 500 steps, and ends if the cart leaves the track,
    |x| > 3. The first state is drawn by `np_random`.

    Parameters
    ----------
    height
        The cosine of the angle above which the pole is up. The default is the behaviour suite's greatest.
    cost
        The cost of a push, >= 0.
    render_mode
        "rgb_array" for pictures, or None.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> env = gymnasium.make("rlsvi/SwingUp-v0", height=0.5)
    >>> env.reset(seed=0)[0].shape
    (5,)
    """

    def __init__(self, height: float = 0.95, cost: float = 0.1, *, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.height = float(shaped("height", finite("height", height), ()))
        self.cost = float(shaped("cost", finite("cost", cost), ()))
        if self.height >= 1:
            raise ValueError(f"height must be below 1, the cosine of a pole that is upright, got {shown(height)}")
        if self.cost < 0:
            raise ValueError(f"cost must be at least 0, got {shown(cost)}")
        self.action_space = spaces.Discrete(3)
        high = np.array([EDGE + 1, np.inf, 1, 1, np.inf])
        self.observation_space = spaces.Box(-high, high, dtype=np.float64)
        self.t, self.state = 0, (0.0, 0.0, pi, 0.0)

    def _observe(self) -> NDArray[np.float64]:
        x, v, angle, spin = self.state
        return np.array([x, v, cos(angle), sin(angle), spin])

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Let the pole hang, almost at rest."""
        super().reset(seed=seed, options=options)
        x, v, angle, spin = (np.array([0, 0, pi, 0]) + self.np_random.uniform(-0.05, 0.05, 4)).tolist()
        self.t, self.state = 0, (x, v, angle, spin)
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """Push for a fiftieth of a second."""
        push = self._checked(action, 3) - 1
        x, v, angle, spin = moved(*self.state, push * PUSH, DT)
        self.t, self.state = self.t + 1, (x, v, angle, spin)
        up = cos(angle) > self.height and abs(spin) < SLOW_SPIN and abs(x) < MIDDLE
        off, over = abs(x) > EDGE, self.t >= STEPS
        self._running = not (off or over)
        return self._observe(), float(up) - self.cost * abs(push), off, over, {}

    def _text(self) -> str:
        x, v, angle, spin = self.state
        return f"cart {x:+.3f} m {v:+.3f} m/s  pole {cos(angle):+.3f} {spin:+.3f} rad/s  step {self.t} of {STEPS}"

    def _picture(self) -> NDArray[np.uint8]:
        """The cart on its track, with the pole."""
        x, _, angle, _ = self.state
        canvas, middle, rail = Canvas(WIDTH, 200), WIDTH / 2, 92.0
        canvas.line([(middle - EDGE * SCALE, rail), (middle + EDGE * SCALE, rail)], 2, GREY)
        at = middle + x * SCALE
        canvas.box(at - 20, rail - 8, at + 20, rail + 8, INK, radius=4)
        tip = (at + 2 * HALF * SCALE * sin(angle), rail - 2 * HALF * SCALE * cos(angle))
        canvas.line([(at, rail), tip], 6, CORAL)
        canvas.progress(self.t / STEPS, margin=10)
        return canvas.image()


def moved(
    x: float, v: float, angle: float, spin: float, force: float, dt: float
) -> tuple[float, float, float, float]:
    """Return the place and speed of the cart, and the angle of the pole and its speed, after dt seconds."""
    mass, up = CART + POLE, cos(angle)
    pulled = (force + POLE * HALF * spin**2 * sin(angle)) / mass
    turn = (GRAVITY * sin(angle) - up * pulled) / (HALF * (4 / 3 - POLE * up**2 / mass))
    v, spin = v + dt * (pulled - POLE * HALF * turn * up / mass), spin + dt * turn
    return x + dt * v, v, angle + dt * spin, spin
