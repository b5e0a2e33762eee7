"""What happens in a shop, as rows of its table of events."""

from typing import Any, Literal, NamedTuple, get_args

Kind = Literal["added", "removed", "recommended", "answered", "closed"]
KINDS: tuple[str, ...] = get_args(Kind)


class Event(NamedTuple):
    """One event. Columns that a kind of event does not have are None, or "" for `visit` and `product`.

    Attributes
    ----------
    kind : "added" or "removed" (a product), "recommended", "answered" or "closed" (a visit).
    visit : the visit of a customer.
    product : the product.
    slot : recommended: the slot that the product fills, from 0.
    reward : answered: the reward.
    propensity : recommended: the share of posterior draws that choose this product here.
    explored : recommended: whether the posterior mean would have chosen another product.
    sample : recommended: the last event that the draws had learned from.
    features : added: the features of the product; recommended in slot 0: the context of the customer.
    at : seconds since 1970.
    id : the number of the event, in the order in which events were committed; 0 until then.
    among : recommended: the products that the request allowed; None: all that were offered.
    """

    kind: Kind
    visit: str = ""
    product: str = ""
    slot: int | None = None
    reward: float | None = None
    propensity: float | None = None
    explored: bool | None = None
    sample: int | None = None
    features: dict[str, Any] | None = None
    at: float = 0.0
    id: int = 0
    among: list[str] | None = None
