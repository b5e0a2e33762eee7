"""The contract, for files: a damaged, foreign or hostile file is refused with a clear error, or is read whole."""

import contextlib
import functools
import io
import itertools
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

import rlsvi
from contract.bases import measured_bases
from contract.cases import BY_NAME, predictions
from contract.damage import Damage, bomb, paths_of, replaced, with_header, zipped
from contract.state import Snapshot, difference, entries_of, everything
from fuzzing import limited
from rlsvi import bases
from saved import read, write

FILES = BY_NAME
pytestmark = pytest.mark.usefixtures("quick_disk")


def _refused(error, path):
    """Whether an error of loading is the clear one."""
    return type(error).__name__ == "ArchiveError" and isinstance(error, ValueError) and path.name in str(error)


@pytest.fixture
def _little_memory():
    """A file that asks for much memory fails, and does not swallow the machine, where Linux can see to that."""
    with limited(3600):
        yield


class Loads:
    """Loads files and notes what is wrong: each is refused clearly, or read whole and can be gone on with."""

    def __init__(self, case, folder):
        self.case, self.folder, self.path = case, folder, folder / "agent.rlsvi"
        case.learned(3).save(self.path)
        self.original, self.went_on, self.bad = Snapshot(self.path.read_bytes()), 0, []

    def of(self, kind, data):
        path = self.folder / "damaged.rlsvi"
        path.write_bytes(data)
        try:
            agent = self.case.load(path)
        except Exception as error:  # whatever it is, it is judged
            self.bad += [] if _refused(error, path) else [f"{kind}: {type(error).__name__}: {error!s:.200}"]
            return
        found, held = everything(agent, self.folder), Snapshot(data)
        if found != held:
            self.bad.append(f"{kind}: what it read is not what the file holds: {difference(found, held):.300}")
        elif held == self.original and self.went_on < 20:
            self.went_on += 1
            self.case.go_on(agent)


def _foreign(folder):
    """Entries of other agents' files."""
    others = []
    for name in ("RLSVI-table", "StationaryRLSVI-vector", "PSRL-table", "BoundedRLSVI-vector"):
        BY_NAME[name].learned(2).save(folder / "foreign")
        others += list(entries_of(folder / "foreign").items())
    return others


@pytest.mark.usefixtures("_little_memory")
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_refused_or_does_no_harm(name, thorough, tmp_path):
    case, copies = FILES[name], 440 if thorough else 22  # of 22 kinds
    of_the_agent = sum(other.agent == case.agent for other in FILES.values())
    loads = Loads(case, tmp_path)
    loads.of("not at all", loads.path.read_bytes())
    assert loads.went_on == 1
    damage = Damage(loads.path, _foreign(tmp_path))
    first = list(FILES).index(name) * copies
    for number in range(first, first + copies // of_the_agent):
        loads.of(*damage.copy(number))
    assert not loads.bad, f"{len(loads.bad)} files did harm:\n" + "\n".join(loads.bad[:10])


def without_digests(path, version):
    """The file with a header of another version, which does not say what the arrays hold."""
    listed = json.loads(entries_of(path)["header.json"])["arrays"]
    return with_header(path, version=version, arrays={name: each[:2] for name, each in listed.items()})


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_an_earlier_format_is_refused_with_its_number(name, version, tmp_path):
    case, path = FILES[name], tmp_path / "agent.rlsvi"
    case.learned(1).save(path)
    path.write_bytes(without_digests(path, version))
    with pytest.raises(ValueError, match=rf"agent\.rlsvi.*(version|format) {version}\b"):
        case.load(path)


def exchanged(path):
    """The files in which two arrays of the same type and shape have changed places, by their names."""
    entries = entries_of(path)
    listed = json.loads(entries["header.json"])["arrays"]
    for one, other in itertools.combinations(sorted(listed), 2):
        first, second = f"{one}.npy", f"{other}.npy"
        if listed[one][:2] == listed[other][:2] and entries[first] != entries[second]:
            yield (one, other), zipped(list({**entries, first: entries[second], second: entries[first]}.items()))


def check_exchanged(names, amounts, folder):
    """Refuse all exchanged arrays of these agents, and return how many pairs there were."""
    pairs, path = 0, folder / "agent.rlsvi"
    for name, amount in itertools.product(names, amounts):
        FILES[name].learned(amount).save(path)
        for pair, data in exchanged(path):
            (folder / "exchanged.rlsvi").write_bytes(data)
            with pytest.raises(ValueError, match=r"exchanged\.rlsvi is damaged") as caught:
                FILES[name].load(folder / "exchanged.rlsvi")
            assert any(part in str(caught.value) for part in pair), f"{name}: {caught.value}"
            pairs += 1
    return pairs


def test_exchanged_arrays_are_refused(tmp_path):
    names = ["RLSVI-table", "PSRL-table", "GradientRLSVI-table", "BoundedRLSVI-vector"]
    assert check_exchanged(names, [3], tmp_path) >= 36


@pytest.mark.slow
def test_four_hundred_pairs_of_exchanged_arrays_are_refused(tmp_path):
    assert check_exchanged(FILES, [3, 6], tmp_path) >= 400


@pytest.mark.parametrize("entry", ["memory.counts", "memory.into_count"])
def test_a_file_that_has_counted_less_than_nothing_is_refused(entry, tmp_path):
    case, path = FILES["RLSVI-vector"], tmp_path / "agent.rlsvi"
    case.learned(3).save(path)
    header, arrays = read(path)
    arrays[entry].flat[0] = -1e6
    write(path, header, arrays)
    with pytest.raises(ValueError, match=r"agent\.rlsvi.*counted less than nothing"):
        case.load(path)


@pytest.mark.parametrize("entry", ["something.npy", "streams.npy"])
@pytest.mark.parametrize("name", ["ThompsonSampling-table", "RLSVI-table"])
def test_a_small_file_that_expands_to_a_gigabyte_is_refused_and_not_expanded(name, entry, tmp_path):
    case, path = FILES[name], tmp_path / "agent.rlsvi"
    case.learned(1).save(path)
    path.write_bytes(bomb(path, entry))
    assert path.stat().st_size < 2 * 2**20
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"agent\.rlsvi") as caught:
            case.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert _refused(caught.value, path)
    assert peak < 32 * 2**20


