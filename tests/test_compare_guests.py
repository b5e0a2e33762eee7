"""compare() and agents of others: whole episodes, true copies, the same bits, every method called, an end."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils import EzPickle
from gymnasium.wrappers import TimeLimit

import rlsvi
from own_things import Corridor, Counting, QLearning, corridor, counting
from rlsvi import compare, problems
from rlsvi.simulate.finite import fused_for

HERE = Path(__file__).parent


def small(agents, problem, episodes=6, **options):
    return compare(agents, problem, episodes, **{"seeds": 2, "progress": False, **options})


class Endless(gym.Env):
    """Pays 1 a step."""

    observation_space, action_space = gym.spaces.Discrete(3), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, 1.0, False, False, {}


# ---- episodes ---------------------------------------------------------------------------------------------


class Steps(rlsvi.ContinualRLSVI):
    """Learns for a number of steps, as all continual agents do; notes how many."""

    asked = ()

    def learn(self, env, *, steps, **options):
        Steps.asked += (steps,)
        return super().learn(env, steps=steps, **options)


@pytest.mark.parametrize(
    ("make", "steps"),
    [
        (lambda: TimeLimit(Endless(), 150), 150),
        (lambda: TimeLimit(gym.wrappers.RecordEpisodeStatistics(TimeLimit(Endless(), 120)), 150), 120),
        (lambda: gym.make("FrozenLake-v1", max_episode_steps=7), 7),
        (counting, None),
    ],
    ids=["limit", "two limits", "made", "unknown"],
)
def test_an_agent_that_counts_steps_is_asked_for_enough_for_whole_episodes(make, steps, monkeypatch):
    monkeypatch.setattr(Steps, "asked", ())
    runs = small({"a": Steps}, make, 3, seeds=1)
    assert runs.frame.height == 3
    assert Steps.asked == ((3 * steps if steps else 10**9),)


def test_a_model_of_stable_baselines_is_asked_for_enough_steps_in_its_own_environment(monkeypatch):
    """The library itself need not be installed: its models derive from one class."""
    asked = []

    class BaseAlgorithm:
        def __init__(self, env):
            self.env = env

        def learn(self, total_timesteps):
            asked.append(total_timesteps)
            while True:
                self.env.reset()
                while not any(self.env.step(0)[2:4]):
                    pass

    module = SimpleNamespace(BaseAlgorithm=BaseAlgorithm)
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.base_class", module)
    runs = small({"a": BaseAlgorithm}, lambda: TimeLimit(Endless(), 150), 3, seeds=1)
    assert runs.frame["reward"].to_list() == [150] * 3
    assert asked == [450]


class Impatient:
    def __init__(self, env):
        pass

    def learn(self, env, episodes):
        for _ in range(episodes):
            env.reset()
            env.step(0)
            env.step(0)


@pytest.mark.parametrize("agent", [Impatient, rlsvi.RLSVI(horizon=2)], ids=["guest", "ours"])
def test_an_episode_that_is_cut_off_is_refused(agent):
    with pytest.raises(RuntimeError, match=r"reset after 2 steps of episode 0, .*TimeLimit\(env, steps\)"):
        small({"a": agent}, lambda: TimeLimit(Endless(), 9))


def test_a_guest_that_plays_too_few_episodes_is_named():
    class Lazy(QLearning):
        def learn(self, env, episodes):
            super().learn(env, episodes - 1)

    with pytest.raises(RuntimeError, match=r"Lazy\.learn returned after 5 of 6 episodes"):
        small({"a": Lazy}, corridor)


# ---- copies -----------------------------------------------------------------------------------------------


class Rebuilt(Corridor, EzPickle):
    """Copies are made anew from the arguments of the constructor."""

    def __init__(self, length=3):
        Corridor.__init__(self, length)
        EzPickle.__init__(self, length)
        self.weights, self.at = np.ones(2), None


def test_a_copy_that_would_lose_a_change_is_refused():
    env = TimeLimit(Rebuilt(4), 10)
    env.reset(seed=1)  # sets what is None in a new one
    small({"Q": QLearning}, env)
    env.unwrapped.length, env.unwrapped.weights[0] = 5, 2.0
    with pytest.raises(
        TypeError, match=r"Rebuilt is an EzPickle\), so copies would not have its length, weights: pass"
    ):
        small({"Q": QLearning}, env)
    plain = corridor(4)
    plain.unwrapped.length = 3  # deepcopy keeps it
    assert small({"Q": QLearning}, plain).frame["reward"].max() == 1.0

    def changed():
        made = TimeLimit(Rebuilt(4), 10)
        made.unwrapped.length = 3
        return made

    ours = small({"Q": QLearning}, changed).frame["reward"]
    assert ours.equals(small({"Q": QLearning}, lambda: corridor(3)).frame["reward"])


def test_what_cannot_be_copied_or_sent_is_made_for_each_run():
    gym.register("Counting-v0", entry_point=Counting)
    try:
        for problem in (counting, "Counting-v0"):
            one = small({"Q": QLearning}, problem, 4).frame
            assert one.equals(small({"Q": QLearning}, problem, 4, executor="serial").frame)
    finally:
        del gym.registry["Counting-v0"]
    assert one.equals(small({"Q": QLearning}, counting, 4, executor="processes", workers=1).frame)


def test_environments_are_closed():
    class Failing(QLearning):
        def learn(self, env, episodes):
            raise OSError("the cable")

    Counting.opened = Counting.closed = 0
    small({"Q": QLearning, "default": rlsvi.agent_for}, counting)
    with pytest.raises(OSError, match="the cable"):
        small({"failing": Failing}, counting, workers=1)
    assert Counting.opened == Counting.closed > 4


def test_a_function_must_make_a_new_environment_at_each_call():
    env = corridor()
    with pytest.raises(TypeError, match="has returned the same environment twice: let it make a new one"):
        small({"Q": QLearning}, lambda: env)


# ---- the same bits ----------------------------------------------------------------------------------------

FAKE = """
import random
_own = random.Random()
manual_seed, get_rng_state, set_rng_state, draw = _own.seed, _own.getstate, _own.setstate, _own.randrange
"""


class Importing:
    """Draws from torch, which it imports itself."""

    def __init__(self, env):
        import torch

        self.torch, self.first = torch, torch.draw(2)

    def learn(self, env, episodes):
        for _ in range(episodes):
            over = False
            env.reset()
            while not over:
                *_, terminated, truncated, _ = env.step((self.torch.draw(2) + self.first) % 2)
                over = terminated or truncated


@pytest.fixture
def _no_torch_afterwards():
    """Whatever a test imports as torch is gone when it ends."""
    before = sys.modules.get("torch")
    yield
    sys.modules.pop("torch", None)
    if before is not None:
        sys.modules["torch"] = before


@pytest.mark.usefixtures("_no_torch_afterwards")
def test_an_agent_that_imports_torch_is_seeded_from_the_first_draw_on(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text(FAKE)
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for _ in range(3):
        monkeypatch.delitem(sys.modules, "torch", raising=False)
        before = list(sys.meta_path)
        found.append(small({"a": Importing}, counting, 12, workers=1).frame)
        assert sys.meta_path == before
    assert found[0].equals(found[1])
    assert found[0].equals(found[2])
    assert found[0].equals(small({"a": Importing}, counting, 12, workers=1).frame)  # now it is there
    assert found[0]["reward"].n_unique() > 2


class Drawing(rlsvi.RLSVI):
    """A subclass that draws from the generator that all share."""

    def _choose(self, *arguments):
        return int(np.random.randint(2))  # noqa: NPY002


def test_a_subclass_that_draws_from_the_shared_generator_is_seeded():
    for agent in (Drawing(), Drawing, lambda seed: Drawing(seed=seed)):
        one, other = (small({"g": agent}, problems.chain(4), 20, workers=workers).frame for workers in (1, 2))
        assert one.equals(other)


# ---- methods ----------------------------------------------------------------------------------------------


def test_settle_is_called_before_every_episode():
    calls = []

    class Own(rlsvi.RLSVI):
        def _settle(self):
            calls.append(self.episodes)
            super()._settle()

    assert small({"own": Own()}, problems.chain(4), 5, seeds=1).loops == {"own": "stepped"}
    assert calls == list(range(5))
    by_evidence = rlsvi.RLSVI(sigma=rlsvi.ByEvidence())  # our own settle is known to the compiled loop
    assert small({"ours": by_evidence}, problems.chain(4), 5).loops == {"ours": "fused"}


def test_methods_that_are_set_on_an_instance_are_called():
    paid = []

    def patched(seed):
        agent = rlsvi.RLSVI(seed=seed)
        agent.reward = lambda reward: paid.append(reward) or reward
        return agent

    assert not fused_for(patched(0))
    assert small({"a": patched}, problems.chain(4), 3, seeds=1).loops == {"a": "stepped"}
    assert len(paid) == 3 * 3


# ---- errors -----------------------------------------------------------------------------------------------


def test_an_error_names_agent_and_seed():
    class Failing(QLearning):
        def learn(self, env, episodes):
            raise KeyError("boom")

    with pytest.raises(KeyError) as caught:
        small({"failing": Failing}, corridor, seeds=[7])
    assert caught.value.__notes__ == ["in the run of agents['failing'] with seed 7"]


def test_a_guest_that_learns_in_another_way_is_refused():
    class Other(QLearning):
        def learn(self, total_timesteps):
            pass

    with pytest.raises(TypeError, match=r"Other\.learn cannot be called as learn\(env, episodes\)"):
        small({"a": Other}, corridor)


def test_an_agent_that_does_not_heed_the_mask_is_told_so():
    class Blind(QLearning):
        def predict(self, *arguments, **options):
            return 0, None

    with pytest.raises(ValueError, match="is not legal") as caught:
        small({"a": Blind}, problems.recommendation(4, 2, seed=1), seeds=1)
    assert "an agent that does not heed it cannot play this problem" in "".join(caught.value.__notes__)


# ---- stopping ---------------------------------------------------------------------------------------------


class Never:
    """Steps rarely, swallows errors, or does not step at all."""

    begun = 0
    released = threading.Event()

    def __init__(self, env):
        pass

    def learn(self, env, episodes, how):
        Never.begun += 1
        env.reset()
        while not Never.released.is_set():
            time.sleep(0.02)
            if how != "idle":
                with suppress(Exception):
                    env.step(0)


@pytest.mark.parametrize("how", ["slow", "idle"])
def test_an_interrupt_ends_a_comparison(how, recwarn):
    class Such(Never):
        def learn(self, env, episodes):
            super().learn(env, episodes, how)

    Never.begun = 0
    Never.released.clear()
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        small({"a": Such}, Endless, 2, seeds=3, workers=3)
    assert time.monotonic() - begin < 30  # it never ended
    assert any("go on in the background" in str(it.message) for it in recwarn) == (how == "idle")
    Never.released.set()
    small({"Q": QLearning}, corridor)  # which has to wait for the others
    assert Never.begun == 1  # those that waited did not begin


def test_an_error_stops_an_agent_in_an_endless_episode():
    class Such(Never):
        def learn(self, env, episodes):
            super().learn(env, episodes, "slow")

    Never.released.clear()
    with pytest.raises(ValueError, match="number of periods is not known"):
        small({"slow": Such, "failing": rlsvi.RLSVI()}, Endless, 2, seeds=1, workers=2)


def python(code, folder):
    """Run code without a file in a folder."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE.parent / "src"), str(HERE), *sys.path[1:]]),
    }
    command = [sys.executable, "-P", "-c", textwrap.dedent(code)]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


GUEST = """
import rlsvi
from own_things import QLearning, corridor
class Mine(QLearning): pass
def compared(executor):
    return rlsvi.compare({"a": Mine}, corridor, 3, 2, workers=1, executor=executor, progress=False).frame
"""


def test_what_is_defined_on_the_command_line_needs_a_module(tmp_path):
    code = f"""{GUEST}
try: compared("processes")
except TypeError as error: print(error)
print(compared("serial").height)
"""
    message, height = python(code, tmp_path).splitlines()
    assert "agents['a'] is defined in a notebook or on a command line" in message
    assert "define it by name at the top level of a module" in message
    assert height == "6"


@pytest.mark.slow
def test_ray_takes_what_is_defined_in_a_script(tmp_path):
    pytest.importorskip("ray")
    assert python(f"{GUEST}\nprint(compared('ray').equals(compared(None)))", tmp_path).split() == ["True"]
