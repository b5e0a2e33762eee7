"""The settings of a shop: from a file or from Python, and what is said of mistakes in them."""

from pathlib import Path

import pytest

from rlsvi_shop.settings import ShopSettings, database_url, sqlite_file

FULL = """
database = "sqlite:///data/shop.db"
slots = 4
ids = "integer"
idle = 60
sync = true
[customer]
age = { low = 0, high = 100 }
country = { values = ["at", "de", "fr"] }
referrer = { hashed = 16 }
[product]
price = { low = 0, high = 200 }
[reward]
liked_above = 2
[learning]
draws = 8
lam = 0.5
[serve]
port = 9000
products = "products.csv"
[reference]
"uniform order" = 2.5
"""


def written(folder, text):
    path = folder / "shop.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_says_everything(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    path = written(tmp_path, FULL)
    monkeypatch.chdir(tmp_path / "elsewhere")
    settings = ShopSettings.from_toml(path)
    assert (settings.slots, settings.ids, settings.idle, settings.sync) == (4, "integer", 60.0, True)
    assert (settings.customer.width, settings.product.width) == (20, 1)
    assert settings.reward.liked_above == 2.0
    assert settings.reward.unit is None
    assert (settings.learning.draws, settings.learning.history, settings.learning.lam) == (8, 128, 0.5)
    assert settings.serve.port == 9000
    assert settings.reference == {"uniform order": 2.5}


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    path = written(tmp_path, FULL)
    monkeypatch.chdir(tmp_path.parent)
    settings = ShopSettings.from_toml(Path(tmp_path.name) / path.name)
    assert sqlite_file(settings.database) == tmp_path / "data" / "shop.db"
    assert settings.draws_folder == tmp_path / "data"
    assert settings.serve.products == str(tmp_path / "products.csv")


@pytest.mark.parametrize(
    ("line", "folder"), [("", "."), ('folder = "samples"', "samples"), ('folder = "/var/shop"', "/var/shop")]
)
def test_where_samples_are_kept_beside_postgresql(tmp_path, line, folder):
    settings = ShopSettings.from_toml(written(tmp_path, f'database = "postgresql://a:b@host/shop"\n{line}'))
    assert settings.draws_folder == tmp_path / folder
    assert settings.database == "postgresql+psycopg://a:b@host/shop"


def test_an_empty_file_is_a_shop(tmp_path):
    settings = ShopSettings.from_toml(written(tmp_path, ""))
    assert settings == ShopSettings(database=f"sqlite:///{tmp_path}/shop.db")
    assert settings.customer.width == settings.product.width == 0


def test_settings_cannot_be_changed_and_tell_no_password():
    settings = ShopSettings(database="postgresql://me:secret@host/shop")
    with pytest.raises(ValueError, match="frozen"):
        settings.slots = 3
    assert "secret" not in repr(settings)


