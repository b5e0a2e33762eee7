"""Save and load: learning goes on bit for bit; damaged, foreign and hostile files are refused and run nothing."""

import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import rlsvi
from rlsvi import LSVI, RLSVI, Boltzmann, EpsilonGreedy, Exponential, Linear, Problem
from rlsvi.agents import archive
from rlsvi.agents.archive import ArchiveError
from rlsvi.agents.finite.memory import Memory
from rlsvi.bases import Dense, StateFeatures, Tabular
from rlsvi.envs import FiniteMDPEnv
from rlsvi.mdp import chain, deep_sea
from rlsvi.simulate.finite import simulate
from twin import assert_same, state_of


class Drift(gymnasium.Env):
    """A number drifts until it leaves [-1, 1], eight periods at most."""

    horizon = 8
    observation_space = Box(-2.0, 2.0, (1,), np.float64)
    action_space = Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = 0.0
        return np.array([self.x]), {}

    def step(self, action):
        self.x += 0.3 * (action - 1) + 0.3 * self.np_random.normal()
        return np.array([self.x]), 1.0 - self.x**2, abs(self.x) > 1, False, {}


def features(observation):
    return np.array([1.0, np.sum(observation), np.sum(observation) ** 2])


def taught(**options):
    """A small agent that has learned a little."""
    agent = RLSVI(seed=1, **options)
    simulate(agent, rlsvi.problems.chain(5, features=3), 10)
    return agent


# ---- learning goes on -------------------------------------------------------------------------------------

CODE = StateFeatures(features)
AGENTS = {
    "finite": (RLSVI(seed=5), lambda: FiniteMDPEnv(deep_sea(4, stochastic=True)), None),
    "finite, a Dense basis": (
        RLSVI(seed=5, basis=Dense(np.random.default_rng(0).normal(size=(5, 2, 3))), prior_mean=np.ones((4, 3))),
        lambda: FiniteMDPEnv(chain(5)),
        None,
    ),
    "finite, a basis that is code": (RLSVI(seed=5, basis=CODE), lambda: FiniteMDPEnv(chain(5)), CODE),
    "stored": (RLSVI(seed=5, basis=CODE, lam=0.5, sigma=0.7, reward_offset=-1.0), Drift, CODE),
    "stored, epsilon falls linearly": (
        LSVI(seed=5, basis=CODE, explore=EpsilonGreedy(Linear(1, 0, 25))),
        Drift,
        CODE,
    ),
    "temperature falls": (
        LSVI(seed=5, explore=Boltzmann(Exponential(2, 0.9, 0.1))),
        lambda: FiniteMDPEnv(chain(5)),
        None,
    ),
}


@pytest.mark.parametrize("unit", ["episodes", "steps"])
@pytest.mark.parametrize("name", AGENTS)
def test_learning_goes_on_after_loading_bit_for_bit(name, unit, tmp_path):
    pattern, env, basis = AGENTS[name]
    whole = pattern.clone().learn(env(), **{unit: 70})
    agent = pattern.clone()
    for part in (0, 13, 1, 27, 29):
        agent.save(tmp_path / "agent.rlsvi")
        agent = rlsvi.load(tmp_path / "agent.rlsvi", basis)
        agent.learn(env(), **{unit: part})
    assert type(agent) is type(whole)
    assert_same(state_of(agent), state_of(whole))


def test_the_fused_loop_goes_on_after_loading(tmp_path):
    problem = rlsvi.problems.chain(6, features=4)
    whole, agent = RLSVI(seed=2), RLSVI(seed=2)
    simulate(whole, problem, 300)
    simulate(agent, problem, 100)
    agent.save(tmp_path / "a")
    loaded = rlsvi.load(tmp_path / "a")
    simulate(loaded, problem, 200)
    assert_same(state_of(loaded), state_of(whole))


def test_memory_that_has_grown_is_kept(tmp_path):
    problem = Problem(rlsvi.mdp.dirichlet(30, 2, 3, homogeneous=True, seed=0))
    whole, agent = RLSVI(seed=2), RLSVI(seed=2)
    simulate(whole, problem, 400)
    for _ in range(4):
        simulate(agent, problem, 100)
        agent.save(tmp_path / "a")
        agent = rlsvi.load(tmp_path / "a")
    assert agent._learner.memory.sums.max() > 64
    assert_same(state_of(agent), state_of(whole))


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


def test_predictions_survive(tmp_path):
    agent = RLSVI(seed=0, basis=CODE).learn(Drift(), episodes=20)
    agent.save(tmp_path / "a")
    loaded = rlsvi.load(tmp_path / "a", CODE)
    for deterministic in (True, False):
        for x in np.linspace(-1, 1, 21):
            for h in (0, 3):
                arguments = np.array([x]), h, None, deterministic
                assert loaded.predict(*arguments) == agent.predict(*arguments)


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
    given, found = pattern.arguments(), loaded.arguments()
    np.testing.assert_array_equal(given.pop("prior_mean"), found.pop("prior_mean"))
    assert given == found
    assert_same(state_of(loaded), state_of(pattern))


