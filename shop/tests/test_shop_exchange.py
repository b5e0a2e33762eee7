"""Events as frames and files, and analysts' tables of clicks as events."""

import gc
import re
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from stories import write
from typer.testing import CliRunner

from rlsvi.cli.app import app
from rlsvi_shop.catalogue import products_of
from rlsvi_shop.events import Event, Events, StoreError, Writer
from rlsvi_shop.exchange import events_frame, export_events, import_events
from rlsvi_shop.requests import name_of, text_of
from rlsvi_shop.settings import ShopSettings

SETTINGS = ShopSettings(
    slots=3,
    customer={"age": {"low": 0, "high": 100}, "country": {"values": ["at", "de"]}},
    product={"price": {"low": 0, "high": 10}},
)
INTEGERS = ShopSettings(slots=3, ids="integer")
WRITTEN = [
    Event("added", product="p,1", features={"price": 3.5, "name": 'a "quoted"\nline, ä'}, at=1.25),
    Event("recommended", "v", "p,1", 0, None, 0.1, True, 1, {}, 2.0),
    Event("answered", "v", "p,1", reward=-1e-300, at=1794859051.7214704),
    Event(
        "recommended",
        "v",
        "q",
        1,
        None,
        1 / 3,
        False,
        2**60,
        at=3.0,
        among=["q", "p,1"],
        agreeing=[0.0, 1.0, 1 / 3],
    ),
    Event("closed", "v", at=4.0),
    Event("removed", product="p,1", at=5.0),
    Event("added", product="p,1", at=6.0),
]


@pytest.fixture
def events(tmp_path):
    with Events(f"sqlite:///{tmp_path}/shop.db") as opened:
        yield opened


