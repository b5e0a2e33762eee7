"""The public functions of the shop with one wrong argument; see tests/fuzzing.py."""

import itertools

import polars as pl
import pytest

import rlsvi_shop
from fuzzing import FOLDER, Call, Fuzz, own_folder, remembered

NUMBERS = itertools.count()
CLICKS = pl.DataFrame(
    {"visit": ["a", "a", "b", "c"], "product": ["x", "y", "x", "y"], "reward": [1.0, 0.0, 0.0, 1.0]}
)


@remembered
def _events():
    return rlsvi_shop.Events(f"sqlite:///{FOLDER}/events.db")


def _settings(**changes):
    return rlsvi_shop.ShopSettings(database=f"sqlite:///{FOLDER}/shop.db", slots=2, **changes)


@remembered
def _recommender():
    """A shop of three products, with an open visit."""
    found = rlsvi_shop.Recommender(_settings())
    for product in "abc":
        found.add(product)
    found.learn()
    return found


def _opened():
    """A new visit."""
    visit = f"visit {next(NUMBERS)}"
    _recommender().recommend(visit)
    return visit


def _shown():
    """A product that the visit v1 has been shown, in the first slot."""
    return _recommender().recommend("v1", slot=0)


def _offered(product):
    _recommender().add(product)
    return product


@remembered
def _visits():
    found = rlsvi_shop.Events(f"sqlite:///{FOLDER}/visits.db")
    names = [f"{i}" for i in range(8)]
    frame = pl.DataFrame({"visit": names, "product": ["x", "y"] * 4, "reward": [1.0, 0.0] * 4})
    rlsvi_shop.import_events(found, _settings(), frame)
    return found


def _toml():
    path = FOLDER / "shop.toml"
    path.write_text('slots = 2\ndatabase = "sqlite:///shop.db"\n')
    return path


CALLS = {
    "rlsvi_shop.Events": Call(lambda: {"url": f"sqlite:///{FOLDER}/events.db"}, lambda x: x.close()),
    "rlsvi_shop.Events.since": Call(lambda: {"self": _events(), "number": 0, "limit": 5}),
    "rlsvi_shop.Recommender": Call(
        lambda: {"database": f"sqlite:///{FOLDER}/options.db", "learning": False, "idle": 60.0}, lambda x: x.stop()
    ),
    "rlsvi_shop.Recommender.add": Call(lambda: {"self": _recommender(), "product": "a", "features": None}),
    "rlsvi_shop.Recommender.add_all": Call(lambda: {"self": _recommender(), "products": {"a": None}}),
    "rlsvi_shop.Recommender.remove": Call(lambda: {"self": _recommender(), "product": _offered("d")}),
    "rlsvi_shop.Recommender.recommend": Call(
        lambda: {"self": _recommender(), "visit": f"visit {next(NUMBERS)}", "context": None}
    ),
    "rlsvi_shop.Recommender.feedback": Call(
        lambda: {"self": _recommender(), "visit": "v1", "product": _shown(), "reward": 1.0}
    ),
    "rlsvi_shop.Recommender.close": Call(lambda: {"self": _recommender(), "visit": _opened()}),
    "rlsvi_shop.ShopSettings": Call(lambda: {"database": f"sqlite:///{FOLDER}/shop.db", "slots": 2}),
    "rlsvi_shop.ShopSettings.from_toml": Call(lambda: {"path": _toml()}),
    "rlsvi_shop.events_frame": Call(lambda: {"events": _events()}),
    "rlsvi_shop.export_events": Call(lambda: {"events": _events(), "path": FOLDER / "events.csv"}),
    "rlsvi_shop.import_events": Call(lambda: {"events": _events(), "settings": _settings(), "source": CLICKS}),
    "rlsvi_shop.judge": Call(lambda: {"settings": _settings(), "events": _visits()}),
}
FUZZ = Fuzz(
    CALLS,
    ("rlsvi_shop",),
    {"shop": (100, r"")},
    internal={"newest_draws", "put_draws", "product_id", "file", "note_failure"},
)
pytestmark = pytest.mark.usefixtures("quick_disk")


def test_every_public_function_has_a_valid_call():
    FUZZ.check_table()


def test_wrong_arguments_are_named(tmp_path, monkeypatch):
    own_folder(tmp_path, monkeypatch)
    FUZZ.check("shop")


@pytest.mark.slow
def test_thousands_of_wrong_arguments_are_named(tmp_path, monkeypatch):
    own_folder(tmp_path, monkeypatch)
    FUZZ.check("shop", times=6)