def test_a_prior_mean_given_as_a_list_can_be_saved(tmp_path):
    RLSVI(prior_mean=[0.0] * 10, seed=0).learn(FiniteMDPEnv(chain(5)), episodes=1).save(tmp_path / "a")


# ---- code is not saved ------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [Drift, lambda: FiniteMDPEnv(chain(5))], ids=["stored", "finite"])
def test_a_basis_that_is_code_must_be_given_again(env, tmp_path):
    RLSVI(basis=CODE, seed=0).learn(env(), episodes=2).save(tmp_path / "a")
    with pytest.raises(ArchiveError, match=r"a holds no basis.*load\(path, basis="):
        rlsvi.load(tmp_path / "a")
    assert rlsvi.load(tmp_path / "a", basis=CODE).episodes == 2


@pytest.mark.parametrize("env", [Drift, lambda: FiniteMDPEnv(chain(5))], ids=["stored", "finite"])
def test_another_basis_than_the_one_learned_with_is_refused(env, tmp_path):
    RLSVI(basis=CODE, seed=0).learn(env(), episodes=2).save(tmp_path / "a")
    with pytest.raises(ValueError, match="3 features"):
        rlsvi.load(tmp_path / "a", basis=StateFeatures(lambda o: [1.0, 2.0])).learn(env(), episodes=1)


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


# ---- all or nothing ---------------------------------------------------------------------------------------


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


def test_saving_does_not_change_the_agent(tmp_path):
    agent = taught()
    before = state_of(agent)
    agent.save(tmp_path / "a")
    agent.save(str(tmp_path / "b"))
    assert_same(state_of(agent), before)
    assert rlsvi.load(str(tmp_path / "b")).episodes == 10


# ---- files that are refused -------------------------------------------------------------------------------


