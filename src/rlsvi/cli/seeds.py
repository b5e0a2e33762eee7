"""The option `--seeds` of `rlsvi paper`, whose number may be left out: then as many are taken as decide."""

import re
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand

from rlsvi.paper import FIGURES

AUTO = "auto"


class SeedsWithoutNumber(TyperCommand):
    """A command whose option `--seeds` may stand without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of the command."""
        return super().parse_args(ctx, spelled_out(args))


def spelled_out(arguments: Sequence[str]) -> list[str]:
    """Write `--seeds auto` for `--seeds` before another option, before the name of a figure, or at the end."""
    found = []
    for i, argument in enumerate(arguments):
        found.append(argument)
        if argument == "--":
            return [*found, *arguments[i + 1 :]]
        following = arguments[i + 1] if i + 1 < len(arguments) else "--"
        number = re.fullmatch(r"-\d.*", following)  # a negative one, which is refused as such
        if argument == "--seeds" and not number and _is_no_number(following):
            found.append(AUTO)
    return found


def _is_no_number(word: str) -> bool:
    """Whether a word is another option or a figure: one of the paper's, or module:name."""
    return word.startswith("-") or word in FIGURES or ":" in word


def seeds_from(text: str) -> int | str:
    """The number of seeds, or "auto"."""
    if text == AUTO:
        return text
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise typer.BadParameter(f"{text!r} is neither a whole number of at least 1 nor {AUTO}.")
    return int(text)
