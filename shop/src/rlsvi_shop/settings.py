"""The settings of a shop, from a file shop.toml or from Python, and what is wrong with them in plain English."""

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, Strict, ValidationError, field_validator, model_validator
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from rlsvi.core.checks import instead, shown
from rlsvi_shop.features import FROZEN, Encoder, Number, Whole


def _without_null(text: str) -> str:
    if "\0" in text:
        raise ValueError("it must not have the null character, which no path or name can have")
    return text


Text = Annotated[str, Strict(), AfterValidator(_without_null)]
Flag = Annotated[bool, Strict()]
LARGEST_REWARD = 1e12
EXAMPLES = 'such as "sqlite:///shop.db" or "postgresql+psycopg://user@host/shop"'


class RewardSettings(BaseModel):
    """What a reward means.

    Attributes
    ----------
    liked_above
        The customer liked what got a reward above this; later recommendations of the visit know it.
    low, high
        The least and the largest reward that there can be. Others are refused; those stored before, or imported
        with a table of events, count as the nearer limit.
    unit
        The size of a usual reward; None: learned from the rewards.
    unanswered
        What a product without an answer earned when its visit is closed; None: that is not known.
    """

    model_config = FROZEN
    liked_above: Number = 0.0
    low: Number = Field(default=-LARGEST_REWARD, ge=-LARGEST_REWARD)
    high: Number = Field(default=LARGEST_REWARD, le=LARGEST_REWARD)
    unit: Number | None = Field(default=None, gt=0)
    unanswered: Number | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"low must be less than high, got {self.low:g} and {self.high:g}")
        if self.unanswered is not None:
            try:
                self.check(self.unanswered)
            except ValueError as error:
                raise ValueError(f"unanswered {error}") from None
        return self

    def check(self, reward: float) -> float:
        """Return a reward if it can be."""
        if not self.low <= reward <= self.high:
            raise ValueError(f"must be between {self.low:g} and {self.high:g}, got {reward:g}")
        return reward


class LearningSettings(BaseModel):
    """How the learner learns.

    Attributes
    ----------
    draws
        How many samples of the posterior serve the customers.
    history
        How many numbers describe the answers known in a visit.
    remember
        Of how many latest visits the targets are computed anew.
    exploration
        What the standard deviation of samples, which the data determine, is multiplied by; 0: none.
    refresh
        After how many seconds, at the latest, a service draws samples that know the visits ended meanwhile.
    seed
        What samples are drawn from.
    lam, sigma
        The precision of the prior and the standard deviation of the noise; None: chosen by evidence.
    plan
        Whether a recommendation counts by what the rest of its visit earns too; if not, by its own reward alone.
    """

    model_config = FROZEN
    draws: Whole = Field(default=16, ge=1, le=1024)
    history: Whole = Field(default=128, ge=1, le=4096)
    remember: Whole = Field(default=20_000, ge=1)
    exploration: Number = Field(default=1.0, ge=0, le=1e6)
    refresh: Number = Field(default=60.0, gt=0)
    seed: Whole = Field(default=0, ge=0, lt=2**63)
    lam: Number | None = Field(default=None, gt=0)
    sigma: Number | None = Field(default=None, gt=0)
    plan: Flag = True


class ServeSettings(BaseModel):
    """Where and how requests are served.

    Attributes
    ----------
    host, port
        The address.
    workers
        How many processes serve.
    token_variable
        The environment variable that holds the token which requests must show.
    largest_body
        The most bytes of a request.
    products
        A CSV file of products; those that the catalogue never had are added when the service starts.
    """

    model_config = FROZEN
    host: Text = Field(default="127.0.0.1", min_length=1)
    port: Whole = Field(default=8000, ge=0, le=65535)
    workers: Whole = Field(default=1, ge=1, le=256)
    token_variable: Text = Field(default="RLSVI_TOKEN", min_length=1)
    largest_body: Whole = Field(default=65_536, ge=256)
    products: Text | None = None


