"""What a shop is asked, checked: as JSON in a body, or as arguments in Python."""

import re
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rlsvi.core.checks import shown

Name = Annotated[str, Field(strict=True, min_length=1, max_length=200, pattern=r"^(?:[^\p{C}\p{Z}]| )+$")]
Number = Annotated[int, Field(strict=True, gt=-(2**63), lt=2**63)]
Id = Name | Number
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


class ShopRequest(BaseModel):
    """A request to a shop."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

    @classmethod
    def of(cls, **arguments: Any) -> Self:
        """Return the request that arguments of Python make."""
        try:
            return cls(**arguments)
        except ValidationError as error:
            raise RequestError(mistakes(error)) from None

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Return the request that a JSON text makes."""
        try:
            return cls.model_validate_json(body)
        except ValidationError as error:
            kind = NotJSON if error.errors(include_input=False)[0]["type"] == "json_invalid" else RequestError
            raise kind(mistakes(error)) from None


class Recommend(ShopRequest):
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


class Feedback(ShopRequest):
    """Tells the reward of a product that was recommended."""

    visit: Id = Field(examples=["ann-17"])
    product: Id = Field(examples=["tea"])
    reward: Reward | bool = Field(description="A number; true is 1 and false is 0.", examples=[1.0])


class Close(ShopRequest):
    """Ends a visit."""

    visit: Id = Field(examples=["ann-17"])


class ProductRequest(ShopRequest):
    """A product and its features."""

    product: Id = Field(examples=["tea"])
    features: dict[str, Value] | None = Field(None, max_length=1000, examples=[{}])


class ProductsRequest(ShopRequest):
    """Products to offer."""

    products: list[ProductRequest] = Field(min_length=1, max_length=10_000)


def a_list(name: str, values: Any, of: str) -> list[Any]:
    """Return the values of an argument as a list, unless it is a text or nothing that has values."""
    try:
        if not isinstance(values, str | bytes):
            return list(values)
    except TypeError:
        pass
    raise RequestError(f"{name} must be a list of {of}, got {shown(values)}")


def an_instance(name: str, value: Any, kind: Any, example: str) -> None:
    """Raise an error unless an argument is of a class."""
    if not isinstance(value, kind):
        raise RequestError(f"{name} must be {example}, got {shown(value)}")


def mistakes(error: ValidationError) -> str:
    """Return what is wrong with a request, field by field, without repeating what was sent."""
    found: dict[str, str] = {}  # a value that fits no member of a union has several mistakes: one is enough
    for each in error.errors(include_url=False, include_input=False):
        depth = 2 if each["loc"][:1] in (("among",), ("context",), ("features",)) else 4
        field = ".".join(str(part) for part in each["loc"][:depth] if part not in KINDS) or "the request"
        word = WORDS.get(each["type"]) or re.sub(r"^\w+ should", "must", each["msg"])
        found.setdefault(field, SCALAR if "context." in field or "features." in field else word)
    return "; ".join(f"{field[:200]} {word[:200]}" for field, word in list(found.items())[:10])
