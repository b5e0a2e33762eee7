"""What is kept of every product, in arrays whose first axis are the products in the order of their numbers."""

from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.shop.model.sizes import Sizes


class ProductArrays(NamedTuple):
    """Sums over the rows u of a product, see `Sizes`, and factors of its posterior, see `regression`."""

    gram: Floats  # (N, e, e) sum of u u'
    frozen: Floats  # (N, e) sum of u times the target, of visits no longer remembered
    mass: Floats  # (N, J, e) sum of u for each slot, of the same visits
    z: Floats  # (N, m) features
    new_z: Floats  # (N, m) features from the next refresh on
    offered: Bools  # (N,)
    shown: Longs  # (N,) in visits that have ended
    answers: Longs  # (N,)
    dirty: Bools  # (N,) whether the factors are out of date
    L: Floats  # (N, d, d) Cholesky factors
    W: Floats  # (N, d, g)
    B: Floats  # (N, g, g)

    def part(self, products: int) -> "ProductArrays":
        """Return views of the first products."""
        return ProductArrays._make(array[:products] for array in self)

    def longer(self, products: int) -> "ProductArrays":
        """Return copies with room for more products."""
        longer = ProductArrays._make(np.zeros((products, *array.shape[1:]), array.dtype) for array in self)
        for to, of in zip(longer, self, strict=True):
            to[: len(of)] = of
        longer.dirty[len(self.dirty) :] = True
        return longer


FACTORS = ("dirty", "L", "W", "B")  # follow from the others


def no_products(sizes: Sizes) -> ProductArrays:
    """Return arrays of no product."""
    d, e, g, m = sizes.own, sizes.width, sizes.crossed, sizes.product
    shapes: dict[str, tuple[int, ...]] = {
        "gram": (e, e),
        "frozen": (e,),
        "mass": (sizes.slots, e),
        "z": (m,),
        "new_z": (m,),
        "L": (d, d),
        "W": (d, g),
        "B": (g, g),
    }
    kinds: dict[str, Any] = {"offered": np.bool_, "shown": np.int64, "answers": np.int64, "dirty": np.bool_}
    names = ProductArrays._fields
    return ProductArrays._make(np.zeros((0, *shapes.get(name, ())), kinds.get(name, np.float64)) for name in names)
