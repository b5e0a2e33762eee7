"""Files of agents beyond the contract: arguments, bases that are code, writes that fail, pickles that never run.

That learning goes on bit for bit and that damaged files are refused is tested for every agent by the contract.
"""

import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import rlsvi
from contract.damage import zipped
from contract.environments import drifting
from contract.state import entries_of
from rlsvi import LSVI, RLSVI, EpsilonGreedy, Exponential, Problem
from rlsvi.bases import StateFeatures, Tabular
from rlsvi.core.archive import ArchiveError
from rlsvi.envs import FiniteMDPEnv
from rlsvi.mdp import chain
from rlsvi.simulate import simulate
from twin import assert_same, state_of


def features(observation):
    return np.array([1.0, np.sum(observation), np.sum(observation) ** 2])


CODE = StateFeatures(features)


def taught(**options):
    """A small agent that has learned a little."""
    agent = RLSVI(seed=1, **options)
    simulate(agent, rlsvi.problems.chain(5, features=3), 10)
    return agent


@pytest.mark.slow
def test_a_new_process_goes_on_bit_for_bit(tmp_path):
    path = tmp_path / "agent.rlsvi"
    agent = RLSVI(seed=3)
    agent.learn(FiniteMDPEnv(chain(5)), episodes=10).save(path)
    program = (
        "import sys, rlsvi; from rlsvi.envs import FiniteMDPEnv; agent = rlsvi.load(sys.argv[1]);"
        "agent.learn(FiniteMDPEnv(rlsvi.mdp.chain(5)), episodes=10).save(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)
    assert_same(state_of(rlsvi.load(path)), state_of(agent.learn(FiniteMDPEnv(chain(5)), episodes=10)))


@pytest.mark.parametrize(
    "seed", [7, np.int64(7), np.random.SeedSequence(7).spawn(3)[2], np.random.SeedSequence([1, 2])], ids=str
)
def test_seeds_survive_and_clones_of_loaded_agents_begin_as_the_first_one_did(seed, tmp_path):
    agent = RLSVI(lam=0.5, prior_mean=np.arange(10.0), seed=seed)
    fresh = state_of(agent)
    agent.learn(FiniteMDPEnv(chain(5)), episodes=5).save(tmp_path / "a")
    clone = rlsvi.load(tmp_path / "a").clone()
    assert clone.episodes == 0
    assert_same(state_of(clone), fresh)
    assert_same(state_of(clone.learn(FiniteMDPEnv(chain(5)), episodes=5)), state_of(agent))


def test_a_file_that_another_version_has_written_is_read(tmp_path, monkeypatch):
    """The version in a file is for people: what can be read is decided by the arguments and arrays in it."""
    agent = RLSVI(seed=3)
    simulate(agent, rlsvi.problems.chain(4), 5)
    for version in ("0.2.0", "0.3.0.dev0", "9.9"):
        monkeypatch.setattr("rlsvi.agents.files.__version__", version)
        agent.save(tmp_path / version)
        monkeypatch.undo()
        with zipfile.ZipFile(tmp_path / version) as file:
            assert json.loads(file.read("header.json"))["rlsvi"] == version
        assert_same(state_of(rlsvi.load(tmp_path / version)), state_of(agent))


def test_every_argument_survives(tmp_path):
    pattern = LSVI(
        lam=np.float32(0.5),
        explore=EpsilonGreedy(Exponential(0.5, 0.9, 0.01)),
        basis=Tabular(),
        horizon=4,
        prior_mean=np.arange(3.0),
        reward_offset=-0.1,
        seed=None,
    )
    pattern.save(tmp_path / "a")
    loaded = rlsvi.load(tmp_path / "a")
    given, found = pattern.get_params(), loaded.get_params()
    np.testing.assert_array_equal(given.pop("prior_mean"), found.pop("prior_mean"))
    assert given == found
    assert_same(state_of(loaded), state_of(pattern))


@pytest.mark.parametrize("env", [drifting, lambda: FiniteMDPEnv(chain(5))], ids=["stored", "finite"])
def test_a_basis_that_is_code_must_be_given_again(env, tmp_path):
    RLSVI(basis=CODE, seed=0).learn(env(), episodes=2).save(tmp_path / "a")
    with pytest.raises(ArchiveError, match=r"a holds no basis.*load\(path, basis="):
        rlsvi.load(tmp_path / "a")
    assert rlsvi.load(tmp_path / "a", basis=CODE).episodes == 2


def test_a_basis_is_not_wanted_where_the_file_has_one(tmp_path):
    taught().save(tmp_path / "a")
    with pytest.raises(ArchiveError, match="leave basis= out"):
        rlsvi.load(tmp_path / "a", basis=Tabular())


def test_the_basis_of_the_problem_is_kept_with_the_agent(tmp_path):
    agent = RLSVI(seed=0)
    simulate(agent, Problem(chain(5), CODE), 3)
    agent.save(tmp_path / "a")
    with pytest.raises(ArchiveError, match="holds no basis"):
        rlsvi.load(tmp_path / "a")
    assert_same(state_of(rlsvi.load(tmp_path / "a", CODE)), state_of(agent))


def test_an_agent_with_its_own_basis_does_not_ask_for_the_problems(tmp_path):
    agent = RLSVI(basis=Tabular(), seed=0)
    simulate(agent, Problem(chain(5), CODE), 3)
    agent.save(tmp_path / "a")
    assert_same(state_of(rlsvi.load(tmp_path / "a")), state_of(agent))


def test_a_schedule_that_is_code_is_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "a"
    taught().save(path)
    old = path.read_bytes()
    with pytest.raises(ValueError, match=r"explore.epsilon .* a file cannot hold: use rlsvi.Linear"):
        LSVI(explore=EpsilonGreedy(lambda i: 0.1)).save(path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["a"]


def full_disk(*arguments, **options):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("where", ["os.replace", "os.fsync", "numpy.lib.format.write_array"])
def test_an_old_file_survives_a_write_that_fails(where, tmp_path, monkeypatch):
    path = tmp_path / "agent.rlsvi"
    agent = taught()
    agent.save(path)
    old = path.read_bytes()
    simulate(agent, rlsvi.problems.chain(5, features=3), 10)
    with monkeypatch.context() as patch:
        patch.setattr(where, full_disk)
        with pytest.raises(OSError, match="No space left"):
            agent.save(path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["agent.rlsvi"]
    agent.save(path)
    assert_same(state_of(rlsvi.load(path)), state_of(agent))
    assert os.listdir(tmp_path) == ["agent.rlsvi"]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        taught().save(tmp_path / "nowhere" / "agent")


def refused(path, message=None):
    with pytest.raises(ArchiveError, match=message) as caught:
        rlsvi.load(path)
    assert Path(path).name in str(caught.value)


class Trap:
    """Unpickling it writes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


@pytest.mark.parametrize("name", ["agent.rlsvi", "agent.pkl"])
def test_a_pickle_is_refused_and_not_run(name, tmp_path):
    (tmp_path / name).write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    refused(tmp_path / name, "not a saved agent")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("entry", ["streams.npy", "memory.phi.npy", "one more.npy"])
def test_a_pickle_inside_a_well_formed_file_is_refused_and_not_run(entry, tmp_path):
    path = tmp_path / "agent.rlsvi"
    taught().save(path)
    trap = np.array([Trap(tmp_path / "sprung")], dtype=object)
    data = io.BytesIO()
    np.lib.format.write_array(data, trap, allow_pickle=True)
    path.write_bytes(zipped((entries_of(path) | {entry: data.getvalue()}).items()))
    refused(path)
    assert not (tmp_path / "sprung").exists()


def test_a_pickle_in_place_of_an_array_is_refused_and_not_run(tmp_path):
    path = tmp_path / "agent.rlsvi"
    taught().save(path)
    trap = pickle.dumps(Trap(tmp_path / "sprung"))
    path.write_bytes(zipped((entries_of(path) | {"streams.npy": trap}).items()))
    refused(path)
    assert not (tmp_path / "sprung").exists()
