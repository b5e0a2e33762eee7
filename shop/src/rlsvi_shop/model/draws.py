"""Samples of the posterior, how the next product of a visit is chosen with them, and the file that holds them."""

import hashlib
import json
import math
import mmap
import os
import zlib
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.archive import checked_target
from rlsvi.core.compile import Bools, Floats, Longs, compiled
from rlsvi.core.files import PRIVATE, whole_file
from rlsvi.core.regression import FactorError
from rlsvi_shop.model.regression import Sizes, first_weights
from rlsvi_shop.model.targets import add_answer, add_rows, largest, left_of, not_zero, scrambled, told, work_row


class Draws(NamedTuple):
    """What serving needs: the posterior mean, at index 0, and S samples of the posterior, for N products.

    The value of product a for a customer of whom u is known, see `Sizes`, is base_j + weight[s, :, a] . u.
    """

    weight: Floats  # (S + 1, e, N)
    base: Floats  # (J + 1,) expected reward from slot j on
    z: Floats  # (N, m) features of products
    offered: Bools  # (N,)
    shown: Longs  # (N,) how often each product was shown, in visits that have ended
    value: Floats  # (N,) posterior mean of the reward of a visit that begins with the product, see `values`
    spread: Floats  # (N,) the posterior standard deviation of the first recommendation alone, see `values`
    beta: Floats  # (S + 1, k) what products share by their features
    customer: Longs  # () q


class Choice(NamedTuple):
    """A product, its probability given the earlier choices of the visit, and whether the mean prefers another.

    `propensity` is None if it is not known. `explored` is None if the mean prefers no product to all others, as
    long as nothing is known of them. `agreeing` says how far each sample agrees with all choices of the visit.
    """

    product: int
    propensity: float | None
    explored: bool | None
    agreeing: list[float] | None


def with_products(draws: Draws, z: Floats) -> Draws:
    """Return the samples with products of features z (n, m) after the others: nothing else is known of these.

    Their value and its spread are nan: only a refresh computes them.
    """
    e = draws.weight.shape[1]
    q, (n, m) = int(draws.customer), z.shape
    new = first_weights(draws.beta, z, Sizes(0, q, m, e - 1 - q - told(m)))
    return draws._replace(
        weight=np.concatenate([draws.weight, new], axis=2),
        z=np.concatenate([draws.z, z]),
        offered=np.append(draws.offered, np.ones(n, np.bool_)),
        shown=np.append(draws.shown, np.zeros(n, np.int64)),
        value=np.append(draws.value, np.full(n, np.nan)),
        spread=np.append(draws.spread, np.full(n, np.nan)),
    )


def draw_of(visit: str, draws: Draws, seed: int) -> int:
    """Return which sample a visit uses, 1 .. S: the same for all its slots, another for other visits."""
    return 1 + order_of(visit, seed) % (len(draws.weight) - 1)


def order_of(visit: str, seed: int) -> int:
    """Return the number, of 64 bits, of the order in which a visit takes products that are equally good."""
    return int.from_bytes(hashlib.blake2b(f"{seed}:{visit}".encode(), digest_size=8).digest(), "little")


def choose(
    draws: Draws,
    draw: int,
    c: Any,
    known: Any,
    x: Any,
    allowed: Any = None,
    order: int = 0,
    slot: int = 0,
    agreeing: Any = None,
) -> Choice:
    """Return the product with the largest value under one of the samples, and how the others would choose.

    Parameters
    ----------
    draws
        The samples.
    draw
        Which of them chooses: 1 .. S, or 0 for the posterior mean.
    c
        The customer, (q,).
    known, x
        The products that the customer has answered in this visit, by index, and the answers, 1 or -1, in the order
        of their slots.
    allowed
        Which products may be shown, (N,): at least those already shown are not. None: all that are offered.
    order
        The random order of products, from `order_of`, that decides between those that are equally good.
    slot
        The slot that is filled, from 0.
    agreeing
        How far the samples agree with the earlier choices of this visit, (S,), from the choice before; None if it
        is the first one. Propensities are not known if these are other samples, in number or by their seed.
    """
    S = len(draws.weight)
    if not 0 <= draw < S:
        raise ValueError(f"draw must be one of 0..{S - 1}, got {draw}")
    best, chance, preferred = best_by_sample(draws, customer_row(draws, c, known, x, slot), allowed, order, draw)
    chosen, before = int(best[draw]), np.ones(S - 1) if agreeing is None else np.asarray(agreeing, np.float64)
    explored = bool(chosen != best[0]) if preferred == 1 else None
    if before.shape != (S - 1,) or not before[draw - 1] > 0:  # the sample that chooses agrees with itself
        return Choice(chosen, None, explored, None)
    propensity, after = conditional(before, chance[1:])
    return Choice(chosen, float(propensity), explored, after.tolist())


