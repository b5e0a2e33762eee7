"""The fused loop of Tetris: the Gymnasium path, bit for bit; stops, errors, levels."""

import gymnasium
import numpy as np
import pytest

import rlsvi
import rlsvi_paper.tetris.loop as module
from rlsvi import (
    Boltzmann,
    DivergenceWarning,
    EpsilonGreedy,
    Exponential,
    InverseGamma,
    Linear,
    StationaryLSVI,
    StationaryRLSVI,
)
from rlsvi.bases import StateFeatures
from rlsvi.core.archive import ArchiveError
from rlsvi.core.regression import FactorError
from rlsvi_paper.tetris import Tetris, rules
from rlsvi_paper.tetris.environment import TetrisEnv
from rlsvi_paper.tetris.loop import simulate_tetris
from saved import read, write
from twin import assert_same, state_of
from watch import python

AFTER = {"basis": Tetris(), "form": "afterstate", "seed": 5}
# Heights, differences, greatest height, holes, constant: plays hundreds of pieces.
PLAYER = np.array([-0.03] * 10 + [-0.4] * 9 + [-0.3, -2.0, 0.0])

CASES = {
    "afterstate": (lambda: StationaryRLSVI(**AFTER), {}),
    "literal": (lambda: StationaryRLSVI(basis=Tetris(), seed=1), {}),
    "raw": (lambda: StationaryRLSVI(basis=Tetris(units="raw"), form="afterstate", seed=2, lam=50.0), {}),
    "own units": (lambda: StationaryRLSVI(basis=Tetris(units=np.linspace(0.1, 1, 10)), seed=2), {}),
    "eviction": (lambda: StationaryRLSVI(**AFTER, memory=40), {}),
    "one transition": (lambda: StationaryRLSVI(**AFTER, memory=1), {}),
    "shorter than a game": (lambda: StationaryRLSVI(basis=Tetris(), seed=3, memory=7, regressions=3), {}),
    "all": (lambda: StationaryRLSVI(**AFTER, memory=None, regressions=2), {}),
    "inverse gamma": (lambda: StationaryRLSVI(**AFTER, sigma=InverseGamma(2.0, 0.5), memory=60), {}),
    "greedy": (lambda: StationaryLSVI(**AFTER), {}),
    "epsilon": (lambda: StationaryLSVI(**AFTER, explore=EpsilonGreedy(0.3), memory=50), {}),
    "exponential": (lambda: StationaryLSVI(**AFTER, explore=EpsilonGreedy(Exponential(1.0, 0.8))), {}),
    "linear": (lambda: StationaryLSVI(basis=Tetris(), explore=EpsilonGreedy(Linear(1, 0, 5)), seed=4), {}),
    "Boltzmann": (lambda: StationaryLSVI(**AFTER, explore=Boltzmann(0.5)), {}),
    "truncated": (lambda: StationaryRLSVI(**AFTER, memory=45), {"max_pieces": 6}),
    "one piece": (lambda: StationaryRLSVI(basis=Tetris(), seed=2), {"max_pieces": 1}),
    "S and Z": (lambda: StationaryRLSVI(**AFTER), {"pieces": "SZ", "width": 5, "height": 4}),
    "overflow": (lambda: StationaryRLSVI(**AFTER), {"game_over": "overflow", "height": 5}),
    "dellacherie": (lambda: StationaryRLSVI(**{**AFTER, "basis": Tetris("dellacherie")}, memory=9), {"height": 3}),
}


def board_of(options):
    """The environment and the arguments of the fused loop for a board."""
    given = {"height": 8, "width": 4, **options}
    env = TetrisEnv(**given)
    limit = given.pop("max_pieces", None)
    return env, rules(**given), {"max_pieces": limit}


class Recorder:
    """An environment that counts what Gymnasium reports of each game."""

    def __init__(self, env):
        self.env, self.games = env, []
        step, reset = env.step, env.reset

        def recorded(action):
            result = step(action)
            rows, pieces, _ = self.games[-1]
            self.games[-1] = rows + int(result[1]), pieces + 1, result[2]
            return result

        def begun(**options):
            self.games.append((0, 0, False))
            return reset(**options)

        env.step, env.reset = recorded, begun


