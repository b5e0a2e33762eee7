"""The learning curve: `agent.returns` and `agent.plot`."""

import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from matplotlib.figure import Figure

import rlsvi
from rlsvi.core.archive import ArchiveError
from rlsvi.simulate import simulate

CHAIN = rlsvi.problems.chain(5)
STORED = Path(__file__).parent / "files/PSRL.rlsvi"  # without returns


def env():
    return rlsvi.envs.FiniteMDPEnv(CHAIN.mdp)


@pytest.mark.parametrize(
    "make", [rlsvi.RLSVI, rlsvi.DiscountedPSRL, rlsvi.StationaryRLSVI], ids=lambda it: it.__name__
)
def test_the_returns_are_those_of_all_episodes_also_after_loading(make, tmp_path):
    told = []
    whole = make(seed=1).learn(env(), 9, on_episode=lambda agent, value: told.append(value))
    assert whole.returns.tolist() == told
    make(seed=1).learn(env(), 4).save(tmp_path / "part")
    assert rlsvi.load(tmp_path / "part").learn(env(), 5).returns.tolist() == told
    assert len(make(seed=1).returns) == 0


def test_the_compiled_loops_keep_them_too():
    stepped, fused = rlsvi.RLSVI(seed=2).learn(env(), 300), rlsvi.RLSVI(seed=2)
    history = simulate(fused, CHAIN, 150)
    assert fused.returns.tolist() == history.reward.tolist()
    history.reward[:] = -1  # which belongs to the user
    simulate(fused.learn(env(), 50), CHAIN, 100)
    assert fused.returns.tolist() == stepped.returns.tolist()


def test_a_file_without_returns_is_read_and_what_is_not_known_is_nan():
    agent = rlsvi.load(STORED)
    before = agent.episodes
    assert before > 0
    assert len(agent.returns) == 0
    with pytest.raises(RuntimeError, match="not known"):
        agent.plot()
    agent.learn(rlsvi.envs.FiniteMDPEnv(rlsvi.mdp.chain(3)), 2)
    assert np.isnan(agent.returns).tolist() == [True] * before + [False] * 2
    assert agent.diagnose().facts["returns"].endswith("in the last 2 episodes, the only ones known here")


def test_a_damaged_return_is_refused(tmp_path):
    agent = rlsvi.RLSVI(seed=0).learn(env(), 3)
    agent._earned[1] = np.inf
    agent.save(tmp_path / "agent")
    with pytest.raises(ArchiveError, match="not finite"):
        rlsvi.load(tmp_path / "agent")


def test_rewards_found_before_are_remembered(tmp_path):
    """After loading, or in the compiled loop: nobody is told that there was none."""
    agent = rlsvi.RLSVI(seed=0)
    simulate(agent, CHAIN, 1100)
    agent.save(tmp_path / "agent")
    nothing = gymnasium.wrappers.TransformReward(env(), lambda reward: 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent.learn(nothing, 1)
        rlsvi.load(tmp_path / "agent").learn(nothing, 1)


def test_the_curve_is_drawn(tmp_path):
    agent, axes = rlsvi.RLSVI(seed=0).learn(env(), 30), Figure().subplots()
    assert agent.plot(tmp_path / "curve.png", ax=axes) is axes
    assert (tmp_path / "curve.png").stat().st_size > 1000
    assert axes.lines[0].get_xdata().tolist() == list(range(1, 31))
    assert axes.lines[0].get_ydata().tolist() == agent.returns.tolist()
    assert axes.lines[1].get_ydata()[-1] == pytest.approx(agent.returns[-3:].mean())
    few = rlsvi.RLSVI(seed=0).learn(env(), 3).plot()
    few.figure.draw_without_rendering()
    assert all(tick == round(tick) for tick in few.get_xticks())


def test_what_cannot_be_drawn_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="call learn first"):
        rlsvi.RLSVI().plot(tmp_path / "curve.png")
    with pytest.raises(TypeError, match="ax must be axes"):
        rlsvi.RLSVI(seed=0).learn(env(), 1).plot(ax=3)
    assert not list(tmp_path.iterdir())
