"""How much memory a recommender takes, worked out before any of it is taken."""

from math import prod

SHARE = 10_000_000  # numbers to go through, on behalf of each customer, for new samples
RECENT = 200  # customers that the baseline is a mean of
AT_ONCE = 64  # customers who are open, without a context, that there is room for at least


def block_size(products: int, sketch: int | None) -> int:
    """Weights a product has: one for each other product and a constant, or fewer."""
    return products if sketch is None else sketch + 1


def shapes(products: int, slots: int, *, pooled: bool, sketch: int | None) -> dict[str, tuple[int, ...]]:
    """Of the arrays of numbers that the posterior and its sample are made of; `Mind` says what they are."""
    N, d, P = products, block_size(products, sketch), 1 if pooled else slots
    return {
        "U": (P, N, d, d),
        "inv": (P, N, d),
        "right": (P, N, d),
        "frozen": (P, N, d),
        "mass": (slots, N, d),
        "weight": (P, d, N),
        "bias": (P, N),
        "base": (slots + 1,),
    }


def fixed_bytes(products: int, slots: int, *, pooled: bool, sketch: int | None) -> int:
    """Bytes of all arrays but those of customers: the posterior, two samples, two rooms to work in, masks."""
    sizes = {name: prod(shape) for name, shape in shapes(products, slots, pooled=pooled, sketch=sketch).items()}
    two = sum(sizes[name] for name in ("weight", "bias", "base"))
    numbers = sum(sizes.values()) + two + 2 * (2 * products + block_size(products, sketch)) + slots + 1
    return 8 * numbers + (4 + 8 + 4 + 1 + 1 + 2) * products + 4 * RECENT * slots + 64


def visits_bytes(room: int, rows: int) -> int:
    """Bytes of the arrays of so many customers, and of so many products that they knew or were shown."""
    return 8 * (room + 1) + 4 * room + 12 * rows


def room_for(remember: int, products: int, slots: int) -> tuple[int, int]:
    """Customers and rows that there is room for once `remember` are there and had no context."""
    return remember + 1, max((remember + 1) * slots, products)


def bytes_needed(products: int, slots: int, *, pooled: bool, sketch: int | None, remember: int) -> int:
    """Bytes of all arrays while `remember` customers without a context are remembered and some are open.

    Room for those remembered is counted twice: where it grows, the old and the new are there at once.
    """
    room = 2 * visits_bytes(*room_for(remember, products, slots)) + AT_ONCE * visits_bytes(1, slots)
    return fixed_bytes(products, slots, pooled=pooled, sketch=sketch) + room


def checked_size(
    products: int, slots: int, *, pooled: bool, sketch: int | None, remember: int, memory: float
) -> None:
    """Refuse what does not fit in `memory` bytes, and say what would."""
    if slots > products:
        raise ValueError(f"slots must be at most products = {products}, got {slots}: no product is shown twice")
    need = bytes_needed(products, slots, pooled=pooled, sketch=sketch, remember=remember)
    if need <= memory:
        return
    ways = [(way, of) for way, of in _savings(products, slots, pooled, sketch, remember) if of <= memory]
    advice = " or ".join(f"{way} ({_gigabytes(of)})" for way, of in ways)
    raise ValueError(
        f"{products} products in {slots} slots need {_gigabytes(need)} in this form, more than memory = "
        f"{_gigabytes(memory)}: pass {advice or 'a smaller sketch, or remember fewer customers'}, or raise memory"
    )


def _savings(products: int, slots: int, pooled: bool, sketch: int | None, remember: int) -> list[tuple[str, int]]:
    """Ways to take less, the mildest first, with their bytes."""
    small = 64 if sketch is None else max(1, sketch // 2)
    ways: list[tuple[str, bool, int | None]] = [
        ("pooled=True", True, sketch),
        (f"sketch={small}", pooled, small),
        (f"pooled=True, sketch={small}", True, small),
    ]
    return [
        (way, bytes_needed(products, slots, pooled=one, sketch=width, remember=remember))
        for way, one, width in ways
        if (one, width) != (pooled, sketch)
    ]


def _gigabytes(amount: float) -> str:
    return f"{amount / 1e9:.3g} GB"


def numbers_of_a_sample(
    products: int, slots: int, *, pooled: bool, sketch: int | None, given: int, shown: int
) -> int:
    """About how many numbers a new sample goes through: the factors, and the values of all slots remembered.

    given, shown : products that the customers remembered knew before, and that they were shown. The values of a
    slot are those of the slot before and one answer more if pooled, else they are added up anew.
    """
    d, periods = block_size(products, sketch), 1 if pooled else slots
    answers = given + shown if pooled else slots * given + (slots + 1) * shown // 2
    return periods * products * d * d + answers * products
