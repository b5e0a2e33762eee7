"""The Gymnasium faces: Gymnasium's own checks, draws in the promised order, masks, errors, pictures."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import rlsvi.envs
from rlsvi.core.random import reseed
from rlsvi.envs import ChainEnv, DeepSeaEnv, FiniteMDPEnv, RiverSwimEnv
from rlsvi.envs.render import GOLD, Canvas
from rlsvi.mdp import FiniteMDP, chain, deep_sea, dirichlet, river_swim
from rlsvi.mdp.finite import first_state, step, terminal_reward

rlsvi.envs.register()

IDS = ["rlsvi/Chain-v0", "rlsvi/DeepSea-v0", "rlsvi/RiverSwim-v0"]


def masked_mdp(**options):
    """Two states and an absorbing one; action 1 is legal only in period 0; nothing is in the last."""
    legal = np.ones((3, 3, 2), dtype=bool)
    legal[:, :, 1] = False
    legal[0, :2, 1] = True
    legal[:, 2] = False
    P = np.zeros((3, 2, 3))
    P[:, 0, 1] = P[:, 1, 2] = 1.0
    absorbing = np.array([False, False, True])
    R = np.array([[1.0, 2.0]] * 3)
    settings = {"horizon": 3, "start": [1.0, 0.0, 0.0], "legal": legal, "absorbing": absorbing} | options
    return FiniteMDP.from_arrays(P, R, **settings)


def play(env, seed, actions):
    """What an episode shows: the first state, then state, reward and end of each step."""
    shown = [env.reset(seed=seed)[0]]
    for a in actions:
        shown.append(env.step(a)[:4])
        if shown[-1][2]:
            break
    return shown


# ---- Gymnasium's rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", IDS)
def test_check_env(name):
    check_env(gymnasium.make(name).unwrapped)


def test_check_env_with_masks_and_noise():
    check_env(FiniteMDPEnv(masked_mdp(legal=None)), skip_render_check=True)
    check_env(DeepSeaEnv(5, stochastic=True, seed=3), skip_render_check=True)


@pytest.mark.parametrize(
    ("name", "options", "mdp"),
    [
        (IDS[0], {"length": 7}, chain(7)),
        (IDS[1], {"size": 4, "stochastic": True, "move_cost": 0.2, "seed": 5}, None),
        (IDS[1], {"size": 4, "randomize_actions": False}, deep_sea(4, randomize_actions=False)),
        (IDS[2], {"states": 4, "horizon": 9}, river_swim(4, 9)),
    ],
)
def test_make_passes_the_arguments_on(name, options, mdp):
    mdp = mdp or deep_sea(4, stochastic=True, move_cost=0.2, seed=5)
    env = gymnasium.make(name, **options).unwrapped
    assert env.horizon == mdp.horizon
    assert env.observation_space.n == mdp.states
    for field in ("successor", "probability", "reward", "std"):
        assert np.array_equal(getattr(env.mdp.table, field), getattr(mdp.table, field))


def test_registering_twice_is_harmless_and_light():
    rlsvi.envs.register()
    code = (
        "import sys, rlsvi.envs; rlsvi.envs.register(); rlsvi.envs.register();"
        "assert 'numba' not in sys.modules; import gymnasium;"
        "assert gymnasium.make('rlsvi/Chain-v0', length=3).unwrapped.horizon == 2"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    with pytest.raises(AttributeError, match="Nothing"):
        _ = rlsvi.envs.Nothing


@pytest.mark.parametrize(
    "made",
    [
        "env = gym.make('rlsvi:rlsvi/DeepSea-v0', size=3)",
        "import rlsvi; gym.register_envs(rlsvi); gym.make('rlsvi/DeepSea-v0', size=3)"
        "; env = gym.make_vec('rlsvi/DeepSea-v0', num_envs=2, size=3)",
    ],
    ids=["module", "import"],
)
def test_gymnasium_makes_environments_as_its_documentation_says(made):
    code = f"import gymnasium as gym; {made}; env.reset(seed=0); print(env.spec.id)"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.stdout, done.stderr) == ("rlsvi/DeepSea-v0\n", "")


@pytest.mark.parametrize("name", rlsvi.envs.IDS)
def test_every_environment_that_is_registered_can_be_made(name):
    assert name.startswith("rlsvi/")
    env = gymnasium.make(name)
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)


# ---- episodes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mdp",
    [
        chain(6),
        deep_sea(5, stochastic=True),
        river_swim(3, 8),
        dirichlet(3, 2, 5, start=[0.2, 0.3, 0.5]),
        FiniteMDP.from_arrays(
            np.full((3, 2, 3), 1 / 3),
            np.full((3, 2), 0.5),
            horizon=4,
            start=[0.5, 0.5, 0.0],
            rewards="bernoulli",
            terminal_reward=[0.0, 0.5, 0.9],
            absorbing=np.array([False, False, True]),
        ),
    ],
    ids=lambda mdp: mdp.name,
)
def test_draws_come_in_the_promised_order(mdp):
    """first_state; step() each period; terminal_reward() after the last: bit for bit, episode after episode."""
    env, words, t = FiniteMDPEnv(mdp), np.empty(4, np.uint64), mdp.table
    reseed(words, np.uint64(2**63 + 5))
    choose = np.random.default_rng(0)
    for episode in range(20):
        s = first_state(t, words)
        assert env.reset(seed=2**63 + 5 if episode == 0 else None) == (s, {})
        for h in range(mdp.horizon):
            a = int(choose.integers(mdp.actions))
            s, r = step(t, h, s, a, words)
            end = h + 1 == mdp.horizon or bool(t.absorbing[s])
            if end:
                r += terminal_reward(t, s, words)
            assert env.step(a) == (s, r, end, False, {})
            if end:
                break


def test_the_terminal_reward_is_paid_with_the_last_step():
    env = ChainEnv(2)
    rewards = {env.step(1)[:2] for _ in range(50) if env.reset() is not None}
    assert rewards == {(1, 1.0), (0, 0.0)}


def test_seeds():
    actions = [1] * 20
    env = RiverSwimEnv()
    assert play(env, 1, actions) == play(env, 1, actions) == play(RiverSwimEnv(), 1, actions)
    assert play(env, 1, actions) != play(env, 2, actions)
    assert play(env, None, actions) != play(env, None, actions)
    play(env, 1, actions)
    second = play(env, None, actions)
    play(env, 1, actions)
    assert play(env, None, actions) == second
    assert play(env, 0, actions) == play(env, 0, actions)
    assert play(RiverSwimEnv(), None, actions) != play(RiverSwimEnv(), None, actions)
    with pytest.raises(ValueError, match="seed must be below"):
        env.reset(seed=2**64)
    env.reset(seed=2**64 - 1)


# ---- masks ------------------------------------------------------------------------------------------------


def test_masks_follow_the_period_and_are_never_empty():
    env = FiniteMDPEnv(masked_mdp())
    _, info = env.reset(seed=0)
    assert info["action_mask"].dtype == np.int8
    assert info["action_mask"].tolist() == [1, 1]
    state, _, end, _, info = env.step(0)
    assert (state, end, info["action_mask"].tolist()) == (1, False, [1, 0])
    env.step(0)
    state, _, end, _, info = env.step(0)  # the last period is over
    assert (state, end, info["action_mask"].tolist()) == (1, True, [1, 0])
    env.reset()
    state, reward, end, _, info = env.step(1)  # absorbed
    assert (state, reward, end, info["action_mask"].tolist()) == (2, 2.0, True, [1, 1])


def test_no_mask_where_all_actions_are_legal():
    legal = np.ones((3, 2), dtype=bool)
    assert FiniteMDPEnv(masked_mdp(legal=legal)).reset()[1] == {}
    legal[2] = False  # no one acts in an absorbing state
    assert FiniteMDPEnv(masked_mdp(legal=legal)).reset()[1] == {}


# ---- errors -----------------------------------------------------------------------------------------------


def test_an_illegal_action_is_refused_and_changes_nothing():
    env = FiniteMDPEnv(masked_mdp())
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(ValueError, match=r"action 1 is not legal in state 1.*action_mask"):
        env.step(1)
    assert env.step(0)[2] is False
    assert env.step(0)[2] is True


def test_step_and_render_need_a_running_episode():
    env = ChainEnv(3, render_mode="ansi")
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(0)
    with pytest.raises(ResetNeeded, match="call reset"):
        env.render()
    env.reset(seed=0)
    env.step(0)
    env.step(np.int64(0))
    with pytest.raises(ResetNeeded, match="episode is over"):
        env.step(0)
    assert "period 2 of 2" in env.render()


def test_render_modes():
    with pytest.raises(ValueError, match="render_mode must be one of"):
        ChainEnv(3, render_mode="human")
    env = ChainEnv(3)
    env.reset()
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


# ---- pictures ---------------------------------------------------------------------------------------------

FACES = [
    lambda mode: ChainEnv(2, render_mode=mode),
    lambda mode: ChainEnv(50, render_mode=mode),
    lambda mode: DeepSeaEnv(1, render_mode=mode),
    lambda mode: DeepSeaEnv(10, stochastic=True, render_mode=mode),
    lambda mode: RiverSwimEnv(2, render_mode=mode),
    lambda mode: RiverSwimEnv(6, render_mode=mode),
    lambda mode: FiniteMDPEnv(masked_mdp(), render_mode=mode),
    lambda mode: FiniteMDPEnv(dirichlet(30, 2, 6), render_mode=mode),
]


@pytest.mark.parametrize("face", FACES)
def test_every_step_of_an_episode_looks_different(face):
    env, text = face("rgb_array"), face("ansi")
    env.reset(seed=0)
    text.reset(seed=0)
    pictures, lines, end = [env.render()], [text.render()], False
    while not end:
        end = env.step(0)[2]
        text.step(0)
        pictures.append(env.render())
        lines.append(text.render())
    assert {p.dtype for p in pictures} == {np.dtype(np.uint8)}
    assert len({p.shape for p in pictures}) == 1
    assert pictures[0].shape[2] == 3
    assert max(pictures[0].shape) <= 1100
    assert len({p.tobytes() for p in pictures}) == len(pictures)
    assert len(set(lines)) == len(lines)


def test_the_text_of_the_chain_and_the_river():
    env = ChainEnv(5, render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "◆○○○★  period 0 of 4"
    env.step(0)
    assert env.render() == "◆○○○★  period 1 of 4"
    river = RiverSwimEnv(3, 7, render_mode="ansi")
    river.reset(seed=0)
    assert river.render() == "¢ ◆ ≈ ≈ ★  period 0 of 7"


def test_the_text_of_the_sea_and_its_treasure():
    env = DeepSeaEnv(3, randomize_actions=False, render_mode="ansi")
    env.reset(seed=0)
    env.step(1)
    assert env.render() == "│ · ·\n· ◆ ·\n· · ★\nperiod 1 of 3"
    env.step(1)
    env.step(1)
    assert env.render() == "│ · ·\n· │ ·\n· · ◆\nperiod 3 of 3  treasure!"
    play(env, 0, [1, 1, 0])
    assert "treasure" not in env.render()


def test_canvas_shapes():
    canvas = Canvas(20, 10, (0, 0, 0))
    canvas.box(2, 3, 5, 6, (255, 0, 0))
    red = canvas.image()[..., 0]
    assert red.sum() == 9 * 255
    assert (red[3:6, 2:5] == 255).all()
    canvas.disc((14, 5), 4, GOLD)
    covered = canvas.image()[..., 1].sum() / GOLD[1]
    assert covered == pytest.approx(np.pi * 16, rel=0.01)  # smooth edges keep the area
    canvas.line([(-5, 9), (30, 9)], 2, (0, 0, 255))  # beyond the edges is cut off
    assert (canvas.image()[8:, :, 2] == 255).all()
    assert canvas.image().shape == (10, 20, 3)