HUGE_COUNT = 40_000_000


def peak_of_refusal(case, path):
    """The memory that loading takes before it refuses a file, in bytes; a file that is harmless is not refused."""
    refusal = None
    tracemalloc.start()
    try:
        case.load(path)
    except Exception as error:  # whatever it is, it is judged
        refusal = error
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refusal is None or (_refused(refusal, path) and "llocate" not in str(refusal)), refusal
    return peak


@pytest.mark.usefixtures("_little_memory")
@pytest.mark.parametrize("name", list(BY_NAME))
def test_a_small_file_that_declares_huge_sizes_is_refused_before_anything_is_allocated(name, tmp_path):
    """Every whole number of the task, the arguments and the basis is 40 million in turn."""
    case, path = BY_NAME[name], tmp_path / "agent.rlsvi"
    case.learned(3).save(path)
    case.load(path)  # compiles and caches what loading needs
    header, arrays = read(path)
    for part in ("task", "arguments", "problem_basis"):
        for way in paths_of({part: header[part]}):
            other = replaced(header, way, HUGE_COUNT)
            if not isinstance(functools.reduce(lambda value, key: value[key], way, header), dict | list):
                write(path, other, arrays)
                assert path.stat().st_size < 2**16
                assert peak_of_refusal(case, path) < 16 * 2**20, way


def test_a_file_that_would_compute_for_days_is_refused(tmp_path):
    case, path = BY_NAME["StationaryRLSVI-table"], tmp_path / "agent.rlsvi"
    case.learned(1).save(path)
    header, arrays = read(path)
    write(path, replaced(header, ("arguments", "regressions"), 10**7), arrays)
    with pytest.raises(ValueError, match=r"agent\.rlsvi.*regressions must be at most"):
        case.load(path)


def test_arguments_that_there_were_once_are_read_if_they_have_their_defaults(tmp_path):
    case, path = BY_NAME["BoundedRLSVI-vector"], tmp_path / "agent.rlsvi"
    agent = case.learned(2)
    agent.save(path)
    header, arrays = read(path)
    former = {"alike": 0.5, "regressions": None, "tolerance": 1e-4, "trace": None, "update_every": 1000}
    header["arguments"] |= {**former, "prior_mean": None}
    write(path, header, arrays)
    assert case.load(path).get_params() == agent.get_params()
    for name, value in (("trace", 0.9), ("update_every", None), ("prior_mean", 1.0)):
        write(path, replaced(header, ("arguments", name), value), arrays)
        with pytest.raises(ValueError, match=rf"agent\.rlsvi was made with {name}={value}.*learn anew"):
            case.load(path)


BASES = {
    "Fourier": bases.Fourier(order=1),
    "Fourier-together": bases.Fourier(order=1, together=1),
    "Polynomial": bases.Polynomial(degree=1),
    "Radial": bases.Radial(features=10),
    "Tiles": bases.Tiles(grids=1, tiles=1),
    "Waves": bases.Waves(features=5),
}
BASES = {type(basis).__name__: basis for basis in measured_bases()} | BASES


@pytest.mark.usefixtures("_little_memory")
@pytest.mark.parametrize("name", BASES)
def test_a_small_file_that_declares_many_features_is_refused_before_they_are_made(name, tmp_path):
    case, path = BY_NAME["BoundedRLSVI-vector"], tmp_path / "agent.rlsvi"
    case.learned(2, basis=BASES[name]).save(path)
    case.load(path)
    header, arrays = read(path)
    sizes = [key for key, value in header["arguments"]["basis"].items() if key not in ("type", "seed")]
    for keys in itertools.chain.from_iterable(itertools.combinations(sizes, n) for n in (1, 2, 3)):
        basis = header["arguments"]["basis"] | dict.fromkeys(keys, HUGE_COUNT)
        write(path, header | {"arguments": header["arguments"] | {"basis": basis}}, arrays)
        assert peak_of_refusal(case, path) < 64 * 2**20, keys


