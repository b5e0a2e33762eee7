"""The basis of section 6.3: phi_m(x, a) = 1{a = m} and phi_mn(x, a) = x_n 1{a = m}, one block per product.

These are K = N^2 + N functions. Only those of product a are nonzero, which gives N + 1 numbers per block. One of
these is always zero, since x_a = 0 while a is new and legal. Its position holds the constant, so that a block has
N numbers, and the value, prior and posterior of legal actions are those of the paper's basis.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rlsvi.bases.basis import Features, from_table
from rlsvi.core.archive import storable
from rlsvi.core.checks import shown
from rlsvi.core.compile import Floats, Ints
from rlsvi.mdp.recommendation import count_histories, histories


@storable
@dataclass(frozen=True)
class Recommendation:
    """One block of N weights per product, for histories or their numbers in the table of `mdp.recommendation`.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> env = gymnasium.make("rlsvi/Recommendation-v0", products=4, slots=2)
    >>> rlsvi.RLSVI(basis=rlsvi.bases.Recommendation(), seed=0).learn(env, 20).episodes
    20
    """

    def bind(self, states: int | None, actions: int, horizon: int, example: Any) -> Features:
        """Return features with one block per product."""
        block = np.arange(actions, dtype=np.int32)
        if states is not None:
            if horizon > actions or states != count_histories(actions, horizon) + 1:
                raise ValueError(
                    f"the recommendation basis needs the states of mdp.recommendation({actions}, {horizon}), or "
                    f"histories as observations, not {states} states"
                )
            return _tabled(actions, horizon)
        _history(example, actions)

        def at(h: int, observation: Any) -> tuple[Ints, Floats]:
            phi = np.tile(_history(observation, actions), (actions, 1))
            phi[block, block] = 1.0
            return block, phi

        return Features(actions, actions, at, None)


@lru_cache(maxsize=2)
def _tabled(products: int, slots: int) -> Features:
    """Return features of all histories that can be numbered; they are the same for every agent and cached."""
    block = np.arange(products, dtype=np.int32)
    x = np.vstack([histories(products, slots), np.zeros((1, products), dtype=np.int8)])
    phi = np.repeat(x[:, None, :].astype(np.float64), products, axis=1)
    phi[:, block, block] = 1.0
    return from_table(phi[None], np.tile(block, (len(x), 1)), products, "Recommendation")


def _history(observation: Any, products: int) -> Floats:
    x = np.asarray(observation)
    if x.shape != (products,) or x.dtype.kind not in "if" or not np.isin(x, (-1, 0, 1)).all():
        raise ValueError(
            f"the recommendation basis needs a history of {products} numbers -1, 0 or 1, one a product, "
            f"got {shown(observation)}"
        )
    return x.astype(np.float64)