class ShopSettings(BaseModel):
    """Everything that a shop's servers and its learner must agree on.

    Parameters
    ----------
    **settings
        The attributes below by name, each with a default.

    Attributes
    ----------
    database
        The URL of the database: SQLite, or PostgreSQL, whose password is best left to PGPASSWORD.
    slots
        The most recommendations of a visit.
    ids
        Whether products and visits are named by strings or by integers.
    idle
        After how many seconds without an event a visit is closed.
    sync
        SQLite: whether events also survive a loss of power the moment they are acknowledged (slower).
    folder
        Where samples and snapshots are kept; None: beside the SQLite file, or beside shop.toml.
    share_draws
        Whether samples also travel through the database, for servers on several machines.
    customer, product
        The features of customers and products: `settings.customer.encode({"age": 30})`.
    reward, learning, serve
        The sections of the same names.
    reference
        Numbers that the page shows as lines, by name: known rewards per visit.

    Examples
    --------
    >>> from rlsvi_shop import ShopSettings
    >>> settings = ShopSettings(slots=3, customer={"age": {"low": 0, "high": 100}})
    >>> settings.customer.width
    1
    """

    model_config = FROZEN
    database: Text = Field(default="sqlite:///shop.db", repr=False)
    slots: Whole = Field(default=10, ge=1, le=1000)
    ids: Literal["string", "integer"] = "string"
    idle: Number = Field(default=3600.0, gt=0)
    sync: Flag = False
    folder: Text | None = None
    share_draws: Flag = False
    customer: Encoder = Encoder({})
    product: Encoder = Encoder({})
    reward: RewardSettings = RewardSettings()
    learning: LearningSettings = LearningSettings()
    serve: ServeSettings = ServeSettings()
    reference: dict[str, Number] = Field(default_factory=dict)

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise ValueError(_explanation(error)) from None

    @field_validator("database")
    @classmethod
    def _known_database(cls, url: str) -> str:
        return database_url(url).render_as_string(hide_password=False)

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Self:
        """Read the settings from a file. Paths in it are relative to its folder."""
        if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
            raise TypeError(f"settings must be the path of a file shop.toml or a ShopSettings, got {shown(path)}")
        path = Path(path)
        try:
            text = path.read_bytes().decode()
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no file {path}: name the settings of a shop, shop.toml") from None
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not a TOML file: {error}") from None
        except (OSError, ValueError) as error:  # a folder, a name that no file can have
            why = getattr(error, "strerror", None) or error
            raise ValueError(f"{shown(str(path))} cannot be read ({why}): name the file shop.toml") from None
        try:
            found = tomllib.loads(text)
        except RecursionError:
            raise ValueError(f"{path} is nested too deeply: settings are at most tables in tables") from None
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path} is not a TOML file: {error}") from None
        except ValueError:  # Python reads no number of so many digits
            raise ValueError(f"{path} has a number of thousands of digits: write a smaller one") from None
        try:
            return cls(**found)._beside(path.resolve().parent)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    @property
    def draws_folder(self) -> Path:
        """The folder of samples and snapshots."""
        file = sqlite_file(self.database)
        return Path(self.folder) if self.folder is not None else file.parent if file else Path()

    def file(self, kind: str) -> Path:
        """Return the file of "draws" or of the "learner", named after the database: shops may share a folder."""
        database = Path(make_url(self.database).database or "shop").name
        return self.draws_folder / f"{database}.{kind}.rlsvi"

    def _beside(self, folder: Path) -> Self:
        """Return the same settings with paths that are relative to a folder made absolute."""
        url, file = make_url(self.database), sqlite_file(self.database)
        if file is not None:
            url = url.set(database=str(folder / file))
        home = self.folder if self.folder is not None else "" if file is None else None
        products = self.serve.products and str(folder / self.serve.products)
        return self.model_copy(
            update={
                "database": url.render_as_string(hide_password=False),
                "folder": None if home is None else str(folder / home),
                "serve": self.serve.model_copy(update={"products": products}),
            }
        )