MISTAKES = {
    "slots": ({"slots": 0}, "slots must be at least 1, got 0"),
    "text": ({"slots": "3"}, "slots must be a whole number, got '3'"),
    "true": ({"slots": True}, "slots must be a whole number, got True"),
    "close": ({"slot": 3}, "there is no setting slot: did you mean slots?"),
    "far": ({"zzz": 3}, "there is no setting zzz: there are database, slots, "),
    "nan": ({"idle": float("nan")}, "idle must be a finite number, got nan"),
    "ids": ({"ids": "x"}, "ids must be 'string' or 'integer', got 'x'"),
    "flag": ({"sync": 1}, "sync must be true or false, got 1"),
    "section": ({"learning": 4}, r"learning must be a table of settings, such as \[learning\], got 4"),
    "inside": ({"learning": {"draw": 3}}, "there is no setting learning.draw: did you mean draws?"),
    "two": (
        {"learning": {"lam": -1, "sigma": "x"}},
        "(?s)learning.lam must be more than 0.*\nlearning.sigma must",
    ),
    "customer": ({"customer": 3}, r"customer must be a table of settings, such as \[customer\], got 3"),
    "feature": ({"customer": {"age": 3}}, "customer.age must be a table of settings, such as { low = 0"),
    "half": ({"customer": {"age": {"low": 0}}}, "customer.age.high is missing: a feature is one of { low = 0"),
    "order": ({"product": {"age": {"low": 3, "high": 1}}}, "product.age: low must be less than high, got low = 3"),
    "wide": ({"product": {"age": {"low": -1e308, "high": 1e308}}}, "product.age: low must be less than high"),
    "both": (
        {"product": {"a": {"low": 0, "values": ["a"]}}},
        "there is no setting product.a.low: a feature is one",
    ),
    "none": ({"product": {"a": {"values": []}}}, r"product.a.values must not be empty, got \[\]"),
    "same": ({"product": {"a": {"values": [1, "1"]}}}, r"product.a: values must differ, got \[1, '1'\]"),
    "kind": ({"product": {"a": {"values": [1.5]}}}, "product.a.values must be a text, got 1.5"),
    "many": (
        {"customer": {"a": {"values": list(range(8000))}}},
        r"customer.a.values must have at most 1000 values: use { hashed = 256 } for more, got \[0, 1",
    ),
    "all": (
        {"customer": {name: {"hashed": 2000} for name in "abc"}},
        "customer: all features together must take at most 4096 numbers, got 6000: list fewer values",
    ),
    "null": ({"database": "sqlite:///a\0b"}, "database: it must not have the null character"),
    "hashed": ({"product": {"a": {"hashed": 0}}}, "product.a.hashed must be at least 1, got 0"),
    "line": ({"reference": {"uniform": "x"}}, "reference.uniform must be a number, got 'x'"),
    "mysql": (
        {"database": "mysql://me:secret@x/y"},
        "database must be SQLite or PostgreSQL, such as .* got mysql",
    ),
    "no url": ({"database": "shop.db"}, 'database must be the URL of a database, such as "sqlite:///shop.db"'),
    "memory": ({"database": "sqlite://"}, "database must be a file, since several processes share it"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named_with_their_remedy(name):
    settings, words = MISTAKES[name]
    with pytest.raises(ValueError, match=words) as caught:
        ShopSettings(**settings)
    text = str(caught.value)
    assert type(caught.value) is ValueError
    assert not any(word in text for word in ("pydantic", "input_value", "secret", "errors.pydantic.dev"))
    assert caught.value.__cause__ is None


def test_mistakes_in_a_file_name_the_file(tmp_path):
    path = written(tmp_path, "slots = 0")
    with pytest.raises(ValueError, match=r"shop.toml: slots must be at least 1, got 0"):
        ShopSettings.from_toml(path)
    with pytest.raises(ValueError, match=r"shop.toml is not a TOML file"):
        ShopSettings.from_toml(written(tmp_path, "slots ="))
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"shop.toml is not a TOML file"):
        ShopSettings.from_toml(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        ShopSettings.from_toml(tmp_path / "no.toml")


@pytest.mark.parametrize("name", ["slots", "product.a", "customer", "serve.port", "reference"])
@pytest.mark.parametrize("depth", [10, 100, 300, 450, 1000, 100_000])
def test_deep_nesting_is_refused_in_words(tmp_path, name, depth):
    for value in ("[" * depth + "]" * depth, "{a=" * depth + "1" + "}" * depth):
        with pytest.raises(ValueError, match=r"shop\.toml(: .*(must|is missing|no setting)| is nested too)") as it:
            ShopSettings.from_toml(written(tmp_path, f"{name} = {value}"))
        assert type(it.value) is ValueError


@pytest.mark.parametrize("name", ["slots", "idle", "learning.seed", "reference.a", "product.a.hashed"])
@pytest.mark.parametrize("digits", [400, 4000, 5000, 100_000])
def test_huge_numbers_are_refused_in_words(tmp_path, name, digits):
    for sign in ("", "-", "0x"):
        with pytest.raises(ValueError, match=rf"shop\.toml(: {name} must .*, got | has a number of tho)") as it:
            ShopSettings.from_toml(written(tmp_path, f"{name} = {sign}{'9' * digits}"))
        assert type(it.value) is ValueError


@pytest.mark.parametrize("path", [None, 3, 2.5, b"shop.toml", ["shop.toml"], object()])
def test_what_is_no_path_is_told(path):
    with pytest.raises(TypeError, match=r"settings must be the path of a file shop.toml or a ShopSettings, got "):
        ShopSettings.from_toml(path)


@pytest.mark.parametrize("name", ["", "a\0b", "a" * 5000], ids=["folder", "null", "long"])
def test_a_path_that_cannot_be_read_is_told(tmp_path, name):
    with pytest.raises(ValueError, match=r"cannot be read \(.*\): name the file shop.toml"):
        ShopSettings.from_toml(tmp_path / name)


def test_urls():
    assert database_url("sqlite+pysqlite:////tmp/a.db").drivername == "sqlite"
    assert sqlite_file("postgres://host/shop") is None