@pytest.mark.parametrize("name", CASES)
def test_the_fused_loop_is_the_gymnasium_path_bit_for_bit(name):
    make, options = CASES[name]
    env, board, limit = board_of(options)
    recorder, plain, fused = Recorder(env), make(), make()
    sizes = []
    for _ in range(9):
        plain.learn(env, episodes=1)
        sizes.append(np.linalg.norm(plain._learner.mind.theta))
    found = simulate_tetris(fused, board, 9, **limit)
    assert list(zip(*(field.tolist() for field in found[:3]), strict=True)) == recorder.games
    assert found.size == pytest.approx(sizes)
    assert found.excess[-1] == plain.excess
    assert_same(state_of(fused), state_of(plain))
    assert fused.steps == found.pieces.sum() > (8 if name == "one piece" else 20)


WIDER = """
import numpy as np, rlsvi
from rlsvi_paper.tetris import Tetris, TetrisEnv, rules, simulate_tetris
from twin import assert_same, state_of
for height, width, dtype in ((8, 4, "int16"), (60, 8, "float64")):
    agents = []
    for _ in range(2):
        basis = Tetris("dellacherie")
        agents.append(rlsvi.StationaryRLSVI(basis=basis, form="afterstate", seed=1, memory=11))
    agents[0].learn(TetrisEnv(height, width, max_pieces=6), episodes=3)
    simulate_tetris(agents[1], rules(height, width), 3, max_pieces=6)
    assert agents[1]._learner.mind.ring.x.dtype == dtype, agents[1]._learner.mind.ring.x.dtype
    assert_same(*(state_of(agent) for agent in agents))
"""


def test_features_that_need_more_than_a_byte():
    """Without compiling, which would have to be done for every type anew."""
    python(WIDER, NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="ignore")


def test_the_two_paths_may_alternate_also_through_a_file(tmp_path):
    env, board, _ = board_of({})
    make = CASES["eviction"][0]
    whole, parts = make(), make()
    simulate_tetris(whole, board, 12)
    parts.learn(env, episodes=3)
    simulate_tetris(parts, board, 4)
    parts.save(tmp_path / "agent")
    parts = rlsvi.load(tmp_path / "agent")
    simulate_tetris(parts, board, 2)
    parts.learn(env, episodes=3)
    assert_same(state_of(parts), state_of(whole))


@pytest.mark.parametrize("memory", [None, 100])
def test_long_games_grow_and_overflow_what_is_kept(memory, monkeypatch):
    """Hundreds of pieces a game: more than there is room for at first, and than such an agent remembers."""
    env, board, limit = board_of({"height": 20, "width": 10, "max_pieces": 700})
    make = lambda: StationaryRLSVI(  # noqa: E731
        basis=Tetris(units="raw"), seed=1, memory=memory, prior_mean=PLAYER, lam=1e6, form="afterstate"
    )
    plain, fused, chunked = make().learn(env, episodes=3), make(), make()
    found = simulate_tetris(fused, board, 3, **limit)
    assert found.pieces[-1] > 600
    assert_same(state_of(fused), state_of(plain))
    monkeypatch.setattr(module, "CHUNK", 3)
    simulate_tetris(chunked, board, 3, **limit)
    assert_same(state_of(chunked), state_of(plain))


def test_a_game_that_is_cut_off_goes_on_in_the_targets():
    _, board, _ = board_of({})
    agent = StationaryRLSVI(**AFTER)
    found = simulate_tetris(agent, board, 3, max_pieces=2)
    ring = agent._learner.mind.ring
    assert not found.over.any()
    assert found.pieces.tolist() == [2, 2, 2]
    assert (ring.following[:6] > 0).all()
    ends = simulate_tetris(agent, board, 1)
    assert ends.over.all()
    assert ring is agent._learner.mind.ring
    assert ring.following[ring.size[0] - 1] == 0


# ---- stops ------------------------------------------------------------------------------------------------


def test_stopping_in_the_middle_of_a_game_leaves_the_agent_as_before_it(monkeypatch):
    _, board, _ = board_of({})
    agent, twin = (CASES["eviction"][0]() for _ in range(2))
    done, chunks, play_on = [], [], module.play_on

    def interrupted(*arguments):
        status = play_on(*arguments)
        chunks.append(status)
        if len(done) == 4 and status == module.STOPPED and chunks[-2] == module.STOPPED:
            raise KeyboardInterrupt
        return status

    monkeypatch.setattr(module, "CHUNK", 2)
    monkeypatch.setattr(module, "play_on", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulate_tetris(agent, board, 10, advance=done.append)
    assert done == [1] * 4
    monkeypatch.undo()
    simulate_tetris(twin, board, 4)
    assert_same(state_of(agent), state_of(twin))
    assert_same(*(state_of(one) for one in (agent, twin) if simulate_tetris(one, board, 3).pieces.sum() > 0))


def test_values_that_break_are_an_error_and_leave_the_agent_as_it_was(monkeypatch):
    _, board, _ = board_of({})
    agent = StationaryRLSVI(basis=Tetris(units="raw"), seed=0)
    new_learner = agent.new_learner

    def with_huge_weights(task, example):
        learner = new_learner(task, example)
        learner.mind.theta[:] = 1e308
        return learner

    monkeypatch.setattr(agent, "new_learner", with_huge_weights)
    before = state_of(agent)
    with pytest.raises(FactorError, match="the values diverged"):
        simulate_tetris(agent, board, 1)
    assert_same(state_of(agent), before)
    assert agent.episodes == 0


def test_divergence_is_reported():
    _, board, _ = board_of({})
    agent = StationaryRLSVI(**AFTER, diverged_above=1e-6)
    with pytest.warns(DivergenceWarning, match="the values diverge"):
        found = simulate_tetris(agent, board, 3)
    assert agent.diverged
    assert found.excess[0] == 0.0
    assert (found.excess[1:] > 1e-6).all()


def test_no_games_change_nothing():
    agent = StationaryRLSVI(**AFTER)
    before = state_of(agent)
    assert simulate_tetris(agent, rules(), 0).rows.size == 0
    assert_same(state_of(agent), before)


def test_bad_arguments():
    _, board, _ = board_of({})
    for other in (rlsvi.RLSVI(basis=Tetris()), StationaryRLSVI(), StationaryRLSVI(basis=StateFeatures(np.ravel))):
        with pytest.raises(TypeError, match=r"must be a StationaryRLSVI or StationaryLSVI with basis"):
            simulate_tetris(other, board, 1)
    agent = StationaryRLSVI(**AFTER)
    with pytest.raises(ValueError, match="games must be a whole number of at least 0"):
        simulate_tetris(agent, board, -1)
    with pytest.raises(ValueError, match="max_pieces must be a whole number of at least 1"):
        simulate_tetris(agent, board, 1, max_pieces=0)
    simulate_tetris(agent, board, 2)
    before = state_of(agent)
    for bad in (None, 20, {"height": 8}):
        with pytest.raises(TypeError, match=r"rules must be what rlsvi_paper.tetris.rules\(\) returns, got"):
            simulate_tetris(agent, bad, 1)
    for bad in (None, {"board": np.full((8, 4), 7), "piece": 0}):
        with pytest.raises(ValueError, match=r"needs observations|zeros and ones only"):
            agent.predict(bad)
    assert_same(state_of(agent), before)


# ---- the rules an agent has learned by --------------------------------------------------------------------

LEARNED = {"height": 8, "width": 4, "pieces": "OTZ", "game_over": "top row"}
OTHER = {"height": 9, "width": 5, "pieces": "OTS", "game_over": "overflow"}


def forgetful(path, *names):
    """Write an agent anew as if it had not been told some of the rules."""
    header, arrays = read(path)
    header["setting"] = {name: value for name, value in header["setting"].items() if name not in names}
    write(path, header, arrays)


@pytest.mark.parametrize("name", LEARNED)
@pytest.mark.parametrize("units", ["raw", "scaled"])
def test_an_agent_keeps_to_the_rules_it_has_learned_by(units, name, tmp_path):
    fused, plain = (StationaryRLSVI(basis=Tetris(units=units), form="afterstate", seed=5) for _ in range(2))
    assert fused.setting == {}
    simulate_tetris(fused, rules(**LEARNED), 2)
    plain.learn(TetrisEnv(**LEARNED), episodes=2)
    fused.save(tmp_path / "agent")
    other = {**LEARNED, name: OTHER[name]}
    for agent in (fused, plain, rlsvi.load(tmp_path / "agent")):
        assert agent.setting == LEARNED
        before = state_of(agent)
        for go_on in (
            lambda agent: simulate_tetris(agent, rules(**other), 1),
            lambda agent: agent.learn(TetrisEnv(**other), episodes=1),
        ):
            message = (
                f"learned with {name} {LEARNED[name]!r}, it cannot go on with {name} {OTHER[name]!r}: keep to"
            )
            with pytest.raises(ValueError, match=message):
                go_on(agent)
        assert_same(state_of(agent), before)
        simulate_tetris(agent, rules(**LEARNED), 1)
        agent.learn(TetrisEnv(**LEARNED), episodes=1)
        assert agent.clone().setting == {}
    assert_same(state_of(fused), state_of(plain))


class Stranger(gymnasium.Wrapper):
    """Tetris that does not say by which rules."""

    unwrapped = None


def test_the_basis_tells_the_size_of_the_board(tmp_path):
    agent = StationaryRLSVI(basis=Tetris(units="raw"), seed=0)
    agent.learn(Stranger(TetrisEnv(**LEARNED)), episodes=2)
    assert agent.setting == {"height": 8, "width": 4}
    agent.save(tmp_path / "agent")
    for other in ({"height": 9}, {"width": 3}):
        loaded, env = rlsvi.load(tmp_path / "agent"), Stranger(TetrisEnv(**{**LEARNED, **other}))
        with pytest.raises(ValueError, match=f"it cannot go on with {next(iter(other))}"):
            loaded.predict(env.reset()[0])
    rlsvi.load(tmp_path / "agent").learn(TetrisEnv(**{**LEARNED, "game_over": "overflow"}), episodes=1)


@pytest.mark.parametrize("names", [("pieces", "game_over"), tuple(LEARNED)])
def test_files_that_tell_less_are_read_and_refused_by_their_features(names, tmp_path):
    agent = StationaryRLSVI(**AFTER)
    simulate_tetris(agent, rules(**LEARNED), 2)
    agent.save(tmp_path / "agent")
    forgetful(tmp_path / "agent", *names)
    loaded = rlsvi.load(tmp_path / "agent")
    words = "height 8, it cannot" if len(names) == 2 else "1 blocks of 10 features, but in other units.*clone"
    with pytest.raises(ValueError, match=f"this agent has learned with {words}"):
        simulate_tetris(loaded, rules(**{**LEARNED, "height": 9}), 1)
    for one in (agent, loaded):
        simulate_tetris(one, rules(**LEARNED), 2)
    assert_same(state_of(loaded), state_of(agent))


def test_a_setting_that_is_none_is_refused(tmp_path):
    agent = StationaryRLSVI(**AFTER)
    simulate_tetris(agent, rules(**LEARNED), 1)
    agent.save(tmp_path / "agent")
    header, arrays = read(tmp_path / "agent")
    write(tmp_path / "agent", {**header, "setting": [8, 4]}, arrays)
    with pytest.raises(ArchiveError, match="its setting must be names and values"):
        rlsvi.load(tmp_path / "agent")


# ---- games ------------------------------------------------------------------------------------------------


def test_every_game_knows_its_rule():
    one, two = (
        simulate_tetris(StationaryRLSVI(**AFTER), rules(5, 4, game_over=rule), 2, max_pieces=9)
        for rule in ("top row", "overflow")
    )
    assert (one.game_over.tolist(), two.game_over.tolist()) == (["top row"] * 2, ["overflow"] * 2)


def test_it_learns():
    """On a board 10 by 6: from a few rows a game to forty and more."""
    agent = StationaryRLSVI(**AFTER)
    found = simulate_tetris(agent, rules(10, 6), 120)
    last = found.rows[-40:]
    assert found.rows[:5].mean() < 5
    assert last.mean() - 3 * last.std(ddof=1) / len(last) ** 0.5 > 20
    assert not agent.diverged
    share = found.rows[-40:].sum() * 6 / (4 * found.pieces[-40:].sum())  # of the cells placed
    assert 0.8 < share < 1.0


def test_the_returns_of_an_agent_are_the_rows_of_its_games():
    player = rlsvi.StationaryRLSVI(basis=Tetris(), seed=0)
    games = simulate_tetris(player, rules(height=6, width=5, pieces="IO"), 3)
    assert player.returns.tolist() == games.rows.tolist()
