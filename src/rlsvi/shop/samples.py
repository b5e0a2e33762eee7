"""The newest samples of the posterior, as those who serve use them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.compile import Bools
from rlsvi.shop.event import Event
from rlsvi.shop.model.draws import Draws
from rlsvi.shop.model.draws_file import DrawsFileError, read_draws


class NotReady(RuntimeError):
    """There are no samples yet to recommend with."""


class ServedDraws(NamedTuple):
    """The newest samples of the posterior, ready to serve.

    Attributes
    ----------
    draws : the samples.
    names : the products, in the order of the samples' numbers for them.
    place : the number of each product.
    offered : which of them are offered now, (N,).
    catalogue : all products of the shop that are offered, also those too new for the samples.
    last : the last event that the samples have learned from.
    at : when they were drawn, in seconds since 1970.
    """

    draws: Draws
    names: list[str]
    place: dict[str, int]
    offered: Bools
    catalogue: frozenset[str]
    last: int
    at: float


def sample_of(draws: Draws, header: Mapping[str, Any], catalogue: Mapping[str, Event]) -> ServedDraws:
    """Return samples and what they are of, ready to serve a catalogue."""
    names, event, at = header.get("products"), header.get("event"), header.get("at")
    if not isinstance(names, list) or len(names) != len(draws.offered) or not all(type(n) is str for n in names):
        raise DrawsFileError("the file of samples does not name its products: let the learner write it anew")
    if type(event) is not int or not isinstance(at, int | float):
        raise DrawsFileError("the file of samples does not say when it was written: let the learner write it anew")
    place = {name: number for number, name in enumerate(names)}
    return with_catalogue(ServedDraws(draws, names, place, draws.offered, frozenset(), event, at), catalogue)


def with_catalogue(sample: ServedDraws, catalogue: Mapping[str, Event]) -> ServedDraws:
    """Return the same samples for a catalogue that has changed."""
    current = frozenset(product for product, event in catalogue.items() if event.kind == "added")
    offered = np.array([name in current for name in sample.names], dtype=np.bool_)
    return sample._replace(offered=offered & sample.draws.offered, catalogue=current)


class SampleFile:
    """The file in which a learner leaves its samples."""

    def __init__(self, path: Path) -> None:
        self._path, self._version = path, (0, 0, 0)

    def newer(self) -> tuple[Draws, dict[str, Any]] | None:
        """Return the samples in the file if it was replaced since the last call, None otherwise."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return None
        version = (found.st_ino, found.st_mtime_ns, found.st_size)
        if version == self._version:
            return None
        draws, header = read_draws(self._path)
        self._version = version
        return draws, header