def entries_of(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def write_entries(path, entries):
    with zipfile.ZipFile(path, "w") as file:
        for name, data in entries.items():
            file.writestr(name, data)


def npy(array, allow_pickle=False):
    data = io.BytesIO()
    np.lib.format.write_array(data, array, allow_pickle=allow_pickle)
    return data.getvalue()


@pytest.fixture
def saved(tmp_path):
    """A file, and a way to change its header or arrays."""
    path = tmp_path / "agent.rlsvi"
    taught().save(path)

    def change(header=None, arrays=None):
        entries = entries_of(path)
        if header:
            content = json.loads(entries["header.json"])
            header(content)
            entries["header.json"] = json.dumps(content).encode()
        for name, edit in (arrays or {}).items():
            array = edit(np.load(io.BytesIO(entries[f"{name}.npy"])))
            if array is None:
                del entries[f"{name}.npy"]
            else:
                entries[f"{name}.npy"] = npy(array)
        write_entries(path, entries)
        return path

    return path, change


def refused(path, message=None):
    with pytest.raises(ArchiveError, match=message) as caught:
        rlsvi.load(path)
    assert Path(path).name in str(caught.value)


def test_an_unchanged_copy_is_read(saved):
    """So that the other tests refuse what they change, and not how they write it."""
    assert_same(state_of(rlsvi.load(saved[1]())), state_of(taught()))


def test_truncated_files_are_refused(saved):
    path, _ = saved
    data = path.read_bytes()
    for length in [0, 1, 4, 30, *range(100, len(data), 137), len(data) - 22, len(data) - 1]:
        path.write_bytes(data[:length])
        refused(path, "damaged, truncated or not a saved agent")


def test_a_changed_byte_is_noticed_or_does_no_harm(saved):
    """Some bytes of a zip file (dates, attributes) say nothing; all others must be caught, and named."""
    path, _ = saved
    data, good = path.read_bytes(), state_of(rlsvi.load(path))
    unnoticed = 0
    for i in np.random.default_rng(0).integers(len(data), size=400):
        path.write_bytes(data[:i] + bytes([data[i] ^ 0xFF]) + data[i + 1 :])
        try:
            loaded = rlsvi.load(path)
        except ArchiveError as error:
            assert path.name in str(error)  # noqa: PT017
        else:
            unnoticed += 1
            assert_same(state_of(loaded), good)
    assert unnoticed < 200


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version_is_refused(version, saved):
    refused(saved[1](lambda header: header.update(version=version)), "this program reads version 1")


@pytest.mark.parametrize(
    "header", [b"", b"{", b"[]", b"null", b'{"format": "other"}', b"\xff\xfe", b'{"format": "rlsvi agent"}']
)
def test_other_headers_are_refused(header, saved):
    path, _ = saved
    write_entries(path, entries_of(path) | {"header.json": header})
    refused(path)


class Trap:
    """Unpickling it writes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


def test_the_trap_works(tmp_path):
    pickle.loads(pickle.dumps(Trap(tmp_path / "sprung")))
    assert (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["agent.rlsvi", "agent.pkl"])
def test_a_pickle_is_refused_and_not_run(name, tmp_path):
    (tmp_path / name).write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    refused(tmp_path / name, "not a saved agent")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("entry", ["streams.npy", "memory.phi.npy", "one more.npy"])
def test_a_pickle_inside_a_well_formed_file_is_refused_and_not_run(entry, saved, tmp_path):
    path, _ = saved
    trap = np.array([Trap(tmp_path / "sprung")], dtype=object)
    write_entries(path, entries_of(path) | {entry: npy(trap, allow_pickle=True)})
    refused(path, "not a plain array")
    assert not (tmp_path / "sprung").exists()


def test_a_pickle_in_place_of_an_array_is_refused_and_not_run(saved, tmp_path):
    path, _ = saved
    write_entries(path, entries_of(path) | {"streams.npy": pickle.dumps(Trap(tmp_path / "sprung"))})
    refused(path, "not a plain array")
    assert not (tmp_path / "sprung").exists()


ARRAYS = ["streams", "index", "factor.U", "factor.inv", *(f"memory.{name}" for name in Memory._fields)]


@pytest.mark.parametrize("name", ARRAYS)
def test_a_missing_array_is_refused(name, saved):
    refused(saved[1](arrays={name: lambda array: None}))


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_of_another_shape_is_refused(name, saved):
    refused(saved[1](arrays={name: lambda array: np.concatenate([array, array])}))


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_of_another_type_is_refused(name, saved):
    refused(saved[1](arrays={name: lambda array: array.astype(np.complex128)}), "expected")


POINTERS = ["states", "sums", "lives", "block", "live", "sum_block", "sum_next", "sum_link", "sum_head"]


@pytest.mark.parametrize("value", [-2, 1000])
@pytest.mark.parametrize("name", [*(f"memory.{name}" for name in POINTERS), "index"])
def test_an_index_that_points_outside_is_refused(name, value, saved):
    def point(array):
        array.flat[0] = value
        return array

    refused(saved[1](arrays={name: point}), "points outside its tables")


def test_links_that_never_end_are_refused(saved):
    refused(saved[1](arrays={"memory.sum_link": lambda links: np.zeros_like(links)}))


def test_a_negative_number_of_episodes_is_refused(saved):
    refused(saved[1](arrays={"memory.episodes": lambda n: -n}))


def test_an_array_that_claims_to_be_huge_is_refused(saved):
    path, _ = saved
    data = entries_of(path)["streams.npy"].replace(b"(4, 4), ", b"(4" + b"0" * 15 + b",),")
    write_entries(path, entries_of(path) | {"streams.npy": data})
    refused(path)


@pytest.mark.parametrize(
    "change",
    [
        {"agent": "Trap"},
        {"agent": "FiniteHorizonAgent"},
        {"arguments": {}},
        {"arguments": {"basis": None, "shell": "echo"}},
        {"arguments": {"basis": {"type": "os.system", "command": "true"}}},
        {"arguments": {"basis": {"type": "RLSVI"}}},
        {"arguments": {"basis": {"array": "nowhere"}}},
        {"arguments": {"basis": None, "lam": -1.0}},
        {"arguments": {"basis": None, "lam": "1"}},
        {"arguments": {"basis": None}, "problem_basis": None},
        {"task": [4, 2]},
        {"task": [4, 3, 5, 0]},
        {"task": [3, 2, 5, 0]},
        {"task": [4, 2, 6, 0]},
        {"task": "task"},
        {"task": None},
        {"steps": None},
        {"steps": "many"},
        {"overshoot": []},
        {"features": [1]},
        {"features": [1, 4]},
        {"features": [3, 1]},
        {"features": None},
    ],
    ids=str,
)
def test_headers_that_do_not_fit_are_refused(change, saved):
    refused(saved[1](lambda header: header.update(change)))


@pytest.mark.parametrize("key", ["agent", "arguments", "problem_basis", "task", "steps", "overshoot"])
def test_a_header_that_lacks_something_is_refused(key, saved):
    refused(saved[1](lambda header: header.pop(key)))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        rlsvi.load(tmp_path / "nothing")


def test_a_zip_file_of_something_else(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    refused(tmp_path / "a.npz", "it has no header")


def test_archives_hold_one_header_and_plain_arrays(saved):
    names = set(entries_of(saved[0]))
    assert names == {"header.json", "argument.problem_basis.phi.npy", *(f"{name}.npy" for name in ARRAYS)}
    assert archive.VERSION == 1
