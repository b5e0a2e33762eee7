"""Wrong arguments of the public functions and methods of a shop: errors that name them, and nothing is stored."""

import inspect
import linecache
import math
import traceback
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import rlsvi
import rlsvi_shop
from rlsvi_shop import Event, Events, Recommender, ShopSettings, events_frame, export_events, import_events, judge

HOUSES = {Path(package.__file__).parent for package in (rlsvi, rlsvi_shop)}
THINGS = {
    "nothing": None,
    "true": True,
    "zero": 0,
    "half": 0.5,
    "negative": -1,
    "nan": math.nan,
    "infinite": math.inf,
    "beyond 64 bits": 2**63,
    "beyond float64": 10**400,
    "complex": 1j,
    "empty text": "",
    "text": "text",
    "zero byte": "a\0b",
    "surrogate": "\ud800",
    "bytes": b"tea",
    "empty list": [],
    "list": ["tea", 1.5, None],
    "nested": [["tea"]],
    "tuple": ("tea",),
    "set": {"tea"},
    "dictionary": {"tea": 1},
    "keys that are no texts": {1: 2, None: 3},
    "values that are no texts": {"age": [1], "price": object()},
    "array": np.zeros((2, 2)),
    "number of numpy": np.float32(3.5),
    "date": np.datetime64("2020-01-01"),
    "object": object(),
    "class": dict,
    "function": len,
    "event": Event("closed", "v"),
    "odd event": Event(3, "v", [], "a", "b", "c", "d", "e", "f", "g", "h", "i"),
    "events": [Event("closed", "v", at="x")],
    "path": Path("no/such/file"),
    "frame": pl.DataFrame({"visit": [1], "product": [[2]]}),
}


def written(shop, events):
    with shop.events.writing() as writer:
        writer.append(events)


def read(shop, names):
    with shop.events.writing() as writer:
        writer.visits(names)


def opened(shop, url=None, sync=False, create=True):
    with Events(shop.settings.database if url is None else url, sync, create):
        pass


def started(shop, learning=False, every=None):
    with Recommender(database=shop.settings.database, learning=learning, every=every):
        pass


def encoded(shop, features):
    shop.settings.customer.encode(features)


def named(shop, number):
    """A product or visit, as the settings name them."""
    return number if shop.settings.ids == "integer" else str(number)


# By function: what it is called with while one of its arguments is replaced.
CALLS = {
    Recommender.recommend: lambda shop: {"visit": named(shop, 100 + shop.events.last())},
    Recommender.feedback: lambda shop: {"visit": named(shop, 1), "product": named(shop, 7), "reward": 1.0},
    Recommender.close: lambda shop: {"visit": named(shop, 1)},
    Recommender.handle: lambda shop: {"requests": []},
    Recommender.add: lambda shop: {"product": named(shop, 7)},
    Recommender.add_all: lambda shop: {"products": {}},
    Recommender.remove: lambda shop: {"product": named(shop, 8)},
    Recommender.product_id: lambda shop: {"name": "7"},
    Events.since: lambda shop: {"number": 0, "limit": 5},
    Events.put_draws: lambda shop: {"body": b""},
    Events.newest_draws: lambda shop: {"known": 0},
    started: lambda shop: {},
    opened: lambda shop: {},
    written: lambda shop: {"events": []},
    read: lambda shop: {"names": []},
    encoded: lambda shop: {"features": {}},
    events_frame: lambda shop: {"events": shop.events},
    export_events: lambda shop: {"events": shop.events, "path": shop.settings.draws_folder / "out.csv"},
    import_events: lambda shop: {"events": shop.events, "settings": shop.settings, "source": pl.DataFrame()},
    judge: lambda shop: {"settings": shop.settings, "events": []},
}
# Words that name an argument in other words; those of a call that is refused for another reason.
WORDS = {
    "source": ("file", "column"),
    "learning": ("learner",),
    "level": ("4 visits",),
    "features": ("age",),
    "context": ("age",),
}


@pytest.fixture(scope="module", params=["string", "integer"])
def shop(request, tmp_path_factory):
    settings = ShopSettings(
        database=f"sqlite:///{tmp_path_factory.mktemp('shop')}/own.db",
        ids=request.param,
        customer={"age": {"low": 0, "high": 100}},
        learning={"draws": 2, "history": 2},
    )
    with Recommender(settings) as opened_shop:
        opened_shop.add(named(opened_shop, 7))
        opened_shop.recommend(named(opened_shop, 1))
        yield opened_shop


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", CALLS, ids=lambda function: function.__qualname__)
def test_wrong_arguments_are_named_and_change_nothing(shop, function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, *names = inspect.signature(function).parameters
    whose = {"self": shop.events if function.__qualname__.startswith("Events") else shop, "shop": shop}.get(first)
    names = names if whose is not None else [first, *names]
    wrong = []
    for name in names:
        for label, thing in THINGS.items():
            arguments, before = {**CALLS[function](shop), name: thing}, shop.events.last()
            try:
                function(*([] if whose is None else [whose]), **arguments)
            except Exception as error:
                *_, place = traceback.extract_tb(error.__traceback__)
                ours = HOUSES & set(Path(place.filename).parents)
                meant = ours and linecache.getline(place.filename, place.lineno).strip().startswith("raise ")
                told = any(word in str(error).lower() for word in (name.rstrip("s"), *WORDS.get(name, ())))
                if not (meant and told and shop.events.last() == before):
                    wrong.append((name, label, repr(error)))
    assert not wrong


def test_errors_are_sentences_on_one_line(shop):
    for call, words in (
        (lambda: judge(None), "settings must be a ShopSettings, such as"),
        (lambda: import_events(shop.events, None, None), "settings must be a ShopSettings, such as"),
        (lambda: shop.add_all(["tea"]), "products must be a dictionary of products and their features, such as {"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    clicks = pl.DataFrame({"visit": ["new"], "product": ["8"], "reward": [[1.0, 2.0]]})
    if shop.settings.ids == "integer":
        clicks = clicks.with_columns(visit=99, product=8)
    with pytest.raises(ValueError, match=r"must be a finite number, got shape: \(2,\) Series") as caught:
        import_events(shop.events, shop.settings, clicks)
    assert len(str(caught.value).splitlines()) == 2  # "nothing was imported:", and the row
