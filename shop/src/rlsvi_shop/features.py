"""Customers and products as numbers: a schema, declared once, says how each of their features is encoded."""

import contextlib
import hashlib
import math
from collections.abc import Mapping
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, RootModel, Strict, Tag, model_validator

from rlsvi.core.checks import shown

if TYPE_CHECKING:
    from rlsvi.core.compile import Floats

Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Whole = Annotated[int, Strict()]
FROZEN = ConfigDict(frozen=True, extra="forbid")
LONGEST_CATEGORY = 1000  # characters of a category
VALUES = 1000  # of a category that is listed
MOST_NUMBERS = (
    4096  # numbers that encode a customer or product: the posterior holds the square of it for each product
)


class NumberFeature(BaseModel):
    """A number, scaled so that `low` becomes -1 and `high` becomes 1. Numbers beyond them are clipped."""

    model_config = FROZEN
    low: Number
    high: Number

    @model_validator(mode="after")
    def _in_order(self) -> "NumberFeature":
        if not 0 < self.high - self.low < math.inf:
            raise ValueError(f"low must be less than high, got low = {self.low:g} and high = {self.high:g}")
        return self

    width: ClassVar[int] = 1  # how many numbers encode the feature

    def check(self, name: str, value: Any) -> float:
        """Return the value if it is a finite number."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name} must be a number, got {shown(value)}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ValueError(f"{name} must be a finite number, got {number}: leave it out if it is not known")
        return number

    def put(self, name: str, value: float, into: "Floats") -> None:
        """Write a checked value into its place in the encoded vector."""
        part = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        into[0] = 2 * part - 1


def _text(name: str, value: Any) -> str:
    """Return the name of a category. 1 and "1" are the same one, as they are in a CSV file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) < 2**63:
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text, a whole number of 64 bits, true or false, got {shown(value)}")
    if len(value) > LONGEST_CATEGORY:
        raise ValueError(f"{name} must have at most {LONGEST_CATEGORY} characters, got {len(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be valid Unicode text, got {shown(value)}") from None
    return value


class _NamedFeature(BaseModel):
    model_config = FROZEN
    check = staticmethod(_text)


class CategoryFeature(_NamedFeature):
    """One of several values, encoded as one indicator for each. Another value sets none of them."""

    values: tuple[Annotated[str, Strict()] | Whole | Annotated[bool, Strict()], ...] = Field(
        min_length=1, max_length=VALUES
    )

    @model_validator(mode="after")
    def _different(self) -> "CategoryFeature":
        if len(self.places) < len(self.values):
            raise ValueError(f"values must differ, got {shown(list(self.values))}")
        return self

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each value."""
        return {_text("values", value): place for place, value in enumerate(self.values)}

    @property
    def width(self) -> int:
        """How many numbers encode the feature."""
        return len(self.values)

    def put(self, name: str, value: str, into: "Floats") -> None:
        """Write a checked value into its place in the encoded vector."""
        if value in self.places:
            into[self.places[value]] = 1.0


class HashedFeature(_NamedFeature):
    """One of many values that are not listed: a hash puts each at one of `hashed` places, with a sign."""

    hashed: Whole = Field(ge=1, le=MOST_NUMBERS)

    @property
    def width(self) -> int:
        """How many numbers encode the feature."""
        return self.hashed

    def put(self, name: str, value: str, into: "Floats") -> None:
        """Write a checked value into its place in the encoded vector."""
        digest = hashlib.blake2b(value.encode(), digest_size=8, key=name.encode()[:64]).digest()
        word = int.from_bytes(digest, "little")
        into[(word >> 1) % self.hashed] = 1.0 if word & 1 else -1.0


def _kind(feature: Any) -> str:
    keys = feature if isinstance(feature, Mapping) else getattr(type(feature), "model_fields", ())
    return "category" if "values" in keys else "hashed" if "hashed" in keys else "number"


Feature = Annotated[
    Annotated[NumberFeature, Tag("number")]
    | Annotated[CategoryFeature, Tag("category")]
    | Annotated[HashedFeature, Tag("hashed")],
    Discriminator(_kind),
]


class Encoder(RootModel[dict[str, Feature]]):
    """The features of customers or of products, in the order in which they were declared.

    Attributes
    ----------
    root
        The features by name.
    width
        How many numbers encode a customer or product; 0 without features.

    Examples
    --------
    >>> encoder = Encoder({"age": {"low": 0, "high": 100}, "country": {"values": ["at", "de"]}})
    >>> encoder.encode({"age": 75, "country": "de"})
    array([0.5, 0. , 1. ])
    """

    model_config = ConfigDict(frozen=True)
    root: dict[str, Feature] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _narrow(self) -> "Encoder":
        if self.width > MOST_NUMBERS:
            raise ValueError(
                f"all features together must take at most {MOST_NUMBERS} numbers, got {self.width}: list fewer "
                "values, or use a smaller `hashed`"
            )
        return self

    @cached_property
    def places(self) -> dict[str, slice]:
        """The place of each feature in the vector."""
        ends = list(accumulate((feature.width for feature in self.root.values()), initial=0))
        return {name: slice(*ends[i : i + 2]) for i, name in enumerate(self.root)}

    @cached_property
    def width(self) -> int:
        """How many numbers encode a customer or product."""
        return sum(feature.width for feature in self.root.values())

    def check(self, given: Mapping[str, Any] | None) -> dict[str, float | str]:
        """Return what is to be stored of the features given: without those that are None, which are not known.

        A feature that was not declared, or a value of the wrong type, raises a ValueError.
        """
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            raise ValueError(f"features must be given by name, such as {{'age': 30}}, got {shown(given)}")
        return {name: self._check(name, value) for name, value in given.items() if value is not None}

    def encode(self, given: Mapping[str, Any] | None) -> "Floats":
        """Return the features as a vector of `width` numbers; those that are missing are 0."""
        return self._vector(self.check(given))

    def encode_stored(self, stored: Mapping[str, Any] | None) -> "Floats":
        """Encode features that were stored, perhaps under an earlier schema: what no longer fits is missing."""
        fitting = {}
        for name, value in (stored or {}).items():
            if name in self.root and value is not None:
                with contextlib.suppress(ValueError):
                    fitting[name] = self._check(name, value)
        return self._vector(fitting)

    def _check(self, name: Any, value: Any) -> float | str:
        feature = self.root.get(name) if isinstance(name, str) else None
        if feature is None:
            declared = ", ".join(self.root) if self.root else "none"
            raise ValueError(f"there is no feature {shown(name)}; declared are: {declared}")
        return feature.check(name, value.item() if isinstance(value, np.generic) else value)

    def _vector(self, checked: Mapping[str, Any]) -> "Floats":
        vector = np.zeros(self.width)
        for name, value in checked.items():
            self.root[name].put(name, value, vector[self.places[name]])
        return vector