@pytest.mark.usefixtures("_little_memory")
def test_an_entry_that_claims_more_than_the_file_can_hold_is_not_allocated(tmp_path):
    """The header, the directory and the array itself all say that there are 4 GB of numbers."""
    path, size = tmp_path / "agent.rlsvi", 2**29
    rlsvi.RLSVI(prior_mean=np.zeros(3), seed=0).save(path)
    entries = entries_of(path)
    header = json.loads(entries["header.json"])
    header["arrays"]["argument.prior_mean"][1] = [size]
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (size,)})
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", json.dumps(header))
        file.writestr("streams.npy", entries["streams.npy"])
        info = zipfile.ZipInfo("argument.prior_mean.npy")
        file.writestr(info, head.getvalue())
        info.file_size = len(head.getvalue()) + 8 * size
    assert path.stat().st_size < 2**14
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"agent\.rlsvi is damaged.*prior_mean"):
        rlsvi.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 2**20


HOSTILE_BASES = [
    None,
    {"type": "Tabular"},
    {"type": "Fourier", "order": None, "features": 9, "together": None, "smoothness": 2.0},
    {"type": "Greedy"},
    {"type": "Observed", "tree": 3, "low": [0.0], "high": [1.0], "counts": [], "basis": None},
    {"type": "Observed", "tree": ["box", [1]], "low": 0, "high": 0, "counts": 0, "basis": None},
    {"type": "Observed", "tree": ["sack", [2]], "low": [0.0] * 2, "high": [1.0] * 2, "counts": [], "basis": None},
    {"type": "Observed", "tree": ["box", [2, "2"]], "low": [0.0], "high": [1.0], "counts": [], "basis": None},
    {"type": "Observed", "tree": ["box", [9]], "low": [0.0] * 2, "high": [1.0] * 2, "counts": [], "basis": None},
    {"type": "Observed", "tree": ["counted", [0], [1]], "low": [], "high": [], "counts": ["5"], "basis": None},
    [1, 2],
    "os.system",
]


@pytest.mark.parametrize("number", range(len(HOSTILE_BASES)))
@pytest.mark.parametrize("name", ["TableOrFeatures-table", "TableOrFeatures-vector", "BoundedRLSVI-vector"])
def test_a_file_with_a_hostile_layout_of_observations_is_refused(name, number, tmp_path):
    """It raised AttributeError or TypeError at the first prediction, or when learning went on."""
    case, path = BY_NAME[name], tmp_path / "agent.rlsvi"
    case.learned(3).save(path)
    header, arrays = read(path)
    write(path, header | {"problem_basis": HOSTILE_BASES[number]}, arrays)
    with pytest.raises(ValueError, match=r"agent\.rlsvi") as caught:
        case.load(path)
    assert _refused(caught.value, path)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("BoundedRLSVI-vector", "history.reward"),
        ("BoundedRLSVI-vector", "history.x"),
        ("TableOrFeatures-vector", "record.reward"),
    ],
)
def test_a_file_with_numbers_whose_squares_overflow_is_refused(name, entry, tmp_path):
    """It raised OverflowError when learning went on."""
    case, path = BY_NAME[name], tmp_path / "agent.rlsvi"
    case.learned(3).save(path)
    header, arrays = read(path)
    arrays[entry].flat[0] = 1e300
    write(path, header, arrays)
    with pytest.raises(ValueError, match=rf"agent\.rlsvi is damaged: {entry} holds numbers") as caught:
        case.load(path)
    assert _refused(caught.value, path)


@pytest.mark.parametrize("name", list(BY_NAME))
def test_a_file_that_claims_another_task_is_refused_or_harmless(name, tmp_path):
    """Periods, actions and states that the arrays were not made for, also with arrays cut down to nothing."""
    case = BY_NAME[name]
    case.learned(3).save(tmp_path / "agent")
    header, arrays = read(tmp_path / "agent")
    horizon, actions, states, *first = header["task"]
    other = [[0 if horizon else 3, actions, states], [horizon, actions + 1, states]]
    other += [[horizon, actions, (states or 0) + 1], [horizon, actions, None if states is not None else 5]]
    for task in other:
        for axis in (None, 0, 1, 2):
            cut = {k: v.take([], axis) if axis is not None and v.ndim > axis + 1 else v for k, v in arrays.items()}
            cut["streams"], path = arrays["streams"], tmp_path / "other"
            write(path, header | {"task": [*task, *first]}, cut)
            with contextlib.suppress(ValueError):  # of loading, or of the first observation; nothing else
                predictions(case, case.load(path))
