"""The recommender of a shop on disk: it goes on bit for bit, also from a journal; damage is refused."""

import io
import json
import os
import tracemalloc
import zipfile

import numpy as np
import pytest

from rlsvi.core.archive import ArchiveError
from rlsvi.shop import Recommender
from rlsvi.shop.journal import beside
from rlsvi.shop.size import Form, bytes_needed
from shop_twin import FORMS, J, N, come_and_go, made, serve, state

KNOWN = [1, 1, -1, 0, 0, 0, 0]


@pytest.mark.parametrize("form", FORMS)
def test_it_goes_on_from_a_file_bit_for_bit(form, tmp_path):
    shop = made(form, remember=15)
    serve(shop, 25)
    assert shop.open
    shop.save(tmp_path / "shop")
    again = Recommender.load(tmp_path / "shop")
    assert again.arguments() == shop.arguments()
    assert again.open == shop.open
    for one in (shop, again):
        for name in one.open[1:]:
            one.close(name)
    assert serve(shop, 25, seed=9, name=100) == serve(again, 25, seed=9, name=100)
    shop.learn()
    again.learn()
    assert state(shop, times=False) == state(again, times=False)


def test_loading_takes_no_memory_twice(tmp_path):
    shop = Recommender(80, 4, seed=0)
    shop.save(tmp_path / "shop")
    tracemalloc.start()
    try:
        again = Recommender.load(tmp_path / "shop")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert shop.bytes > 15e6
    assert peak < 1.1 * shop.bytes
    assert state(again) == state(shop)


def test_a_fresh_one_can_be_saved(tmp_path):
    made("exact").save(tmp_path / "shop")
    again = Recommender.load(tmp_path / "shop")
    assert again.customers == 0
    assert serve(again, 10) == serve(made("exact"), 10)


def changed(path, change):
    """The file with another header."""
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    header = json.loads(parts["header.json"])
    change(header)
    parts["header.json"] = json.dumps(header)
    with zipfile.ZipFile(path, "w") as new:
        for name, data in parts.items():
            new.writestr(name, data)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.update(agent="RLSVI"),
        lambda header: header["arguments"].update(products=8),
        lambda header: header["arguments"].update(memory=10.0),
        lambda header: header["arguments"].update(pooled="no"),
        lambda header: header.update(count=10**6),
        lambda header: header.update(taken=10**6),
        lambda header: header.update(room=[10**15, 10**15]),
        lambda header: header.update(customers="many"),
        lambda header: header["open"][0].__setitem__(2, 99),
        lambda header: header["open"][0][3].__setitem__(0, 7),
        lambda header: header["open"][0][4].__setitem__(0, 2),
        lambda header: header["open"][0].__setitem__(0, []),
        lambda header: header["open"][0].__setitem__(1, float("nan")),
        lambda header: header.pop("open"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(change, tmp_path):
    shop = made("exact")
    serve(shop, 10)
    shop.save(tmp_path / "shop")
    changed(tmp_path / "shop", change)
    with pytest.raises(ArchiveError):
        Recommender.load(tmp_path / "shop")


def with_array(name, array):
    """Another array in the file, which its header lists."""

    def change(path):
        with zipfile.ZipFile(path) as old:
            parts = {entry: old.read(entry) for entry in old.namelist() if entry != f"{name}.npy"}
        header = json.loads(parts["header.json"])
        header["arrays"].pop(name, None)
        if array is not None:
            header["arrays"][name] = [array.dtype.str, array.shape]
        parts["header.json"] = json.dumps(header)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for entry, data in parts.items():
                new.writestr(entry, data)
            if array is not None:
                with new.open(f"{name}.npy", "w") as file:
                    np.lib.format.write_array(file, array)

    return change


def with_header(**changes):
    return lambda path: changed(path, lambda header: header.update(changes))


def with_argument(**changes):
    return lambda path: changed(path, lambda header: header["arguments"].update(changes))


def with_customer(place, value, row=None):
    def change(header):
        where, last = (header["open"][0], place) if row is None else (header["open"][0][place], row)
        where[last] = value

    return lambda path: changed(path, change)


def lying(path):
    """A directory that promises a terabyte in an entry of a few bytes."""
    with zipfile.ZipFile(path) as old:
        parts = {entry: old.read(entry) for entry in old.namelist()}
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**11,)})
    parts["bias.npy"] = head.getvalue()
    with zipfile.ZipFile(path, "w") as new:
        for entry, data in parts.items():
            new.writestr(entry, data)


