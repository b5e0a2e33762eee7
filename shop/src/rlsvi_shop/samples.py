"""The newest samples of the posterior, as those who serve use them."""

import logging
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.files import PRIVATE, write_file
from rlsvi_shop.events import Event, Events
from rlsvi_shop.features import Encoder
from rlsvi_shop.model.draws import Draws, DrawsFileError, read_draws, with_products
from rlsvi_shop.model.regression import Sizes
from rlsvi_shop.settings import ShopSettings, schema

NONE = Encoder({})
log = logging.getLogger("rlsvi_shop")


class ServedDraws(NamedTuple):
    """The newest samples of the posterior, ready to serve.

    Attributes
    ----------
    draws
        The samples, and which products are offered now.
    names
        The products, in the order of the samples' numbers for them.
    place
        The number of each product.
    last
        The last event that the samples have learned from.
    at
        When they were drawn, in seconds since 1970.
    behind
        How long before that the first visit had ended that the samples before did not know, in seconds.
    """

    draws: Draws
    names: list[str]
    place: dict[str, int]
    last: int
    at: float
    behind: float = 0.0

    @property
    def drawn(self) -> bool:
        """Whether the learner has drawn them: see `first_samples`."""
        return self.at > 0.0 or self.last > 0

    def value_of(self, product: str) -> tuple[float | None, float | None]:
        """Return the value of a product and its spread, see `Draws`; None for both if it was added since then."""
        place = self.place.get(product)
        if place is None or np.isnan(self.draws.value[place]):
            return None, None
        return float(self.draws.value[place]), float(self.draws.spread[place])


def sample_of(
    draws: Draws, header: Mapping[str, Any], catalogue: Mapping[str, Event], features: Encoder = NONE
) -> ServedDraws:
    """Return samples and what they are of, ready to serve a catalogue of products with these features."""
    names, event, at, behind = (header.get(name) for name in ("products", "event", "at", "behind"))
    if not isinstance(names, list) or len(names) != len(draws.offered) or not all(type(n) is str for n in names):
        raise DrawsFileError("the file of samples does not name its products: let the learner write it anew")
    if type(event) is not int or not isinstance(at, int | float):
        raise DrawsFileError("the file of samples does not say when it was written: let the learner write it anew")
    place = {name: number for number, name in enumerate(names)}
    late = float(behind) if isinstance(behind, int | float) else 0.0  # earlier versions do not tell
    return with_catalogue(ServedDraws(draws, names, place, event, at, late), catalogue, features)


def first_samples(settings: ShopSettings, catalogue: Mapping[str, Event]) -> ServedDraws:
    """Return what serves until the learner has written its first samples: all products are equal."""
    sizes = Sizes(settings.slots, settings.customer.width, settings.product.width, settings.learning.history)
    S, N, empty = settings.learning.draws + 1, 0, np.zeros(0)
    draws = Draws(
        np.zeros((S, sizes.width, N)),
        np.zeros(sizes.slots + 1),
        np.zeros((N, sizes.product)),
        np.zeros(N, np.bool_),
        np.zeros(N, np.int64),
        empty,
        empty,
        np.zeros((S, sizes.shared)),
        np.array(sizes.customer),
    )
    return with_catalogue(ServedDraws(draws, [], {}, 0, 0.0), catalogue, settings.product)


def with_catalogue(sample: ServedDraws, catalogue: Mapping[str, Event], features: Encoder = NONE) -> ServedDraws:
    """Return the same samples for a catalogue that has changed. Of a new product, they know its features alone.

    All arrays are read-only, as those of a file are: others would need code that is compiled separately.
    """
    current = {product: event for product, event in catalogue.items() if event.kind == "added"}
    new, draws = [product for product in current if product not in sample.place], sample.draws
    if new:
        z = [features.encode_stored(current[product].features) for product in new]
        draws = with_products(draws, np.array(z).reshape(len(new), features.width))
    names = [*sample.names, *new]
    offered = np.array([name in current for name in names], dtype=np.bool_)
    place = {name: number for number, name in enumerate(names)}
    parts: list[Any] = [part.view() for part in draws._replace(offered=offered)]
    for part in parts:
        part.flags.writeable = False
    return sample._replace(draws=type(draws)(*parts), names=names, place=place)


class SampleFile:
    """The file in which the learner of a shop leaves its samples.

    `why` says why those in it cannot be used; it is empty as long as there are none.
    """

    def __init__(self, settings: ShopSettings, events: Events) -> None:
        self._settings, self._events, self._path = settings, events, settings.file("draws")
        self._version, self._fetched = (0, 0, 0), 0
        self.why = ""

    def newer(self) -> tuple[Draws, dict[str, Any]] | None:
        """Return the samples in the file if it was replaced since the last call and they fit, None otherwise.

        A damaged file is told once, until it is replaced.
        """
        if self._settings.share_draws and (newest := self._events.newest_draws(self._fetched)) is not None:
            number, body = newest  # the learner may be on another machine
            if not self._path.exists() or self._path.read_bytes() != body:  # others here may have copied them
                write_file(self._path, body, PRIVATE)
            self._fetched = number
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return None
        version = (found.st_ino, found.st_mtime_ns, found.st_size)
        if version == self._version:
            return None
        try:
            draws, header = read_draws(self._path)
        except DrawsFileError as error:
            self._version, self.why = version, "the file of samples is damaged: let the learner write it anew"
            log.warning("samples left out", extra={"why": str(error)})
            raise
        self._version = version
        if header.get("shop") != self._events.shop:
            self.why = "the samples belong to another database: the learner of this one must write its own"
        elif header.get("features") != schema(self._settings):
            self.why = (
                "the samples were drawn for other features of customers or products: start all processes with the "
                "same settings, and wait until the learner has learned all events anew"
            )
        else:
            return draws, header
        log.warning("samples left out", extra={"why": self.why})
        return None

    def again(self) -> None:
        """Let the next call return the samples in the file again: they could not be used."""
        self._version = (0, 0, 0)