def database_url(url: str) -> URL:
    """Return the URL of a database if it is one of SQLite's files or of PostgreSQL."""
    try:
        found = make_url(url)
    except (ArgumentError, ValueError):  # SQLAlchemy shows what is no text, which may be too long
        raise ValueError(f"database must be the URL of a database, {EXAMPLES}") from None
    name = found.drivername.partition("+")[0]
    if name in ("postgresql", "postgres"):
        return found.set(drivername="postgresql+psycopg")
    if name != "sqlite":
        raise ValueError(f"database must be SQLite or PostgreSQL, {EXAMPLES}, got {found.drivername}")
    if not found.database or found.database == ":memory:" or found.database.startswith("file:"):
        raise ValueError("database must be a file, since several processes share it: sqlite:///shop.db")
    return found.set(drivername="sqlite")


def sqlite_file(url: str) -> Path | None:
    """Return the file of a SQLite database, None for another."""
    found = database_url(url)
    return Path(str(found.database)) if found.drivername == "sqlite" else None


def schema(settings: ShopSettings) -> list[Any]:
    """Return the features of customers and of products, in order: they give the weights their meaning."""
    whole = settings.model_dump(mode="json")
    return [[[name, feature] for name, feature in whole[part].items()] for part in ("customer", "product")]


def fingerprint(settings: ShopSettings) -> dict[str, Any]:
    """Return all settings that give the arrays of a learner their meaning: with others, it learns anew."""
    whole = settings.model_dump(mode="json")
    reward = {name: value for name, value in whole["reward"].items() if abs(value or 0.0) != LARGEST_REWARD}
    fixed = {"slots": settings.slots, "ids": settings.ids, "features": schema(settings), "reward": reward}
    return {**fixed, **{name: whole["learning"][name] for name in ("draws", "history", "plan")}}


# ---- errors in settings, which name the setting, its value and the remedy -----------------------------------

EXPECTED = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "literal_error": "must be {expected}",
    "too_long": "must have at most {max_length} values: use {{ hashed = 256 }} for more",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
}
FEATURE = "{ low = 0, high = 100 }, { values = ['a', 'b'] } or { hashed = 16 }"


def _explanation(error: ValidationError) -> str:
    lines: dict[str, str] = {}  # a value that fits no member of a union has several errors: the first is enough
    for each in error.errors(include_url=False):
        place = each["loc"]
        if place[0] in ("customer", "product"):  # without the kind of feature, which nobody wrote
            tagged = len(place) > 2 and place[2] in ("number", "category", "hashed")
            place = place[:2] + (place[3:4] if tagged else place[2:3])
        keys = [str(part) for part in place]
        lines.setdefault(".".join(keys), _line(keys, each))
    return "\n".join(lines.values())


def _line(keys: list[str], error: Any) -> str:
    name, kind, got, nested = ".".join(keys), error["type"], shown(error["input"]), len(keys) > 1
    feature = keys[0] in ("customer", "product")
    if kind == "extra_forbidden" and feature:
        return f"there is no setting {name}: a feature is one of {FEATURE}"
    if kind == "extra_forbidden":
        section: Any = ShopSettings.model_fields[keys[0]].annotation if nested else ShopSettings
        return f"there is no setting {name}: {instead(keys[-1], section.model_fields)}"
    if kind == "missing":
        return f"{name} is missing: a feature is one of {FEATURE}"
    if kind == "value_error":
        reason = str(error["ctx"]["error"])
        return reason if reason.startswith(name) and not nested else f"{name}: {reason}"
    if kind in ("model_type", "dict_type"):
        example = FEATURE if feature and nested else f"[{keys[0]}]"
        return f"{name} must be a table of settings, such as {example}, got {got}"
    reason = error["msg"].replace("Input should", "must")
    if kind in EXPECTED:
        reason = EXPECTED[kind].format(**error.get("ctx", {}))
    return f"{name} {reason}, got {got}"
