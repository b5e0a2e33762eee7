"""Mistakes in settings, told in plain English: the setting, its value and the remedy."""

from typing import Any

from pydantic import BaseModel, ValidationError

from rlsvi.core.checks import instead, shown

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
SECTION = "must be a table of settings, such as {example}"
FEATURE = "{ low = 0, high = 100 }, { values = ['a', 'b'] } or { hashed = 16 }"
KINDS = ("number", "category", "hashed")


def explained(error: ValidationError, model: type[BaseModel]) -> str:
    """Return every mistake in a line that names the setting, its value and the remedy."""
    lines: dict[
        str, str
    ] = {}  # a value that fits no member of a union has several mistakes: the first one is enough
    for mistake in error.errors(include_url=False):
        keys = _keys(mistake["loc"])
        lines.setdefault(".".join(keys), _line(keys, mistake, model))
    return "\n".join(lines.values())


def _keys(place: tuple[str | int, ...]) -> list[str]:
    """Return the names that lead to a setting, without the kind of feature, which nobody wrote."""
    if place[0] in ("customer", "product"):
        place = place[:2] + (place[3:4] if len(place) > 2 and place[2] in KINDS else place[2:3])
    return [str(part) for part in place]


def _line(keys: list[str], mistake: Any, model: Any) -> str:
    name, kind, value = ".".join(keys), mistake["type"], mistake["input"]
    feature = keys[0] in ("customer", "product") and len(keys) > 1
    if kind == "extra_forbidden":
        return f"there is no setting {name}: {_instead(keys, model)}"
    if kind == "missing":
        return f"{name} is missing: a feature is one of {FEATURE}"
    if kind == "value_error":
        reason = str(mistake["ctx"]["error"])
        return reason if reason.startswith(keys[-1]) and len(keys) == 1 else f"{name}: {reason}"
    if kind in ("model_type", "dict_type"):
        example = FEATURE if feature else "[" + keys[0] + "]"
        return f"{name} {SECTION.format(example=example)}, got {shown(value)}"
    wanted = EXPECTED.get(kind)
    reason = wanted.format(**mistake.get("ctx", {})) if wanted else mistake["msg"].replace("Input should", "must")
    return f"{name} {reason}, got {shown(value)}"


def _instead(keys: list[str], model: Any) -> str:
    """Return which settings there are where an unknown one was found."""
    if keys[0] in ("customer", "product"):
        return f"a feature is one of {FEATURE}"
    names = list((model.model_fields[keys[0]].annotation if len(keys) > 1 else model).model_fields)
    return instead(keys[-1], names)