def conditional(before: Floats, chance: Floats) -> tuple[Any, Floats]:
    """Return the probability of a choice given the earlier ones, and how far each sample agrees with all of them.

    A visit draws one of S samples for all its slots. The probability that it is sample s, given what was shown, is
    in proportion to the product of the probabilities with which s chooses each of these products.

    Parameters
    ----------
    before
        These products for the earlier choices, (.., S), each divided by the largest of them.
    chance
        The probability with which each sample makes this choice, (.., S).
    """
    after = before * chance
    return after.sum(axis=-1) / before.sum(axis=-1), after / np.maximum(after.max(axis=-1, keepdims=True), 1e-300)


def customer_row(draws: Draws, c: Any, known: Any, x: Any, slot: int = 0) -> Floats:
    """Return u, see `Sizes`, of a customer and her answers; the arguments are those of `choose`."""
    _, e, N = draws.weight.shape
    q, m = int(draws.customer), draws.z.shape[1]
    customer = np.asarray(c, dtype=np.float64)
    answered, answers = np.asarray(known, dtype=np.int64), np.asarray(x, dtype=np.float64)
    if customer.shape != (q,) or not np.isfinite(customer).all():
        raise ValueError(f"c must be {q} finite numbers, got shape {customer.shape}")
    if answered.ndim != 1 or answers.shape != answered.shape or not (abs(answers) == 1.0).all():
        raise ValueError("known and x must be as many products as answers, each answer 1 or -1")
    if answered.size and not 0 <= answered.min() <= answered.max() < N:
        raise ValueError(f"known must be numbers of products, each of 0..{N - 1}")
    u = np.zeros(e)
    u[0], u[1 : 1 + q] = 1.0, customer
    D = e - 1 - q - told(m)
    if m:
        u[1 + q + D] = left_of(slot, draws.base.size - 1)
    add_answers(u, draws.z, answered, answers, q, D, *work_row(e)[1:])
    return u


def best_by_sample(
    draws: Draws, u: Floats, allowed: Any = None, order: int = 0, draw: int = 0
) -> tuple[Longs, Floats, int]:
    """Return the product that each sample chooses, (S + 1,), with which probability each of them chooses that of
    sample `draw`, (S + 1,), and how many products are the best of the mean.

    A sample to which n products are equally good chooses each of them with probability 1 / n.

    Parameters
    ----------
    u
        What is known, from `customer_row`.
    """
    S, e, N = draws.weight.shape
    mask = draws.offered if allowed is None else np.asarray(allowed, dtype=np.bool_)
    if mask.shape != (N,):
        raise ValueError(f"allowed must have shape ({N},), got {mask.shape}")
    mask = mask & draws.offered
    if not mask.any():
        raise LookupError("no product is left that may be shown")
    index, values, best, chance = np.empty(e, np.int64), np.empty(N), np.empty(S, np.int64), np.empty(S)
    preferred = best_products(draws.weight, u, mask, np.uint64(order), draw, index, values, best, chance)
    if not preferred:
        raise FactorError("a value is not finite: refresh the draws")
    return best, chance, preferred


@compiled
def add_answers(
    u: Floats, z: Floats, known: Longs, x: Floats, q: int, D: int, change: Floats, index: Longs
) -> None:
    """Add answers to what is known."""
    for i in range(known.size):
        add_answer(u, z, known[i], x[i], q, D, change, index)


@compiled
def best_products(
    weight: Floats,
    u: Floats,
    allowed: Bools,
    order: Any,
    draw: int,
    index: Longs,
    values: Floats,
    best: Longs,
    chance: Floats,
) -> int:
    """Set best[s] to the best allowed product under every sample s, and chance[s] to how likely it is best[draw].

    Returns how many products are the best of the mean, or 0 if values are not finite. Among products that are
    equally good, the one with the smallest random number of this order and sample is chosen, and all count alike.
    """
    N, S, count, preferred = values.size, weight.shape[0], not_zero(u, index), 0
    for i in range(S):
        s = (draw + i) % S  # `draw` is the first one
        for a in range(N):
            values[a] = 0.0 if allowed[a] else -np.inf
        add_rows(weight[s], u, index, count, 0, values)
        top = largest(values)
        if not abs(top) < np.inf:
            return 0
        key, equal = scrambled(order, s), 0
        least = key
        for a in range(N):
            if values[a] == top:
                number = scrambled(key, a)
                if equal == 0 or number < least:
                    best[s], least = a, number
                equal += 1
        chance[s] = 1.0 / equal if values[best[draw]] == top else 0.0
        if s == 0:
            preferred = equal
    return preferred


# ---- the file of samples, which serving processes map into memory -------------------------------------------
#
# It has two lines of text, a JSON header padded with spaces, and the arrays, each beginning at a multiple of 64
# bytes. The second line has the length of the header, and a checksum of this length and of all that follows: a
# changed bit is noticed wherever it is. The header lists the shape and place of every array. The file is written
# under another name and renamed, so that a reader finds the old file or the new one. Reading it runs no code.

MAGIC = b"rlsvi draws 4\n"
ALIGNED = 64
LENGTH, CHECKSUM = 16, 11  # characters of these numbers in the second line; the last one is its end
LONGEST_HEADER = 2**28
FLOATS = ("weight", "base", "z", "value", "spread", "beta")
TYPES = {name: "<f8" if name in FLOATS else "|b1" if name == "offered" else "<i8" for name in Draws._fields[:-1]}


