"""How much memory a recommender takes, worked out before any of it is taken."""

from rlsvi.core.checks import whole

SHARE = 10_000_000  # numbers to go through, on behalf of each customer, for new samples


def block_size(products: int, sketch: int | None) -> int:
    """Weights a product has: one for each other product and a constant, or fewer."""
    return products if sketch is None else sketch + 1


def bytes_needed(products: int, slots: int, *, pooled: bool, sketch: int | None, remember: int) -> int:
    """Bytes of the factors, of the sample and its right side, and of the customers remembered."""
    d, periods = block_size(products, sketch), 1 if pooled else slots
    blocks = periods * products
    numbers = blocks * d * (d + 1) + 4 * blocks * d + blocks
    return 8 * numbers + remember * (24 + 14 * slots)


def checked_size(
    products: int, slots: int, *, pooled: bool, sketch: int | None, remember: int, memory: float
) -> None:
    """Refuse what does not fit in `memory` bytes, and say what would."""
    whole("products", products, 1)
    if whole("slots", slots, 1) > products:
        raise ValueError(f"slots must be at most products = {products}, got {slots}: no product is shown twice")
    if sketch is not None:
        whole("sketch", sketch, 1)
    whole("remember", remember, 1)
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


def numbers_of_a_sample(products: int, slots: int, *, pooled: bool, sketch: int | None, customers: int) -> int:
    """About how many numbers a new sample goes through: the factors, and the values of all slots remembered."""
    d, periods = block_size(products, sketch), 1 if pooled else slots
    answers = 1 if pooled else (slots + 1) // 2  # that are added up anew for each slot
    return periods * products * d * d + customers * slots * answers * products