HOSTILE = {
    "a count beyond 64 bits": (with_header(customers=10**30), "customers must be at most"),
    "a count of a thousand digits": (with_header(changes=10**1000), "changes must be at most"),
    "a count that is no number": (with_header(since="1"), "since must be a whole number"),
    "much room": (with_header(room=[10**18, 10**18]), "room must be at most"),
    "room that is no list": (with_header(room=3), "not a saved recommender"),
    "many products": (with_argument(products=10**9, memory=1e300), "GB, more than this machine has"),
    "too many products": (with_argument(products=10**400), "products must be at most"),
    "endless memory": (with_argument(memory=10**400), "memory must be a positive"),
    "an unknown argument": (with_argument(_lock=3), "nothing is known of the argument '_lock'"),
    "a seed": (with_argument(seed=3), "nothing is known of the argument 'seed'"),
    "a product beyond 32 bits": (with_customer(3, 2**31, 0), "open customer 0 .* at most 2147483647"),
    "a product beyond 64 bits": (with_customer(3, 2**70, 0), "open customer 0 makes no sense"),
    "half a product": (with_customer(3, 0.5, 0), "open customer 0 makes no sense"),
    "a moment beyond all": (with_customer(1, 10**400), "open customer 0 makes no sense: touched must"),
    "knowledge beyond 32 bits": (
        with_customer(2, 10**12),
        "open customer 0 makes no sense: given must be at most 7",
    ),
    "no columns": (with_customer(3, 3), "open customer 0 makes no sense"),
    "long columns": (with_customer(3, [0] * 100), "open customer 0 makes no sense"),
    "a name that is none": (with_header(name=[1]), r"name is \[1\]"),
    "an unknown entry": (with_array("surplus", np.zeros(10**7)), "such a file does not hold surplus"),
    "a missing entry": (with_array("weight", None), "it lacks weight"),
    "a large entry": (with_array("bias", np.zeros(10**7)), "bias is float64.* expected float64"),
    "a lying entry": (lying, "bias has 128 bytes, expected 224"),
    "numbers that are not whole": (
        with_array("gone.first", np.array([0, np.inf])),
        "gone.first is .* expected int64",
    ),
    "a table of customers": (
        with_array("gone.first", np.zeros((1, 1), np.int64)),
        "gone.first is .* expected int64",
    ),
    "rows far away": (
        with_array("gone.first", np.array([0] + 7 * [2**62])),
        "a customer's rows points outside",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_by_name_before_much_is_allocated(name, tmp_path):
    change, message = HOSTILE[name]
    shop = made("exact")
    serve(shop, 10)
    shop.save(path := tmp_path / "shop")
    change(path)
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError, match=f"{path} .*(?:{message})"):
            Recommender.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20e6


def test_a_header_that_is_nested_or_not_finite_is_refused(tmp_path):
    made("exact").save(path := tmp_path / "shop")
    for header, message in (
        ("[" * 100_000, "nested too deeply|not a saved agent"),
        ('{"format": "rlsvi agent", "version": 1, "count": Infinity}', "Infinity, which is not a finite number"),
        ('{"format": "rlsvi agent", "version": 1, "count": 1e999}', "1e999, which is not a finite number"),
    ):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("header.json", header)
        with pytest.raises(ArchiveError, match=message):
            Recommender.load(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_refused(tmp_path):
    made("exact").save(path := tmp_path / "shop")
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("weight.npy", b"")
    with pytest.raises(ArchiveError, match="an entry twice"):
        Recommender.load(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[" * 100_000, "it is nested too deeply"),
        ("[1," + "[" * 100_000, "it is nested too deeply"),
        ("1" * 5000, "damaged in line 2"),
        ('[{number}, 1.0, "recommend", "zoe", 99999999999999999999, null]', "the change cannot be"),
        ('[{number}, 1.0, "recommend", "zoe", 1, [[99999999999999999999], []]]', "the change cannot be"),
        ('[{number}, 1.0, "recommend", "zoe", 1, [true, []]]', "the change cannot be"),
        ('[{number}, 1.0, "recommend", "zoe", 1, [null, null]]', "the change cannot be"),
        ("[{number}, 1" + "0" * 400 + ', "learn"]', "the change cannot be: time must be"),
        ('[{number}, Infinity, "learn"]', "the change cannot be: time must be"),
        ('[{number}, 1.0, "forget", 0.5]', "the change cannot be"),
        ('[{number}, 1.0, "offer", [99999999999999999999]]', "the change cannot be"),
        ("[{number}, 1.0, {{}}]", "the change cannot be"),
        ("[{number}]", "the change cannot be|damaged in line 2"),
    ],
    ids=range(13),
)
def test_a_hostile_line_of_the_journal_is_named(line, message, tmp_path):
    shop = made("exact")
    shop.keep(tmp_path / "shop")
    shop.keep(None)
    number = shop._changes + 1
    with open(beside(tmp_path / "shop"), "a") as file:
        file.write(line.format(number=number) + "\n")
    with pytest.raises(ArchiveError, match=f"journal is damaged in line 2: .*(?:{message})|{message}"):
        Recommender.load(tmp_path / "shop")


def test_a_failed_save_leaves_the_file_there_was(tmp_path, monkeypatch):
    shop = made("exact")
    shop.save(tmp_path / "shop")
    before = (tmp_path / "shop").read_bytes()
    serve(shop, 5)

    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.lib.format.write_array", fails)
    with pytest.raises(OSError, match="cannot save"):
        shop.save(tmp_path / "shop")
    assert (tmp_path / "shop").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]


# ---- the journal ------------------------------------------------------------------------------------------


def same(shop, path):
    """What a process finds that comes after one that died now."""
    assert state(Recommender.load(path)) == state(shop)


@pytest.mark.parametrize("every", [1, 3, None, "later"])
@pytest.mark.parametrize("form", ["exact", "both"])
def test_nothing_is_lost_when_a_process_dies(form, every, tmp_path):
    shop, path = made(form, every=every, remember=12), tmp_path / "shop"
    serve(shop, 5)
    shop.keep(path)
    same(shop, path)
    serve(shop, 20, name=10)
    same(shop, path)
    shop.offer([0, 1, 3, 4, 5])
    serve(shop, 10, name=50, offered=[0, 1, 3, 4, 5])
    shop.learn()
    shop.expire(1e-9, now=shop._clock() + 10)
    assert shop.open == []
    same(shop, path)
    length = beside(path).stat().st_size
    shop.save(path)
    assert beside(path).stat().st_size < 100 < length
    serve(shop, 10, name=100, offered=[0, 1, 3, 4, 5])
    same(shop, path)
    assert shop._forgot
    again = Recommender.load(path)  # goes on, and is kept in turn
    shop.keep(None)
    again.keep(path, sync=True)
    serve(again, 5, name=200, offered=[0, 1, 3, 4, 5])
    same(again, path)


def test_customers_forgotten_for_want_of_memory_are_forgotten_again(tmp_path):
    memory = bytes_needed(Form(N, J, True, None), 100)
    shop = made("pooled", remember=100, memory=memory, every=4)
    shop.keep(tmp_path / "shop")
    for i in range(250):
        shop.feedback(i, shop.recommend(i, KNOWN), True)
        shop.close(i)
    assert shop._forgot
    same(shop, tmp_path / "shop")
    shop._learning.acquire()  # another thread draws a sample, and room grows beyond what there is
    with pytest.raises(MemoryError, match="again when no sample is drawn"):
        come_and_go(shop, 1000)
    shop._learning.release()
    assert shop._gone.given.size > 200
    shop.recommend("ann", KNOWN)
    assert shop._gone.given.size == 101  # given back, and again from the journal
    same(shop, tmp_path / "shop")


def test_half_a_line_at_the_end_is_a_change_that_was_not_made(tmp_path):
    shop, path = made("pooled"), tmp_path / "shop"
    shop.keep(path)
    a = shop.recommend("ann")
    before = state(shop)
    whole = beside(path).read_bytes()
    shop.feedback("ann", a, True)
    longer = beside(path).read_bytes()
    for end in range(len(whole), len(longer)):
        beside(path).write_bytes(longer[:end])
        assert state(Recommender.load(path)) == before


def test_a_process_that_dies_between_file_and_journal_makes_no_change_twice(tmp_path, monkeypatch):
    shop, path = made("pooled"), tmp_path / "shop"
    shop.keep(path)
    serve(shop, 10)

    def dies(*_):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("rlsvi.shop.journal.Journal.begin", dies)
        with pytest.raises(SystemExit):
            shop.save(path)
    same(shop, path)
    serve(shop, 5, name=50)
    same(shop, path)
    shop.save(path)
    same(shop, path)


def test_changes_made_while_a_file_is_written_are_in_the_journal(tmp_path, monkeypatch):
    shop, path = made("pooled", every="later"), tmp_path / "shop"
    shop.keep(path)
    serve(shop, 10)
    from rlsvi.core import archive

    real = archive.write

    def slow(*told):
        serve(shop, 10, name=50)  # they come and go while the file is written
        real(*told)
        serve(shop, 10, name=80)

    monkeypatch.setattr(archive, "write", slow)
    shop.save(path)
    assert shop.customers > 20
    same(shop, path)


def test_a_change_that_cannot_be_written_is_not_made(tmp_path, monkeypatch):
    shop = made("pooled", every="later")
    shop.keep(tmp_path / "shop", sync=True)
    a = shop.recommend("ann")
    before, written = state(shop), beside(tmp_path / "shop").read_bytes()

    def fails(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fails)
    for call in (
        lambda: shop.recommend("ann"),
        lambda: shop.recommend("bob"),
        lambda: shop.feedback("ann", a, True),
        lambda: shop.close("ann"),
        lambda: shop.expire(1e-9, now=shop._clock() + 10),
        lambda: shop.offer([1]),
        shop.learn,
    ):
        with pytest.raises(OSError, match=r"cannot write to .*shop\.journal: No space left on device"):
            call()
        assert state(shop) == before
    monkeypatch.undo()
    assert beside(tmp_path / "shop").read_bytes() == written
    assert not shop._learning.locked()
    shop.feedback("ann", a, True)
    same(shop, tmp_path / "shop")


def test_an_answer_that_was_written_counts_though_its_sample_could_not_be(tmp_path, monkeypatch):
    shop, path = made("pooled", every=1), tmp_path / "shop"
    shop.keep(path)
    shop.feedback("ann", shop.recommend("ann"), True)
    real = os.write

    def fails(file, line):
        if b"learn" in line:
            raise OSError(28, "No space left on device")
        return real(file, line)

    with monkeypatch.context() as patch:
        patch.setattr("os.write", fails)
        shop.close("ann")
    assert (shop.customers, shop.due, shop._mind.weight.any()) == (1, True, False)
    assert Recommender.load(path).customers == 1
    shop.recommend("bob")
    shop.close("bob")
    assert shop._mind.weight.any()
    same(shop, path)


def test_a_sample_counts_though_forgetting_could_not_be_written(tmp_path, monkeypatch):
    shop, path = made("pooled", every="later", remember=10), tmp_path / "shop"
    shop.keep(path)
    shop._learning.acquire()  # nobody is forgotten meanwhile
    serve(shop, 20)
    shop._learning.release()
    real = os.write

    def fails(file, line):
        if b"forget" in line:
            raise OSError(28, "No space left on device")
        return real(file, line)

    with monkeypatch.context() as patch:
        patch.setattr("os.write", fails)
        shop.learn()
    assert shop._mind.weight.any()
    assert shop._count > 10
    same(shop, path)
    shop.close(shop.open[0])
    assert shop._count <= 10
    same(shop, path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_writes_nothing(tmp_path):
    shop, path = made("pooled"), tmp_path / "shop"
    shop.keep(path)
    a = shop.recommend("ann")
    before, file = state(shop), path.read_bytes()
    child = os.fork()
    if child == 0:
        refused = 0
        for call in (
            lambda: shop.recommend("child"),
            lambda: shop.feedback("ann", a, True),
            lambda: shop.save(path),
            lambda: shop.keep(path),
        ):
            try:
                call()
            except OSError as error:
                refused += "forked" in str(error) and state(shop) == before
        shop.keep(None)
        shop.recommend("child")  # for itself alone
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
    assert path.read_bytes() == file
    shop.feedback("ann", a, True)
    same(shop, path)


def test_keeping_that_fails_leaves_the_journal_there_was(tmp_path, monkeypatch):
    shop, path, other = made("pooled"), tmp_path / "shop", made("exact")
    shop.keep(path)
    shop.recommend("ann")
    other.keep(tmp_path / "other")
    other.keep(None)

    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    with pytest.raises(FileNotFoundError):
        shop.keep(tmp_path / "nowhere" / "shop")
    with pytest.raises(ArchiveError, match="journal of another recommender"):
        shop.keep(tmp_path / "other")
    for where in (path, tmp_path / "third"):
        with monkeypatch.context() as patch:
            patch.setattr("numpy.lib.format.write_array", fails)
            with pytest.raises(OSError, match="cannot save"):
                shop.keep(where, sync=True)
        shop.recommend("bob" if where == path else "kim")
        same(shop, path)
    assert not shop._journal.sync
    beside(path).unlink()  # somebody cleaned up: keeping it again mends that
    shop.keep(path, sync=True)
    assert shop._journal.sync
    shop.recommend("ann")
    same(shop, path)
    shop.keep(tmp_path / "third")
    shop.recommend("ann")
    same(shop, tmp_path / "third")
    assert state(Recommender.load(path)) != state(shop)  # the old one has ended


def test_a_journal_is_one_recommender_s_alone(tmp_path):
    shop, path = made("pooled"), tmp_path / "shop"
    shop.keep(path)
    serve(shop, 5)
    file, journal = path.read_bytes(), beside(path).read_bytes()
    with pytest.raises(OSError, match="written to by another process"):
        Recommender.load(path).keep(path)
    shop.keep(None)
    with pytest.raises(ArchiveError, match="journal of another recommender"):
        made("exact").keep(path)
    old = Recommender.load(path)
    old._changes -= 1
    with pytest.raises(ArchiveError, match="has changes that this recommender has not: load"):
        old.keep(path)
    assert (path.read_bytes(), beside(path).read_bytes()) == (file, journal)
    other = made("exact")
    other.save(path)
    with pytest.raises(ArchiveError, match="journal of another recommender"):
        Recommender.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines.pop(2),
        lambda lines: lines.pop(1),
        lambda lines: lines.__setitem__(2, b"]"),
        lambda lines: lines.__setitem__(2, b"7"),
        lambda lines: lines.__setitem__(2, b"[]"),
        lambda lines: lines.__setitem__(2, b'[2,0.0,"dance"]'),
        lambda lines: lines.__setitem__(2, b'[2,0.0,"feedback","nobody",0,true]'),
        lambda lines: lines.__setitem__(2, b'[2,0.0,"recommend","new",99,null]'),
        lambda lines: lines.__setitem__(2, b'[2,null,"recommend","new",1,null]'),
        lambda lines: lines.__setitem__(2, b'[2,0.0,"forget",5]'),
    ],
)
def test_a_damaged_journal_is_refused(change, tmp_path):
    shop, path = made("exact"), tmp_path / "shop"
    shop.keep(path)
    serve(shop, 5)
    lines = beside(path).read_bytes().split(b"\n")
    change(lines)
    beside(path).write_bytes(b"\n".join(lines))
    with pytest.raises(ArchiveError, match=r"shop\.journal is damaged"):
        Recommender.load(path)


@pytest.mark.parametrize("line", [b"]", b'[11,0.0,"dance"]', b'[12,0.0,"learn"]', b'["11",0.0,"learn"]'])
def test_a_damaged_line_is_named_and_what_came_before_it_can_be_had(line, tmp_path):
    shop, path = made("exact"), tmp_path / "shop"
    shop.keep(path)
    while shop._changes < 10:
        shop.recommend(shop._changes)
    before = state(shop)
    serve(shop, 5, name=100)
    lines = beside(path).read_bytes().split(b"\n")
    lines[11] = line
    beside(path).write_bytes(b"\n".join(lines))
    with pytest.raises(ArchiveError, match=r"is damaged in line 12: .* cut it to its first 11 lines"):
        Recommender.load(path)
    beside(path).write_bytes(b"".join(line + b"\n" for line in lines[:11]))
    assert state(Recommender.load(path)) == before
