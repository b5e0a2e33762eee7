"""The memory that a recommender needs, computed before any of it is allocated."""

from math import prod
from typing import NamedTuple

SHARE = 10_000_000  # numbers to process per customer for new samples
RECENT = 200  # number of customers that the baseline averages over
AT_ONCE = 64  # minimum number of open customers without a context that there is room for


class Form(NamedTuple):
    """The arguments of a recommender that determine the sizes of its arrays."""

    products: int
    slots: int
    pooled: bool
    sketch: int | None

    @property
    def width(self) -> int:
        """d, the number of weights of a product: one per other product and a constant, or fewer with a sketch."""
        return self.products if self.sketch is None else self.sketch + 1

    @property
    def periods(self) -> int:
        """P, the number of regressions of a product."""
        return 1 if self.pooled else self.slots


def shapes(form: Form) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of the posterior and its sample; see `Mind`."""
    N, d, P = form.products, form.width, form.periods
    return {
        "U": (P, N, d, d),
        "inv": (P, N, d),
        "right": (P, N, d),
        "frozen": (P, N, d),
        "mass": (form.slots, N, d),
        "weight": (P, d, N),
        "bias": (P, N),
        "base": (form.slots + 1,),
    }


def fixed_bytes(form: Form) -> int:
    """Return the bytes of all arrays except customers: posterior, two samples, two sets of work arrays, masks."""
    N, J, sizes = form.products, form.slots, {name: prod(shape) for name, shape in shapes(form).items()}
    two = sum(sizes[name] for name in ("weight", "bias", "base"))
    numbers = sum(sizes.values()) + two + 2 * (2 * N + form.width) + J + 1
    return 8 * numbers + (4 + 8 + 4 + 1 + 1 + 2) * N + 4 * RECENT * J + 64


def visits_bytes(room: int, rows: int) -> int:
    """Return the bytes of the arrays for `room` customers with `rows` products known or shown in total."""
    return 8 * (room + 1) + 4 * room + 12 * rows


def room_for(remember: int, products: int, slots: int) -> tuple[int, int]:
    """Return the numbers of customers and rows to allocate for `remember` customers without contexts."""
    return remember + 1, max((remember + 1) * slots, products)


def bytes_needed(form: Form, remember: int) -> int:
    """Return the bytes of all arrays when `remember` customers without a context are remembered and some are open.

    Room for the customers remembered counts twice, because the old and the new arrays coexist when it grows.
    """
    room = 2 * visits_bytes(*room_for(remember, form.products, form.slots))
    return fixed_bytes(form) + room + AT_ONCE * visits_bytes(1, form.slots)


def check_size(form: Form, remember: int, memory: float) -> None:
    """Raise an error if the arrays do not fit in `memory` bytes, and suggest what would."""
    products, slots = form.products, form.slots
    if slots > products:
        raise ValueError(f"slots must be at most products = {products}, got {slots}: no product is shown twice")
    need = bytes_needed(form, remember)
    if need <= memory:
        return
    ways = [(way, of) for way, of in _savings(form, remember) if of <= memory]
    advice = " or ".join(f"{way} ({_gigabytes(of)})" for way, of in ways)
    raise ValueError(
        f"{products} products in {slots} slots need {_gigabytes(need)} in this form, more than memory = "
        f"{_gigabytes(memory)}: pass {advice or 'a smaller sketch, or remember fewer customers'}, or raise memory"
    )


def _savings(form: Form, remember: int) -> list[tuple[str, int]]:
    """Return ways to use less memory with their bytes, beginning with the mildest."""
    small = 64 if form.sketch is None else max(1, form.sketch // 2)
    ways = {
        "pooled=True": form._replace(pooled=True),
        f"sketch={small}": form._replace(sketch=small),
        f"pooled=True, sketch={small}": form._replace(pooled=True, sketch=small),
    }
    return [(way, bytes_needed(other, remember)) for way, other in ways.items() if other != form]


def _gigabytes(amount: float) -> str:
    return f"{amount / 1e9:.3g} GB"


def numbers_of_a_sample(form: Form, given: int, shown: int) -> int:
    """Estimate how many numbers a new sample processes: the factors and the values of all slots remembered.

    given, shown : number of products that remembered customers knew before and were shown. If pooled,
    the values of a slot are those of the slot before plus one answer; otherwise they are summed anew.
    """
    N, J = form.products, form.slots
    answers = given + shown if form.pooled else J * given + (J + 1) * shown // 2
    return form.periods * N * form.width**2 + answers * N
