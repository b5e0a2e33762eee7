"""The contract, for files: a damaged, foreign or hostile file is refused with a clear error, or is read whole."""

import contextlib
import tracemalloc
from pathlib import Path

import pytest

import rlsvi
from contract.cases import BY_NAME, predictions
from contract.damage import Damage, bomb, with_header
from contract.state import Snapshot, difference, entries_of, everything
from saved import read, write

FILES = BY_NAME
pytestmark = pytest.mark.usefixtures("quick_disk")


def _refused(error, path):
    """Whether an error of loading is the clear one."""
    return type(error).__name__ == "ArchiveError" and isinstance(error, ValueError) and path.name in str(error)


@pytest.fixture
def _little_memory():
    """A file that asks for much memory fails, and does not swallow the machine, where Linux can see to that."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    now = int(statm.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


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


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_first_format_is_refused_with_its_number(name, tmp_path):
    case, path = FILES[name], tmp_path / "agent.rlsvi"
    case.learned(1).save(path)
    path.write_bytes(with_header(path, version=1))
    with pytest.raises(ValueError, match=r"agent\.rlsvi.*(version|format) 1\b"):
        case.load(path)


def test_a_file_that_version_0_1_wrote_is_refused_with_its_number():
    path = Path(__file__).parent / "files" / "format-1.rlsvi"
    with pytest.raises(ValueError, match=r"format-1\.rlsvi.*(version|format) 1\b"):
        rlsvi.load(path)


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
