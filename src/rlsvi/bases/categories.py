"""Categories: the values of texts and of identifiers, numbered in the order in which they appear.

A text has no number of values that is known in advance, and a Discrete number may have millions. The first values
that appear have a category each, up to `MOST_CATEGORIES`; category 0 is for all others, and for those not yet
learned from. Features have room for 2, 4, 8, .. categories, so that they change a few times only.
"""

from copy import copy
from typing import Self

import numpy as np

from rlsvi.bases.layout import CODES, Layout
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.compile import Floats

MOST_CATEGORIES = 255  # categories of a number, without the one for all others


class Categories:
    """The values of each open number of a layout that have a category of their own.

    If the discrete numbers have more than `indicators` indicators, those with more than MOST_CATEGORIES + 1 values
    are open; the codes of texts always are. A number has at most `most` categories, besides that for all others.
    """

    def __init__(self, layout: Layout, indicators: int, most: int = MOST_CATEGORIES) -> None:
        self.most = most
        many = sum(layout.counts) > indicators
        self.first, self._counts = layout.measured, layout.counts
        open_ = [j for j, n in enumerate(layout.counts) if n == CODES or (many and n > MOST_CATEGORIES + 1)]
        self.values: dict[int, Floats] = {j: np.zeros(0) for j in open_}  # in the order of appearance

    @property
    def counts(self) -> list[int]:
        """The number of values of each discrete number, after numbering: of categories a power of 2."""
        room = {j: 1 << max(1, len(known).bit_length()) for j, known in self.values.items()}  # one for all others
        return [room.get(j, n) for j, n in enumerate(self._counts)]

    def numbered(self, x: Floats) -> Floats:
        """Return rows (N, n) in which the values of open numbers are replaced by their categories."""
        if not self.values:
            return x
        x = x.copy()
        for j, known in self.values.items():
            column, order = x[:, self.first + j], np.argsort(known)
            at = order[np.minimum(np.searchsorted(known[order], column), len(known) - 1)] if len(known) else None
            x[:, self.first + j] = 0 if at is None else np.where(known[at] == column, at + 1, 0)
        return x

    def extended(self, x: Floats) -> Self:
        """Return categories that include the values of these rows, as far as there is room."""
        later = copy(self)
        later.values = {}
        for j, known in self.values.items():
            found, where = np.unique(x[:, self.first + j], return_index=True)
            new = found[np.argsort(where)]
            later.values[j] = np.concatenate([known, new[~np.isin(new, known)]])[: self.most]
        return later

    def state(self) -> dict[str, Floats]:
        """Return the arrays that a file must contain, and that a policy is exported with."""
        return {f"category_{j}": known for j, known in self.values.items()}

    def read(self, file: Archive) -> Self:
        """Return the categories of a file, checked."""
        later = copy(self)
        later.values = {}
        for j in self.values:
            known = file.take(f"category_{j}", file.shape(f"category_{j}", 1))
            apart = len(np.unique(known)) == len(known) <= MOST_CATEGORIES
            if not apart or not ((known >= 0) & (known < self._counts[j]) & (known == np.floor(known))).all():
                raise ArchiveError("is damaged: its categories make no sense")
            later.values[j] = known
        return later
