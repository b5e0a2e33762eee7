"""What a shop is asked, checked: names of products and visits, and requests, as JSON or as arguments in Python."""

import contextlib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rlsvi.core.checks import shown
from rlsvi_shop.features import Encoder

LONGEST_NAME = 200  # characters of a name
Name = Annotated[str, Field(strict=True, min_length=1, max_length=LONGEST_NAME, pattern=r"^(?:[^\p{C}\p{Z}]| )+$")]
Number = Annotated[int, Field(strict=True, gt=-(2**63), lt=2**63)]
Id = Name | Number
Ids = Literal["string", "integer"]
Value = str | int | float | bool | None
Reward = Annotated[float, Field(strict=True, ge=-1e12, le=1e12, allow_inf_nan=False)]
KINDS = ("float", "bool", "int", "str", "constrained-str", "constrained-int", "constrained-float")
SCALAR = "must be a text, a number, true or false"
WORDS = {
    "missing": "is missing",
    "string_type": "must be a text or a whole number of 64 bits",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "int_type": "must be a whole number",
    "model_type": "must be an object",
    "extra_forbidden": "is not known",
    "string_pattern_mismatch": "must not have control characters, line breaks or special spaces",
    "json_invalid": "is not valid JSON",
}


class RequestError(ValueError):
    """A request that is not what it should be."""


class NotJSON(RequestError):
    """A body that is not JSON."""


class NotFound(LookupError):
    """A request about a visit or product that there is not."""


class Conflict(ValueError):
    """A request that contradicts what happened before."""


class NotReady(RuntimeError):
    """The shop is not ready: it has no samples to recommend with, or its learner fails."""


class ShopRequest(BaseModel):
    """A request to a shop."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

    @classmethod
    def of(cls, **arguments: Any) -> Self:
        """Return the request that arguments of Python make, in which numbers may be NumPy's."""
        try:
            return cls(**{name: plain(value) for name, value in arguments.items()})
        except ValidationError as error:
            raise RequestError(_explanation(error)) from None

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Return the request that a JSON text makes."""
        try:
            return cls.model_validate_json(body)
        except ValidationError as error:
            kind = NotJSON if error.errors(include_input=False)[0]["type"] == "json_invalid" else RequestError
            raise kind(_explanation(error)) from None


class VisitRequest(ShopRequest):
    """A request that belongs to a visit."""

    visit: Id = Field(examples=["ann-17"])


class Recommend(VisitRequest):
    """Asks for products for the next slots of a visit."""

    visit: Id = Field(description="The visit of a customer. An unknown one is opened.", examples=["ann-17"])
    context: dict[str, Value] | None = Field(
        None, max_length=1000, description="What is known of the customer; with the first slot.", examples=[{}]
    )
    among: list[Id] | None = Field(
        None, min_length=1, max_length=100_000, description="The products to choose from; all, if it is left out."
    )
    count: int | None = Field(None, ge=1, le=1000, description="How many products; 1 if it is left out.")
    slot: int | None = Field(
        None, ge=0, le=1000, description="The slot to fill, from 0. One that is filled is returned as it was."
    )


class Feedback(VisitRequest):
    """Tells the reward of a product that was recommended."""

    product: Id = Field(examples=["tea"])
    reward: Reward | bool | None = Field(
        description="A number; true is 1 and false is 0. null, with `correct`, withdraws what was told.",
        examples=[1.0],
    )
    correct: bool = Field(False, description="Whether it replaces the reward that was told before.")


class Close(VisitRequest):
    """Ends a visit."""


class ProductRequest(ShopRequest):
    """A product and its features."""

    product: Id = Field(examples=["tea"])
    features: dict[str, Value] | None = Field(None, max_length=1000, examples=[{}])


class ProductsRequest(ShopRequest):
    """Products to offer."""

    products: list[ProductRequest] = Field(min_length=1, max_length=10_000)


def _explanation(error: ValidationError) -> str:
    """Return what is wrong with a request, field by field, without repeating what was sent."""
    found: dict[str, str] = {}  # a value that fits no member of a union has several errors: one is enough
    for each in error.errors(include_url=False, include_input=False):
        depth = 2 if each["loc"][:1] in (("among",), ("context",), ("features",)) else 4
        field = ".".join(str(part) for part in each["loc"][:depth] if part not in KINDS) or "the request"
        word = WORDS.get(each["type"]) or re.sub(r"^\w+ should", "must", each["msg"])
        found.setdefault(field, SCALAR if "context." in field or "features." in field else word)
    return "; ".join(f"{field[:200]} {word[:200]}" for field, word in list(found.items())[:10])


# ---- names of products and visits: strings or integers outside, text in the database ------------------------


def text_of(what: str, name: Any, ids: Ids) -> str:
    """Return the text that the database holds for the name of `what`, a product or visit."""
    if ids == "integer":
        if isinstance(name, bool) or not isinstance(name, int | np.integer) or not -(2**63) <= name < 2**63:
            raise RequestError(f"{what} must be an integer of 64 bits, since ids = 'integer', got {shown(name)}")
        return str(int(name))
    if not isinstance(name, str):
        raise RequestError(f"{what} must be a string, since ids = 'string', got {shown(name)}")
    if not 0 < len(name) <= LONGEST_NAME:
        raise RequestError(f"{what} must have 1 to {LONGEST_NAME} characters, got {len(name)}")
    if not name.isprintable():
        raise RequestError(
            f"{what} must not have control characters, line breaks or special spaces, got {shown(name)}"
        )
    return str(name)


def name_of(text: str, ids: Ids, what: str | None = None) -> str | int:
    """Return the name of a product or visit that a text of the database stands for.

    Parameters
    ----------
    what
        None, or what a request names by the text, in its path. An integer must be written as Python
        writes it: 1_0, 010 and the digits of other scripts are refused.
    """
    if ids == "string":
        return text
    with contextlib.suppress(ValueError):
        if str(number := int(text)) == text:
            return number
    if what is None:
        raise RequestError(f"the database has the name {shown(text)}, which is no integer: set ids = 'string'")
    raise RequestError(
        f"{what} must be an integer in plain digits, such as 10, since ids = 'integer', got {shown(text)}"
    )


def check_names(products: Iterable[str], ids: Ids) -> None:
    """Raise an error if the database has products, given as texts, that the setting `ids` cannot name."""
    for text in products:
        name_of(text, ids)


# ---- other arguments ----------------------------------------------------------------------------------------


def check_features(field: str, encoder: Encoder, features: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return features as they are stored."""
    try:
        return dict(encoder.check(features))
    except ValueError as error:
        raise RequestError(f"{field}: {error}") from None


def list_of(name: str, values: Any, what: str) -> list[Any]:
    """Return the values of an argument as a list, unless it is a text or nothing that has values."""
    with contextlib.suppress(TypeError):
        if not isinstance(values, str | bytes):
            return list(values)
    raise RequestError(f"{name} must be a list of {what}, got {shown(values)}")


def check_type(name: str, value: Any, kind: Any, example: str) -> None:
    """Raise an error unless an argument is of a class."""
    if not isinstance(value, kind):
        raise RequestError(f"{name} must be {example}, got {shown(value)}")


def plain(value: Any) -> Any:
    """Return a value, or the values of a list or mapping, with numbers of Python instead of NumPy's."""
    if isinstance(value, Mapping):
        return {name: each.item() if isinstance(each, np.generic) else each for name, each in value.items()}
    if isinstance(value, list):
        return [each.item() if isinstance(each, np.generic) else each for each in value]
    return value.item() if isinstance(value, np.generic) else value
