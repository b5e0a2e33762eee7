"""The swing-up of a cart and pole: Gymnasium's checks, mechanics, rewards, and pictures."""

import math

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from rlsvi.envs import SwingUpEnv
from rlsvi.envs.swing_up import CART, GRAVITY, HALF, POLE, moved


@pytest.mark.filterwarnings("ignore:.*Box observation space m..imum value:UserWarning")
def test_it_is_a_gymnasium_environment():
    check_env(gymnasium.make("rlsvi/SwingUp-v0", height=0.5).unwrapped, skip_render_check=True)


def speeding(angle, spin, force):
    """How the speeds of cart and pole change, from the two equations of motion as a linear system.

    The cart: (M + m) x'' + m l cos(a) a'' = F + m l sin(a) a'^2. The pole, a rod of length 2 l with its moment of
    inertia m l^2 / 3: cos(a) x'' + 4/3 l a'' = g sin(a).
    """
    matrix = [[CART + POLE, POLE * HALF * math.cos(angle)], [math.cos(angle), 4 / 3 * HALF]]
    return np.linalg.solve(matrix, [force + POLE * HALF * math.sin(angle) * spin**2, GRAVITY * math.sin(angle)])


@pytest.mark.parametrize("seed", range(5))
def test_a_step_solves_the_equations_of_motion(seed):
    rng = np.random.default_rng(seed)
    (x, v, angle, spin), force, dt = rng.uniform(-4, 4, 4), rng.uniform(-10, 10), 0.02
    speed, turn = speeding(angle, spin, force)
    later = v + dt * speed, spin + dt * turn
    expected = x + dt * later[0], later[0], angle + dt * later[1], later[1]
    np.testing.assert_allclose(moved(x, v, angle, spin, force, dt), expected, rtol=1e-12)


def energy(x, v, angle, spin):
    """Kinetic energy of the cart and of a rod that moves and turns, and the potential energy of the rod."""
    moving = 0.5 * (CART + POLE) * v**2 + POLE * HALF * v * spin * math.cos(angle)
    return moving + 2 / 3 * POLE * HALF**2 * spin**2 + POLE * GRAVITY * HALF * math.cos(angle)


def test_without_pushes_energy_and_momentum_are_kept():
    drift = {}
    for dt in (1e-3, 1e-4):
        state = (0.0, 0.5, 1.0, -2.0)
        first, pushed = energy(*state), (CART + POLE) * 0.5 + POLE * HALF * -2.0 * math.cos(1.0)
        worst = 0.0
        for _ in range(round(2 / dt)):
            state = moved(*state, 0.0, dt)
            worst = max(worst, abs(energy(*state) - first))
        _, v, angle, spin = state
        drift[dt] = worst
        assert (CART + POLE) * v + POLE * HALF * spin * math.cos(angle) == pytest.approx(pushed, abs=2 * dt)
    assert drift[1e-3] < 5e-3  # joules, of about one
    assert drift[1e-4] < 0.2 * drift[1e-3], "the error is of the order of the time step"


def test_a_pole_that_hangs_costs_nothing_and_one_that_stands_is_paid():
    env = SwingUpEnv()
    env.reset(seed=0)
    assert sum(env.step(1)[1] for _ in range(50)) == 0
    assert env.step(2)[1] == -0.1
    env.state = (0.0, 0.0, 0.0, 0.0)
    assert env.step(1)[1] == 1
    assert env.step(0)[1] == 0.9
    env.state = (0.0, 0.0, 0.1, 0.0)
    for _ in range(60):  # falls if nobody pushes
        env.step(1)
    assert math.cos(env.state[2]) < 0


@pytest.mark.parametrize(
    ("state", "height", "paid"),
    [
        ((0, 0, 1.0, 0), 0.5, 1),  # cos 1 = .54
        ((0, 0, 1.0, 0), 0.6, 0),
        ((0, 0, 0.1, 1.5), 0.5, 0),  # too fast
        ((1.5, 0, 0.1, 0), 0.5, 0),  # too far
        ((-0.9, 0, 0.1, 0), 0.5, 1),
    ],
)
def test_height_speed_and_place_decide(state, height, paid):
    env = SwingUpEnv(height)
    env.reset(seed=0)
    env.state = state
    assert env.step(1)[1] == paid


def test_an_episode_ends_off_the_track_or_after_500_steps():
    env = SwingUpEnv(cost=0.0)
    env.reset(seed=0)
    steps = [env.step(1)[2:4] for _ in range(500)]
    assert steps[-2:] == [(False, False), (False, True)]
    with pytest.raises(ResetNeeded):
        env.step(1)
    env.reset()
    env.state = (2.99, 5.0, 0.0, 0.0)
    assert env.step(1)[2:4] == (True, False)
    env.reset()
    with pytest.raises(ValueError, match="action 3 is not one of"):
        env.step(3)


def test_every_step_looks_different():
    env, text = SwingUpEnv(render_mode="rgb_array"), SwingUpEnv(render_mode="ansi")
    env.reset(seed=0)
    text.reset(seed=0)
    pictures, lines = [env.render()], [text.render()]
    for action in (0, 0, 2, 1, 1):
        env.step(action)
        text.step(action)
        pictures.append(env.render())
        lines.append(text.render())
    assert {p.shape for p in pictures} == {(200, 480, 3)}
    assert len({p.tobytes() for p in pictures}) == len(set(lines)) == 6