def table(tmp_path, text, name="clicks.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("command", [["export-events", "--out", "events.csv"], ["judge-shop"]])
def test_a_database_that_is_not_there_is_told_and_not_created(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.toml").write_text('database = "sqlite:///shop.db"')
    refused = CliRunner().invoke(app, [command[0], "shop.toml", *command[1:]])
    assert refused.exit_code == 2
    assert f"there is no database {tmp_path / 'shop.db'}" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["shop.toml"]


def test_a_database_without_tables_is_told_and_left_alone(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    (tmp_path / "shop.db").touch()
    with pytest.raises(StoreError, match="has no events of a shop"):
        Events(url, create=False)
    with Events(url):
        Events(url, create=False).close()


# ---- frames and files -------------------------------------------------------------------------------------


def test_a_frame_has_the_columns_of_the_table(events):
    assert events_frame(events).height == 0
    empty = events_frame(events).schema
    write(events, *WRITTEN)
    frame = events_frame(events)
    assert frame.schema == empty
    assert (
        ", ".join(frame.columns)
        == "id, at, kind, visit, product, slot, reward, propensity, explored, sample, features, among, "
        "correction, agreeing"
    )
    assert frame["kind"].to_list() == [event.kind for event in WRITTEN]
    assert frame["explored"].to_list() == [None, True, None, False, None, None, None]
    assert frame["features"].str.json_decode(pl.Struct({"price": pl.Float64}))[0] == {"price": 3.5}
    assert events_frame(events, after=5).height == 2


def test_a_frame_of_more_events_than_are_read_at_once(events, monkeypatch):
    monkeypatch.setattr("rlsvi_shop.exchange.AT_ONCE", 3)
    write(events, *[Event("closed", str(i)) for i in range(7)])
    assert events_frame(events)["id"].to_list() == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_come_back_as_they_were(events, tmp_path, suffix):
    write(events, *WRITTEN)
    path = tmp_path / f"events.{suffix}"
    assert export_events(events, path) == len(WRITTEN)
    with Events(f"sqlite:///{tmp_path}/again.db") as again:
        assert import_events(again, SETTINGS, path).events == len(WRITTEN)
        assert again.since(0, 99) == events.since(0, 99)
        with pytest.raises(ValueError, match="the database already has events"):
            import_events(again, SETTINGS, path)


NAMES = ["=1+1", "+1", "-1", "@sum", "'=1", "''-1", "'tea", "tea", "a=b"]
ESCAPED = ["'=1+1", "'+1", "'-1", "'@sum", "''=1", "'''-1", "'tea", "tea", "a=b"]


def test_names_that_a_spreadsheet_would_compute_are_escaped_in_csv(events, tmp_path):
    write(
        events,
        *[Event("recommended", name, name, slot=0, features={}) for name in NAMES],
        *[Event("answered", name, name, reward=-1.5) for name in NAMES],
    )
    export_events(events, tmp_path / "events.csv")
    cells = pl.read_csv(tmp_path / "events.csv", infer_schema=False)
    assert cells["visit"].to_list() == cells["product"].to_list() == 2 * ESCAPED
    assert set(cells["reward"].drop_nulls()) == {"-1.5"}
    with Events(f"sqlite:///{tmp_path}/again.db") as again:
        import_events(again, SETTINGS, tmp_path / "events.csv")
        assert again.since(0, 99) == events.since(0, 99)


def test_a_table_is_imported_in_pieces_as_at_once(tmp_path, monkeypatch):
    """Also if its visits are not in order, and if the rows of a visit are far apart."""
    rows = [(f"v{i % 7}", f"p{i % 5 + i // 7}", i % 2, i // 7, 1e9 + i * 37 % 11) for i in range(21)]
    clicks = pl.DataFrame(rows, schema=["visit", "product", "reward", "slot", "at"], orient="row")
    found = []
    for at_once in (1, 4, 10_000):
        monkeypatch.setattr("rlsvi_shop.exchange.AT_ONCE", at_once)
        urls = (f"sqlite:///{tmp_path}/{name}-{at_once}.db" for name in "ab")
        with Events(next(urls)) as one, Events(next(urls)) as two:
            assert import_events(one, SETTINGS, clicks) == (21, 7, 7, 7 + 42 + 7)
            import_events(two, SETTINGS, events_frame(one))
            assert two.since(0, 99) == one.since(0, 99)
            found.append([event for event in one.since(0, 99) if event.kind != "added"])
    assert found[0] == found[1] == found[2]
    first = [event.at for event in found[0] if event.slot == 0]
    assert first == sorted(first)


@pytest.mark.parametrize("at_once", [1, 3])
def test_wrong_rows_of_several_pieces_are_named_and_nothing_is_imported(events, tmp_path, monkeypatch, at_once):
    monkeypatch.setattr("rlsvi_shop.exchange.AT_ONCE", at_once)
    text = "visit,product,reward,at\n" + "".join(f"v{i},p,{'x' * (i in (1, 4))}1,{9 - i}\n" for i in range(6))
    with pytest.raises(ValueError, match=r"nothing was imported:\nrow 2, .*line 3.*\nrow 5, .*line 6 of the file"):
        import_events(events, SETTINGS, table(tmp_path, text))
    assert events.last() == 0


def test_few_events_are_in_memory_at_once(events, monkeypatch):
    sizes, append_events = [], Writer.append
    monkeypatch.setattr("rlsvi_shop.exchange.AT_ONCE", 5)
    monkeypatch.setattr(Writer, "append", lambda self, some: sizes.append(living()) or append_events(self, some))
    clicks = pl.DataFrame({"visit": [f"v{i}" for i in range(15)], "product": ["p"] * 15, "reward": [1] * 15})
    before = living()
    import_events(events, SETTINGS, clicks)
    assert max(sizes) - before <= 3 * 2 * 5 < 3 * 15


def living():
    gc.collect()
    return sum(type(each) is Event for each in gc.get_objects())


def test_from_sqlite_to_postgresql(events, postgres_url):
    write(events, *WRITTEN)
    with Events(postgres_url) as again:
        import_events(again, SETTINGS, events_frame(events))
        assert events_frame(again).equals(events_frame(events))


TEXTS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=12)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
REWARDS = st.floats(-1e12, 1e12)
VISITS = st.dictionaries(
    TEXTS, st.tuples(REWARDS, st.dictionaries(TEXTS, FLOATS | TEXTS, max_size=3), TEXTS, st.booleans()), max_size=5
)


@given(visits=VISITS, suffix=st.sampled_from(["csv", "parquet"]))
@hypothesis_settings(max_examples=15)
def test_any_events_come_back_from_files(tmp_path_factory, visits, suffix):
    folder = tmp_path_factory.mktemp("any")
    with Events(f"sqlite:///{folder}/one.db") as one, Events(f"sqlite:///{folder}/two.db") as two:
        for visit, (reward, features, product, explored) in visits.items():
            shown = Event("recommended", visit, product, 0, None, 0.5, explored, 1, features, 1.0)
            write(one, shown, Event("answered", visit, product, reward=reward, at=2.0))
        export_events(one, folder / f"events.{suffix}")
        import_events(two, SETTINGS, folder / f"events.{suffix}")
        assert two.since(0, 99) == one.since(0, 99)


def test_only_files_that_can_be_written_and_read(events, tmp_path):
    with pytest.raises(ValueError, match=r"must end in .csv or .parquet"):
        export_events(events, tmp_path / "events.xlsx")
    with pytest.raises(ValueError, match="path must be the name of a file"):
        export_events(events, "a\0.csv")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        export_events(events, tmp_path / "no" / "events.csv")
    with pytest.raises(ValueError, match=r"must end in .csv or .parquet"):
        import_events(events, SETTINGS, table(tmp_path, "a", "a.txt"))
    with pytest.raises(FileNotFoundError, match="there is no file"):
        import_events(events, SETTINGS, tmp_path / "no.csv")
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(ValueError, match="cannot be read"):
            import_events(events, SETTINGS, table(tmp_path, "", name))


HEAD = "id,at,kind,visit,product,slot,reward,propensity,explored,sample,features\n"


AGREEING = HEAD.replace("features", "features,agreeing") + "1,1,recommended,v,p,1,,,,,,"
WRONG_EVENTS = [
    ("1,1,sold,v,p,,,,,,", "row 1, column 'kind': it must be \"added\" or"),
    ("1,1,closed,v,,,,,,,\n1,1,closed,w,,,,,,,", "row 2, column 'id': numbers must increase, got 1 after 1"),
    ("1,1,closed,v,,,,,,,\n2,1,closed,v,,,,,,,", "row 2, 'closed' of this visit and product is there twice"),
    ("1,1,answered,v,p,,nan,,,,", "row 1, column 'reward': must be a finite number, got 'nan'"),
    ("1,1,answered,v,p,,,,,,", "row 1, .* must have a finite reward"),
    ("1,1,recommended,v,,0,,,,,", "row 1, .* must name a visit, a product or both"),
    ("1,1,recommended,v,p,0.5,,,,,", "row 1, column 'slot': must be a whole number, got '0.5'"),
    ("1,1,recommended,v,p,0,,,yes,,", "row 1, column 'explored': must be true or false, got 'yes'"),
    ("1,1,recommended,v,p,0,,,,,[1]", r"row 1, column 'features': must be an object of JSON, got '\[1\]'"),
    (
        "1,then,closed,v,,,,,,,",
        "row 1, column 'at': must be seconds since 1970 or a date and time, got 'then'",
    ),
    ("1,,closed,v,,,,,,,", "row 1, column 'at': there is no value"),
    ("1_0,1,closed,v,,,,,,,", "row 1, column 'id': must be a whole number, got '1_0'"),
    (f"1,1,closed,{'v' * 201},,,,,,,", r"visit must have 1 to 200 characters, got 201 \(line 2 of"),
    ("1,1,closed,v\u2028,,,,,,,", r"'visit': visit must not have control characters, line breaks or special"),
    ("1,1,closed,v,,,,,,,\n2,1,answered,w,p,,1e13,,,,", r"row 2, .* -1e\+12 and .*got 1e\+13 \(line 3 of the"),
    ("1,1,recommended,v,p,99999999999,,,,,", "row 1, column 'slot': must be a slot, from 0 to 999"),
    ("1,1,recommended,v,p,0,,7,,,", "row 1, column 'propensity': must be more than 0 and at most 1, got 7"),
    (f"1,1,recommended,v,p,0,,,,,{'x' * 600_000}", "must have at most 524288 characters, got 600000"),
    (f"1,1,removed,v,p,,,,,,{{}}{' ' * 60_000}", r"row 1, .* must name a visit, a product or both"),
]
WRONG_CLICKS = [
    ("visit,product\nv,p\n", "there is no column 'reward'; there are visit, product"),
    (
        "visit,product,reward,colour\nv,p,1,red\n",
        r"column 'colour' is no feature of a customer: declare it in \[",
    ),
    ("visit,product,reward\nv,p,1\nv,,1\n", "row 2, column 'product': there is no value"),
    ("visit,product,reward\nv,p,1\nv,q,inf\n", "row 2, column 'reward': must be a finite number, got 'inf'"),
    ("visit,product,reward\nv,p,1\nw,p,1\nv,p,1\n", "row 3, column 'product': visit 'v' has 'p' twice"),
    ("visit,product,reward\nv,a,1\nv,b,1\nv,c,1\nv,d,1\n", "row 4, visit 'v' has more than the 3 slots"),
    (
        "visit,product,reward,slot\nv,a,1,0\nv,b,1,2\n",
        "row 2, column 'slot': visit 'v' must have slots 0, 1, ..",
    ),
    ("visit,product,reward,slot\nv,a,1,0\nv,b,1,\n", "row 2, column 'slot': there is no value"),
    ("visit,product,reward,age\nv,a,1,old\n", "row 1, column 'age': must be a finite number, got 'old'"),
    ("visit,product,reward,age\nv,a,1,30\nv,b,1,31\n", "row 2, the features of the customer must be the same"),
    (
        "visit,product,reward,propensity\nv,a,1,0\n",
        "row 1, column 'propensity': must be more than 0 and at most 1",
    ),
    ("visit,product,reward\n" + "v,,1\n" * 9, "(?s)row 1,.*row 5, .*\nand 4 more$"),
]
CORRECTED = HEAD.replace("features", "features,among,correction")
WRONG_CORRECTIONS = [
    (["1,1,answered,v,p,,0,,,,,,1"], 1),
    (["1,1,answered,v,p,,0,,,,,,0", "2,1,answered,v,p,,1,,,,,,2"], 2),
    (["1,1,answered,v,p,,0,,,,,,0", "2,1,answered,v,p,,1,,,,,,1", "3,1,answered,v,p,,2,,,,,,1"], 3),
]
LATE = "row 1, column 'at': must be before the year 2200, got '{}': give seconds since 1970"
WRONG_TABLES = [
    *((HEAD + rows, words) for rows, words in WRONG_EVENTS),
    *WRONG_CLICKS,
    *(
        (CORRECTED + "\n".join(rows), f"row {wrong}, column 'correction': must be {wrong - 1},")
        for rows, wrong in WRONG_CORRECTIONS
    ),
    *(
        (f"visit,product,reward,at\na,tea,1,{at}\n", LATE.format(re.escape(at)))
        for at in ("1700000000000", "7258118400", "2200-01-01")
    ),
    (AGREEING + "[2]", "row 1, agreeing of an event must be a list of numbers from 0 to 1"),
    (AGREEING + "1", "row 1, column 'agreeing': must be a list of JSON that is not empty, got '1'"),
    ("kind,visit\nclosed,v\n", "a table of events must have the columns kind, visit, "),
    ('visit,product,reward\na,"tea,1\nb,tea,2\n', r'a quotation mark \("\) that is not closed'),
    ("visit,product\na,tea,1\n", "a row has more cells than the first line has names"),
    ("", "it is empty: the first line must have the names"),
]


@pytest.mark.parametrize(("text", "words"), WRONG_TABLES, ids=range(len(WRONG_TABLES)))
def test_tables_that_are_wrong_are_named(events, tmp_path, text, words):
    with pytest.raises(ValueError, match=words):
        import_events(events, SETTINGS, table(tmp_path, text))
    assert events.last() == 0


def test_visits_that_the_database_has_already_are_refused(events, tmp_path):
    write(events, Event("closed", "known"))
    with pytest.raises(ValueError, match="nothing was imported: the database already has visit 'known'"):
        import_events(events, SETTINGS, table(tmp_path, "visit,product,reward\nknown,p,1\n"))
    assert events.last() == 1


def test_a_table_that_does_not_fit_in_memory_is_refused_before_it_is_read(events, tmp_path, monkeypatch):
    path = tmp_path / "clicks.csv"
    with path.open("wb") as file:
        file.write(b"visit,product,reward\nv,p,1\n")
        file.seek(2**31)  # a hole of two gigabytes, without a line break
        file.write(b"\n")
    with pytest.raises(ValueError, match=r"line 3 of .*clicks.csv has more than 1048576 bytes"):
        import_events(events, SETTINGS, path)
    monkeypatch.setattr("rlsvi.core.checks.memory", lambda: 1400)
    for name in ("three.csv", "three.parquet"):
        rows = pl.DataFrame({"visit": ["a", "b", "c"], "product": ["p"] * 3, "reward": ["1"] * 3})
        (rows.write_csv if name.endswith("csv") else rows.write_parquet)(tmp_path / name)
        with pytest.raises(ValueError, match=rf"rows of .*{name} take .*: import a part of them"):
            import_events(events, SETTINGS, tmp_path / name)


def test_many_wrong_rows_are_counted_and_not_kept(events, tmp_path):
    path = table(tmp_path, "visit,product,reward\n" + 'v,"p\nq",x\n' * 2000)
    with pytest.raises(ValueError, match=r"row 3, column 'product'.*\nand 3995 more$") as error:
        import_events(events, SETTINGS, path)
    assert len(str(error.value)) < 1000
    assert "(line" not in str(error.value)  # rows are no lines here


def test_rewards_that_were_corrected_or_came_before_the_limits_are_imported_with_events(events, tmp_path):
    written = [
        Event("recommended", "v", "p", 0, at=1.0),
        Event("answered", "v", "p", reward=1e6, at=2.0),
        Event("answered", "v", "p", reward=1.0, correction=1, at=3.0),
    ]
    write(events, *written)
    export_events(events, tmp_path / "events.csv")
    with Events(f"sqlite:///{tmp_path}/new.db") as new:
        import_events(new, ShopSettings(reward={"low": 0, "high": 5}), tmp_path / "events.csv")
        assert new.since(0, 99) == events.since(0, 99)


@pytest.mark.parametrize("kinds", [["visit", "product", "reward"], ["visit", "product", "reward", "slot", "at"]])
def test_a_table_without_rows_imports_nothing(events, kinds):
    assert import_events(events, SETTINGS, pl.DataFrame(schema=dict.fromkeys(kinds, pl.String))).rows == 0
    assert import_events(events, SETTINGS, events_frame(events)).rows == 0
    assert events.last() == 0


# ---- clicks -----------------------------------------------------------------------------------------------

CLICKS = """visit,product,reward,slot,age,country,propensity,at
b,x,1,1,,,0.5,2026-11-16 20:15:00
b,007,,0,30,de,0.25,2026-11-16 20:14:00+00:00
a,x,2.5,0,,fr,,1794859051.5
"""


def test_clicks_become_visits(events, tmp_path):
    write(events, Event("added", product="x"))
    imported = import_events(events, SETTINGS, table(tmp_path, CLICKS))
    assert imported == (3, 2, 2, 1 + 4 + 3)
    assert str(imported) == "3 rows, 2 visits, 2 products"
    early, late = (datetime(2026, 11, 16, 20, minute, tzinfo=UTC).timestamp() for minute in (14, 15))
    added, *found = events.since(1, 99)
    assert (added.kind, added.product) == ("added", "007")
    assert [event._replace(id=0) for event in found] == [
        Event("recommended", "a", "x", 0, features={"country": "fr"}, at=1794859051.5),
        Event("answered", "a", "x", reward=2.5, at=1794859051.5),
        Event("closed", "a", at=1794859051.5),
        Event("recommended", "b", "007", 0, propensity=0.25, features={"age": 30.0, "country": "de"}, at=early),
        Event("recommended", "b", "x", 1, propensity=0.5, at=late),
        Event("answered", "b", "x", reward=1.0, at=late),
        Event("closed", "b", at=late),
    ]


def test_only_visits_and_products_of_the_table_are_counted(events, tmp_path):
    listed = ShopSettings(serve={"products": str(table(tmp_path, "product\ntea\ncocoa\n", "products.csv"))})
    imported = import_events(events, listed, table(tmp_path, "visit,product,reward\na,tea,1\n"))
    assert imported == (1, 1, 1, 2 + 3)
    assert list(events.catalogue()) == ["tea", "cocoa"]


def test_clicks_say_what_could_have_been_shown(events, tmp_path):
    text = 'visit,product,reward,among\n1,7,1,"[7, 8]"\n1,8,1,\n'
    import_events(events, INTEGERS, table(tmp_path, text))
    assert [event.among for event in events.since(2, 99)] == [["7", "8"], None, None, None, None]
    for wrong in ("7", "[]", '"[7, ""a""]"'):
        with pytest.raises(ValueError, match=r"row 1, column 'among': (must be a list|must be a whole number)"):
            import_events(events, INTEGERS, table(tmp_path, f"visit,product,reward,among\n2,7,1,{wrong}\n"))


def test_the_least_that_clicks_have(events, tmp_path):
    clicks = table(tmp_path, "visit,product,reward\n1,20,0\n2,20,1\n1,-3,1\n")
    assert import_events(events, INTEGERS, clicks).events == 2 + 3 + 3 + 2  # added, recommended, answered, closed
    found = [(event.kind, event.visit, event.product, event.slot) for event in events.since(0, 99)]
    assert found[:2] == [("added", "", "20", None), ("added", "", "-3", None)]
    assert found[2:7] == [
        ("recommended", "1", "20", 0),
        ("answered", "1", "20", None),
        ("recommended", "1", "-3", 1),
        ("answered", "1", "-3", None),
        ("closed", "1", "", None),
    ]
    assert events.since(0, 99)[2].at > 1.7e9


def test_products_that_were_removed_stay_so(events, tmp_path):
    write(events, Event("added", product="p"), Event("removed", product="p"))
    import_events(events, SETTINGS, table(tmp_path, "visit,product,reward\nv,p,1\n"))
    assert events.catalogue()["p"].kind == "removed"


def test_clicks_of_typed_frames(events):
    frame = pl.DataFrame(
        {
            "visit": [1, 1],
            "product": [5, 6],
            "reward": [True, None],
            "at": [datetime(2026, 1, 1, 0, 0, 1), datetime(2026, 1, 1)],
        }
    )
    with pytest.raises(ValueError, match="row 1, column 'reward': must be a finite number, got True"):
        import_events(events, INTEGERS, frame)
    import_events(events, INTEGERS, frame.with_columns(reward=pl.col("reward").cast(pl.Int8)))
    assert [event.product for event in events.since(0, 99) if event.kind == "recommended"] == ["6", "5"]  # by time
    with pytest.raises(
        ValueError, match="row 1, column 'visit': visit must be a string, since ids = 'string', got 1"
    ):
        import_events(events, SETTINGS, frame)


def test_an_import_that_fails_halfway_leaves_nothing(events, monkeypatch):
    monkeypatch.setattr("rlsvi_shop.exchange.AT_ONCE", 1)
    frame = pl.DataFrame({"visit": ["a", "b", "c"], "product": ["x", "y", "z"], "reward": [1.0, 2.0, 3.0]})
    real, calls = type(events._database).insert, []

    def insert(self, *arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, *arguments)

    monkeypatch.setattr(type(events._database), "insert", insert)
    with pytest.raises(KeyboardInterrupt):
        import_events(events, SETTINGS, frame)
    assert len(calls) == 3
    assert events.last() == 0
    assert import_events(events, SETTINGS, frame).events == 12


# ---- products ---------------------------------------------------------------------------------------------


def test_products_of_a_table(tmp_path):
    found = products_of(table(tmp_path, "product,price\n01,3.5\n02,\n"), SETTINGS)
    assert found == [Event("added", product="01", features={"price": 3.5}), Event("added", product="02")]
    assert products_of(table(tmp_path, "product\n7\n"), INTEGERS) == [Event("added", product="7")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("product,price\na,1\nb,x\n", "row 2, column 'price': must be a finite number, got 'x'"),
        ("product\na\nb\na\n", "row 3, column 'product': 'a' is in row 1 already"),
        ("product,colour\na,red\n", "column 'colour' is no feature of a product"),
        ("price\n1\n", "there is no column 'product'"),
    ],
    ids=range(4),
)
def test_products_that_are_wrong_are_named(tmp_path, text, words):
    with pytest.raises(ValueError, match=words):
        products_of(table(tmp_path, text), SETTINGS)


# ---- names ------------------------------------------------------------------------------------------------


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_come_back_as_integers(name):
    assert name_of(text_of("product", name, "integer"), "integer") == name


@given(TEXTS)
def test_strings_come_back_as_strings(name):
    assert name_of(text_of("product", name, "string"), "string") == name


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        *(("1", "integer"), (True, "integer"), (1.0, "integer"), (2**63, "integer"), (None, "integer")),
        *((1, "string"), ("", "string"), ("a" * 201, "string"), ("a\x00", "string"), ("\ud800", "string")),
    ],
    ids=range(10),
)
def test_names_that_cannot_be_stored(name, ids):
    with pytest.raises(ValueError, match="visit must "):
        text_of("visit", name, ids)


def test_a_stored_name_that_is_no_integer():
    with pytest.raises(ValueError, match="which is no integer: set ids = 'string'"):
        name_of("a", "integer")