class DrawsFileError(ValueError):
    """The file is not a complete file of draws of this version."""


class DrawsFile(NamedTuple):
    """The samples, mapped into memory and read-only, and what the file says about them."""

    draws: Draws
    header: dict[str, Any]


def write_draws(path: str | os.PathLike[str], draws: Draws, header: Mapping[str, Any]) -> None:
    """Write samples and what is known about them, a mapping that JSON can hold, completely or not at all.

    Nobody waits for the disk, on which the database has to be written at the same time: a file that is damaged
    because the machine died is noticed, and the learner writes it anew when it starts.
    """
    target = checked_target(path, "write")
    place, places, bodies = 0, {}, []
    for name, kind in TYPES.items():
        array = np.ascontiguousarray(getattr(draws, name), dtype=kind)
        places[name] = [list(array.shape), place]
        place += _padded(array.nbytes)
        bodies.append(array.tobytes().ljust(_padded(array.nbytes), b"\0"))
    plain = {"customer": int(draws.customer), "arrays": places, "about": dict(header)}
    text = json.dumps(plain, allow_nan=False).encode()
    start = len(MAGIC) + LENGTH + CHECKSUM
    parts = [text.ljust(_padded(start + len(text)) - start), *bodies]
    length = f"{len(text):>{LENGTH}}".encode()
    with whole_file(target, durable=False, mode=PRIVATE) as file:
        file.write(MAGIC + length + _checksum(length, *parts))
        for part in parts:
            file.write(part)


def read_draws(path: str | os.PathLike[str]) -> DrawsFile:
    """Map a file of samples into memory, after checking all of it."""
    try:
        with Path(path).open("rb") as file:
            return _read(file)
    except (DrawsFileError, json.JSONDecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DrawsFileError(
            f"{path} is not a complete file of draws: {error}; let the learner write it anew"
        ) from error


def _read(file: Any) -> DrawsFile:
    size = os.fstat(file.fileno()).st_size
    if file.read(len(MAGIC)) != MAGIC:
        raise DrawsFileError("it begins with other words")
    length, checksum = file.read(LENGTH), file.read(CHECKSUM)
    if not length.strip().isdigit() or not 0 < int(length) <= min(size, LONGEST_HEADER):
        raise DrawsFileError("the length of its header is wrong")
    mapped = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    if _checksum(length, mapped[file.tell() :].data) != checksum:
        raise DrawsFileError("its checksum is wrong")
    plain = json.loads(file.read(int(length)))
    draws = Draws(**_arrays(plain, mapped[_padded(file.tell()) :]), customer=np.array(plain["customer"]))
    _check(draws)
    return DrawsFile(draws, plain["about"])


def _arrays(plain: Any, body: Any) -> dict[str, Any]:
    """Return the arrays, after checking that they lie one after another, up to the end of the file."""
    if not isinstance(plain, dict) or not isinstance(plain.get("about"), dict):
        raise DrawsFileError("its header is not complete")
    entries, end, places = plain.get("arrays"), 0, {}
    if not isinstance(entries, dict) or list(entries) != list(TYPES) or type(plain.get("customer")) is not int:
        raise DrawsFileError("its header lists other arrays")
    for name, entry in entries.items():
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], list) or entry[1] != end:
            raise DrawsFileError(f"its header does not say where {name} is")
        shape = entry[0]
        if not all(type(n) is int and 0 <= n < 2**40 for n in shape) or len(shape) > 3:
            raise DrawsFileError(f"{name} cannot have shape {shape!r:.80}")
        size = math.prod(shape) * np.dtype(TYPES[name]).itemsize
        places[name] = slice(end, end + size), shape
        end += _padded(size)
    if end != len(body):
        raise DrawsFileError(f"it has {len(body)} bytes of arrays, expected {end}")
    return {name: body[place].view(TYPES[name]).reshape(shape) for name, (place, shape) in places.items()}


def _check(draws: Draws) -> None:
    """Check that shapes agree and numbers are finite: compiled code relies on it."""
    if draws.weight.ndim != 3 or draws.z.ndim != 2 or draws.base.ndim != 1:
        raise DrawsFileError("an array has the wrong number of dimensions")
    S, e, N = draws.weight.shape
    m = draws.z.shape[1]
    per_product = (draws.z[:, :0].sum(axis=1), draws.offered, draws.shown, draws.value, draws.spread)
    if (
        S < 1
        or not 0 <= draws.customer <= e - 2 - told(m)
        or draws.beta.shape != (S, m * (1 + draws.customer + told(m)))
        or any(part.shape != (N,) for part in per_product)
    ):
        raise DrawsFileError("the shapes of its arrays do not belong together")
    if (draws.offered.view(np.uint8) > 1).any():
        raise DrawsFileError("offered holds more than true and false")
    for name in FLOATS:
        if not np.isfinite(getattr(draws, name)).all():
            raise DrawsFileError(f"{name} holds numbers that are not finite")


def _checksum(*parts: Any) -> bytes:
    return f"{reduce(lambda found, part: zlib.crc32(part, found), parts, 0):>{CHECKSUM - 1}}\n".encode()


def _padded(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED
