"""Callbacks of `learn`: what they are told, how they end learning, and that they never change what is learned."""

import errno
import os
import threading

import gymnasium as gym
import numpy as np
import pytest

import rlsvi
from contract.cases import BY_NAME
from contract.clean import Clean
from contract.interrupts import every_line, interrupted, some
from contract.state import assert_equal, everything
from rlsvi.callbacks import CSV, Callback, Checkpoint, Evaluate

EPISODIC = [name for name, case in BY_NAME.items() if not case.endless]
pytestmark = pytest.mark.usefixtures("quick_disk")


def lake(**options):
    return gym.make("FrozenLake-v1", is_slippery=False, **options)


def agent(seed=0):
    return rlsvi.DiscountedPSRL(seed=seed)


class Told(Callback):
    """Notes what it is told."""

    def __init__(self, answer=None, fails=None):
        self.answer, self.fails, self.calls = answer, fails, []

    def begin(self, agent, env):
        self.calls.append("begin")

    def episode(self, agent, numbers):
        self.calls.append(dict(numbers))
        if agent.episodes == self.fails:
            raise RuntimeError("the log is lost")
        return self.answer

    def end(self):
        self.calls.append("end")


# ---- being told, and stopping -----------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [False, np.False_, np.float64(1) > 2])
def test_false_of_python_and_of_numpy_ends_learning(answer):
    assert agent().learn(lake(), episodes=3, on_episode=lambda *_: answer).episodes == 1


@pytest.mark.parametrize("answer", [None, True, 0, np.True_, "no", []])
def test_only_false_itself_ends_learning(answer):
    told = Told(answer)
    assert agent().learn(lake(), episodes=3, on_episode=told).episodes == 3
    assert agent().learn(lake(), episodes=3, on_episode=lambda *_: answer).episodes == 3


def test_false_ends_learning_after_the_episode_and_all_are_told_of_it():
    first, last = Told(False), Told()
    found = agent().learn(lake(), episodes=9, on_episode=[first, lambda *_: None, last])
    assert found.episodes == 1
    assert [call if isinstance(call, str) else call["episodes"] for call in last.calls] == ["begin", 1, "end"]
    by_steps = agent().learn(lake(), steps=10**6, on_episode=lambda a, _: a.episodes < 4)
    assert by_steps.episodes == 4


def test_what_a_callback_is_told():
    told, returns = Told(), []
    found = agent().learn(lake(), episodes=4, on_episode=(told, lambda a, total: returns.append(total)))
    begin, *episodes, end = told.calls
    assert (begin, end) == ("begin", "end")
    assert [one["return"] for one in episodes] == returns
    assert [one["episodes"] for one in episodes] == [1, 2, 3, 4]
    assert sum(one["length"] for one in episodes) == episodes[-1]["steps"] == found.steps
    assert all(one["seconds"] > 0 and one["cpu_seconds"] >= 0 for one in episodes)
    assert "sweeps" not in episodes[-1]  # it has none


def test_what_the_practice_agent_and_rlsvi_tell():
    cart, told = gym.make("CartPole-v1"), Told()
    found = rlsvi.BoundedRLSVI(seed=0).learn(cart, episodes=3, on_episode=told)
    last = told.calls[-2]
    assert last["sweeps"] == found.planned.sweeps >= 1
    assert last["noise"] == found.planned.sigma > 0
    assert 0 <= last["bounds_hit"] <= 1
    assert "sweeps" not in told.calls[1]  # the first episode is played without a plan
    chain = gym.make("rlsvi/Chain-v0", length=4)
    for sigma, least in ((0.3, 0.3), (rlsvi.InverseGamma(), 0.0)):
        rlsvi.RLSVI(seed=0, sigma=sigma).learn(chain, episodes=3, on_episode=told)
        assert told.calls[-2]["noise"] >= least
    changing = rlsvi.TableOrFeatures(seed=0).learn(cart, episodes=8, on_episode=told)
    assert not changing.uses_table
    assert told.calls[-2]["sweeps"] >= 1


@pytest.mark.parametrize("bad", [3, "log.csv", CSV, [None], [Told(), 3], {"a": Told()}])
def test_what_is_no_callback_is_refused(bad):
    found = agent()
    with pytest.raises(TypeError, match="on_episode must be a function"):
        found.learn(lake(), episodes=1, on_episode=bad)
    assert found.episodes == 0


def test_a_callback_that_raises_leaves_the_agent_complete(tmp_path):
    failing, other, found = Told(fails=3), Told(), agent()
    with pytest.raises(RuntimeError, match="the log is lost"):
        found.learn(lake(), episodes=9, on_episode=[other, failing])
    assert other.calls[-1] == failing.calls[-1] == "end"
    assert_equal(everything(found, tmp_path), everything(agent().learn(lake(), episodes=3), tmp_path))
    whole = agent().learn(lake(), episodes=9)
    assert_equal(everything(found.learn(lake(), episodes=6), tmp_path), everything(whole, tmp_path))


def test_those_that_have_begun_are_ended_when_another_is_refused(tmp_path):
    other, late = Told(), CSV(tmp_path / "log.csv")
    late.path = tmp_path / "gone" / "log.csv"
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        agent().learn(lake(), episodes=1, on_episode=[other, late])
    assert other.calls == ["begin", "end"]


# ---- nothing changes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EPISODIC)
def test_callbacks_do_not_change_a_bit_and_checkpoints_continue_exactly(name, tmp_path):
    case = BY_NAME[name]
    plain = case.learned(6)
    logs = [Evaluate(2, case.env(), episodes=2, keep_best=tmp_path / "best"), CSV(tmp_path / "log.csv")]
    watched = case.learn(case.make(), 6, on_episode=[*logs, Checkpoint(4, tmp_path / "kept"), Told()])
    assert_equal(everything(watched, tmp_path), everything(plain, tmp_path))
    assert [result["episodes"] for result in logs[0].results] == [2, 4, 6]
    resumed = case.load(tmp_path / "kept")
    assert resumed.episodes == 4
    assert_equal(everything(case.learn(resumed, 2), tmp_path), everything(plain, tmp_path))
    best = case.load(tmp_path / "best")
    assert_equal(everything(best, tmp_path), everything(case.learned(best.episodes), tmp_path))
    assert rlsvi.evaluate(best, case.env(), 2).mean == max(r["evaluation_return"] for r in logs[0].results)


def test_an_agent_that_draws_to_predict_is_kept_too(tmp_path):
    """As one of a user might; the agents of this library do not, on the mean."""

    class Drawing(rlsvi.DiscountedPSRL):
        def _predict(self, key, observation, state, start, deterministic, mask):
            self._streams[3] += np.uint64(1)
            return super()._predict(key, observation, state, start, deterministic, mask)

    one, two = Drawing(seed=0), Drawing(seed=0)
    one.learn(lake(), episodes=3, evaluate_every=1)
    two.learn(lake(), episodes=3)
    assert (one._streams == two._streams).all()


# ---- evaluation -------------------------------------------------------------------------------------------


def test_evaluation_is_that_of_the_library():
    rows = Evaluate(10, episodes=5, seed=3)
    found = agent().learn(gym.make("FrozenLake-v1"), episodes=20, on_episode=rows)
    expected = rlsvi.evaluate(found, gym.make("FrozenLake-v1"), 5, seed=3)
    last = rows.results[-1]
    assert (last["episodes"], last["steps"]) == (20, found.steps)
    assert (last["evaluation_return"], last["evaluation_error"]) == (expected.mean, expected.error)
    single = Evaluate(1, episodes=1)
    agent().learn(lake(), episodes=1, on_episode=single)
    assert "evaluation_error" not in single.results[0]


def test_the_number_of_episodes_decides_also_in_later_calls():
    rows, found = Evaluate(4, episodes=1), agent()
    for amount in (3, 3, 1, 2):
        found.learn(lake(), episodes=amount, on_episode=rows)
    assert [row["episodes"] for row in rows.results] == [4, 8]


def test_the_second_environment_is_like_the_first():
    env = gym.wrappers.TransformReward(gym.make("FrozenLake-v1", is_slippery=False), lambda r: 10 * r)
    rows = Evaluate(30, episodes=2)
    agent().learn(env, episodes=60, on_episode=rows)
    assert rows.results[-1]["evaluation_return"] == 10.0
    shown = lake(render_mode="ansi")
    agent().learn(shown, episodes=1, evaluate_every=1)


class Corridor(gym.Env):
    """Without a spec."""

    observation_space, action_space = gym.spaces.Discrete(3), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return 0, {}

    def step(self, action):
        self.at += 1
        return self.at, float(action), self.at == 2, False, {}


@pytest.mark.parametrize("mode", [None, "ansi"])
def test_an_environment_whose_render_mode_cannot_be_set_is_copied(mode):
    class Fixed(Corridor):
        render_mode = property(lambda self: mode)

    rows = Evaluate(1, episodes=1)
    agent().learn(Fixed(), episodes=1, on_episode=rows)
    assert len(rows.results) == 1


def test_an_environment_made_by_hand_is_copied_and_not_disturbed(tmp_path):
    class Noisy(gym.ObservationWrapper):
        """Gymnasium cannot make it again, and it draws a number for each observation."""

        def observation(self, observation):
            return min(observation + int(self.np_random.integers(2)), 2)

    bare = gym.make("rlsvi/Chain-v0", length=3)
    for make in (lambda: Noisy(Corridor()), lambda: Noisy(bare)):
        evaluate, env, other = Evaluate(1, episodes=3), make(), make()
        found = everything(agent().learn(env, episodes=5, on_episode=evaluate), tmp_path)
        assert len(evaluate.results) == 5
        assert_equal(everything(agent().learn(other, episodes=5), tmp_path), found)
    unseeded, copy = Corridor(), Corridor()
    unseeded.reset(seed=1)
    copy.reset(seed=1)
    Evaluate(1).begin(agent(), unseeded)
    assert unseeded.np_random.bit_generator.state == copy.np_random.bit_generator.state


class Locked(Corridor):
    """Cannot be copied."""

    def __init__(self):
        self.lock = threading.Lock()


class Same(Corridor):
    """Has one copy only, itself."""

    def __deepcopy__(self, memo):
        return self


def test_an_environment_that_cannot_be_copied_is_given():
    found = agent()
    for env in (Locked(), Same()):
        with pytest.raises(TypeError, match=r"^env is an environment .*: give a second one .* evaluation_env="):
            found.learn(env, episodes=2, evaluate_every=1)
    assert found.episodes == 0
    with pytest.raises(ValueError, match="make a second one"):
        found.learn(env, episodes=2, evaluate_every=1, evaluation_env=env)
    for other in (lake(), gym.make("CartPole-v1")):
        with pytest.raises(ValueError, match="both must be the same"):
            found.learn(env, episodes=2, evaluate_every=1, evaluation_env=other)
    assert found.episodes == 0
    assert found.learn(env, episodes=2, evaluate_every=1, evaluation_env=Corridor()).episodes == 2


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"evaluate_every": 0}, ValueError, "evaluate_every must be a whole number of at least 1"),
        ({"evaluate_every": 2.5}, ValueError, "evaluate_every"),
        ({"evaluate_every": 1, "evaluation_env": "FrozenLake-v1"}, TypeError, "Gymnasium environment"),
        ({"evaluation_env": Corridor()}, ValueError, "evaluation_env needs evaluations: give evaluate_every="),
        ({"keep_best": "best"}, ValueError, "keep_best needs evaluations: give evaluate_every="),
        ({"evaluate_every": 1, "keep_best": "gone/best"}, FileNotFoundError, "there is no folder gone"),
        ({"evaluate_every": 1, "keep_best": "."}, IsADirectoryError, "it is a folder"),
        ({"evaluate_every": 1, "keep_best": 3}, TypeError, "name of a file"),
        ({"checkpoint_every": 0, "checkpoint": "kept"}, ValueError, "checkpoint_every must be a whole number"),
        ({"checkpoint_every": 1}, ValueError, "belong together"),
        (
            {"checkpoint_every": 1, "checkpoint": "kept", "evaluate_every": 1, "keep_best": "kept"},
            ValueError,
            "name two files",
        ),
        ({"checkpoint": "kept"}, ValueError, "belong together"),
        ({"checkpoint_every": 1, "checkpoint": "gone/kept"}, FileNotFoundError, "there is no folder gone"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_learned(arguments, kind, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = agent()
    with pytest.raises(kind, match=words):
        found.learn(lake(), episodes=2, **arguments)
    assert found.episodes == 0
    assert not list(tmp_path.iterdir())


# ---- files ------------------------------------------------------------------------------------------------


def test_the_best_is_kept_and_of_equals_the_first(tmp_path, monkeypatch):
    values = iter([1.0, 3.0, 3.0, 2.0, 4.0, 4.0])
    monkeypatch.setattr(Evaluate, "_returns", lambda self, agent: np.array([next(values)]))
    best, kept = tmp_path / "best", []
    agent().learn(
        *(lake(),),
        episodes=6,
        evaluate_every=1,
        keep_best=best,
        on_episode=lambda *_: kept.append(rlsvi.load(best).episodes),
    )
    assert kept == [1, 2, 2, 2, 5, 5]


def test_a_resumed_run_keeps_the_better_one(tmp_path):
    best = tmp_path / "best"
    good = agent().learn(lake(), episodes=60)
    assert rlsvi.evaluate(good, lake(), 20).mean == 1.0
    good.save(best)
    data = best.read_bytes()
    later = agent(1).learn(lake(), episodes=1)
    later.learn(lake(), episodes=2, evaluate_every=1, keep_best=best)
    assert best.read_bytes() == data  # nothing is better than 1
    agent(1).learn(lake(), episodes=1, evaluate_every=1, keep_best=best)  # a new agent begins anew
    assert rlsvi.load(best).episodes == 1


def test_a_file_of_another_agent_is_not_replaced(tmp_path):
    best, found = tmp_path / "best", agent().learn(lake(), episodes=1)
    rlsvi.StationaryRLSVI(seed=0).learn(lake(), episodes=1).save(best)
    with pytest.raises(ValueError, match="another kind of agent"):
        found.learn(lake(), episodes=1, evaluate_every=1, keep_best=best)
    best.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="damaged"):
        found.learn(lake(), episodes=1, evaluate_every=1, keep_best=best)
    assert found.episodes == 1


def test_checkpoints_with_numbers_are_all_kept(tmp_path):
    agent().learn(lake(), episodes=7, on_episode=Checkpoint(3, tmp_path / "lake-{episodes}.rlsvi"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake-3.rlsvi", "lake-6.rlsvi"]
    assert rlsvi.load(tmp_path / "lake-6.rlsvi").episodes == 6


def test_a_checkpoint_of_learning_by_steps_continues_exactly(tmp_path):
    chain = gym.make("rlsvi/Chain-v0", length=5)
    whole = rlsvi.RLSVI(seed=0).learn(chain, steps=10)
    whole.learn(chain, steps=20, checkpoint_every=5, checkpoint=tmp_path / "kept")
    part = rlsvi.load(tmp_path / "kept")
    assert part.steps == 20 < 30 < whole.steps
    part.learn(chain, steps=30 - part.steps)
    assert_equal(everything(part, tmp_path), everything(whole, tmp_path))


def test_an_agent_that_cannot_be_saved_is_refused_at_once(tmp_path):
    class Unsaved(rlsvi.DiscountedPSRL):
        restored_learner = rlsvi.agents.agent.Agent.restored_learner

    scheduled = rlsvi.LSVI(seed=0, explore=rlsvi.EpsilonGreedy(lambda episode: 0.1))
    chain = gym.make("rlsvi/Chain-v0", length=4)
    for found, env, kind in ((Unsaved(seed=0), lake(), TypeError), (scheduled, chain, ValueError)):
        for how in ({"checkpoint_every": 9, "checkpoint": "c"}, {"evaluate_every": 9, "keep_best": "c"}):
            with pytest.raises(kind, match=r"cannot be saved|a file cannot hold"):
                found.learn(env, episodes=1, **{k: tmp_path / v if v == "c" else v for k, v in how.items()})
            assert found.episodes == 0


@pytest.mark.parametrize("how", ["checkpoint", "keep_best"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_or_an_interrupt_leaves_the_last_file_and_a_complete_agent(how, error, tmp_path, monkeypatch):
    every = {"checkpoint": "checkpoint_every", "keep_best": "evaluate_every"}[how]
    values = iter([1.0, 2.0, 3.0])
    monkeypatch.setattr(Evaluate, "_returns", lambda self, agent: np.array([next(values)]))
    found, written = agent(), []

    def sync(descriptor):
        written.append(descriptor)
        if found.episodes == 3:
            raise error

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(type(error)) as caught:
        found.learn(lake(), episodes=5, **{every: 1, how: tmp_path / "kept"})
    assert isinstance(error, KeyboardInterrupt) or "cannot save to" in str(caught.value)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    assert rlsvi.load(tmp_path / "kept").episodes == 2
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert_equal(everything(found, tmp_path), everything(agent().learn(lake(), episodes=3), tmp_path))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a file just being opened
@pytest.mark.parametrize("name", ["DiscountedPSRL-table", "BoundedRLSVI-vector", "RLSVI-table"])
def test_an_interrupt_at_any_line_leaves_a_complete_agent_and_whole_files(name, thorough, tmp_path):
    case, kept, log = BY_NAME[name], tmp_path / "kept", tmp_path / "log.csv"

    def play(agent, episodes):
        watching = [
            Evaluate(1, case.env(), episodes=1, keep_best=tmp_path / "best"),
            CSV(log),
            Checkpoint(1, kept),
        ]
        return case.learn(agent, episodes, on_episode=watching)

    clean, bad = Clean(case, tmp_path, lambda agent, n: case.learn(agent, n)), []
    moments = some(every_line(lambda: play(case.make(), 2)), 200 if thorough else 40)
    for at in moments:
        for path in (kept, log):
            path.unlink(missing_ok=True)
        agent = case.make()
        stopped = interrupted(lambda agent=agent: play(agent, 2), at)
        done = agent.episodes
        assert stopped or done == 2
        complaint = clean.complaint(agent)
        bad += [f"line {at}: {complaint}"] if complaint else []
        logged = [line.split(",")[0] for line in log.read_text().splitlines()[1:]] if log.exists() else []
        assert logged == ["1", "2"][: len(logged)]
        saved = case.load(kept).episodes if kept.exists() else 0
        assert saved <= len(logged) <= done
    assert not bad, bad[:5]
    play(case.make(), 2)
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".tmp"]
