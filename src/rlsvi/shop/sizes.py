"""The sizes of a shop's model, and the memory that it needs, computed before any of it is allocated."""

from typing import NamedTuple

from rlsvi.core.checks import fits


class Sizes(NamedTuple):
    """The numbers that determine the shapes of all arrays.

    What is known when a slot is filled is described by `width` numbers, u = (1, c, history, h): the customer c,
    the answers of this visit by product, and h, the sum of answers times the features of the products answered.
    """

    slots: int  # J
    customer: int  # q, the numbers that describe a customer
    product: int  # m, the numbers that describe a product
    history: int  # D, the positions for answers

    @property
    def own(self) -> int:
        """d, the weights that every product has of its own: those of 1, c and the history."""
        return 1 + self.customer + self.history

    @property
    def width(self) -> int:
        """The length of u."""
        return self.own + self.product

    @property
    def crossed(self) -> int:
        """The length of g = (1, c, h), which is multiplied with the features of a product; 0 without features."""
        return 1 + self.customer + self.product if self.product else 0

    @property
    def shared(self) -> int:
        """k, the weights that all products share: one for each product of a feature and a number in g."""
        return self.product * self.crossed


def numbers_needed(sizes: Sizes, products: int, draws: int, visits: int) -> int:
    """Return how many numbers the learner keeps for `products` products and `visits` remembered visits."""
    d, e, chains = sizes.own, sizes.width, draws + 1
    posterior = products * (e * e + d * d + d * sizes.crossed + (sizes.slots + 2) * e)
    chain = products * chains * (2 * e + 3 * d) + 3 * sizes.shared * (sizes.shared + chains)
    return posterior + chain + visits * (sizes.customer + sizes.slots * (3 + chains) + 2)


def check_memory(sizes: Sizes, products: int, draws: int, visits: int) -> None:
    """Raise an error if the learner needs more memory than this machine has, before it is allocated."""
    fits(
        f"the posterior of {products} products with history = {sizes.history} and {visits} remembered visits",
        numbers_needed(sizes, products, draws, visits),
        "choose a smaller `history`, fewer `draws` or a smaller `remember` in [learning]",
    )
