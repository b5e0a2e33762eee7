"""Small explicit random streams.

A stream is an array of four 64-bit words, the state of the SFC64 generator of Chris Doty-Humphrey
(PractRand). `stream(seed)` starts where `numpy.random.SFC64(seed)` starts; `uniform` returns the bits of
that generator's `random()`, and `normal` its `standard_normal()` up to the rounding of the tables, so that
NumPy is the test of this file.
The functions are compiled, need no objects, and are called by the fused loops and by Python alike.
"""

import math
from decimal import Decimal, localcontext

import numpy as np

from rlsvi.core.checks import shown
from rlsvi.core.compile import ONE, Bools, Floats, Longs, Words, compiled, unsigned
from rlsvi.core.elementary import exp, log

Seed = int | np.random.SeedSequence | None


def sequence(seed: Seed) -> np.random.SeedSequence:
    """Return `seed` as a SeedSequence; None draws fresh entropy."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
        raise ValueError(f"seed must be a non-negative integer, a SeedSequence or None, got {shown(seed)}")
    return np.random.SeedSequence(seed)


def stream(seed: Seed = None) -> Words:
    """Return a new stream; the same seed gives the same stream."""
    state = np.ones(4, dtype=np.uint64)
    state[:3] = sequence(seed).generate_state(3, np.uint64)
    for _ in range(12):
        bits(state)
    return state


@compiled
def bits(state: Words) -> np.uint64:
    """Return the next 64 random bits."""
    a, b, c, n = state[0], state[1], state[2], state[3]
    out = np.uint64(a + b + n)
    state[3] = n + np.uint64(1)
    state[0] = b ^ (b >> np.uint64(11))
    state[1] = c + (c << np.uint64(3))
    state[2] = ((c << np.uint64(24)) | (c >> np.uint64(40))) + out
    return out


@compiled
def reseed(state: Words, word: np.uint64) -> None:
    """Restart the stream from one 64-bit word (PractRand's own seeding)."""
    state[0] = state[1] = state[2] = word
    state[3] = np.uint64(1)
    for _ in range(12):
        bits(state)


@compiled
def copy(streams: Words, to: Words) -> None:
    """Copy several streams, (n, 4)."""
    for i in range(streams.shape[0]):
        for j in range(streams.shape[1]):
            to[i, j] = streams[i, j]


@compiled
def uniform(state: Words) -> float:
    """Return a uniform number in [0, 1), with 53 random bits."""
    return np.float64(bits(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


def _ziggurat() -> tuple[float, Longs, Floats, Floats]:
    """Return the 256 layers of Marsaglia and Tsang's ziggurat (2000), all with the same area.

    They are computed with 40 digits and then rounded, so that the tables are the same on every machine.
    """
    with localcontext() as context:
        context.prec = 40
        r = Decimal("3.65415288536100877164542972039951576297")
        area = Decimal("0.00492867323397465534736177540233602807")  # r exp(-r^2/2) and the tail beyond r
        x = [Decimal(0)] * 256
        x[255] = r
        for i in range(254, 0, -1):
            x[i] = (-2 * (area / x[i + 1] + (-(x[i + 1] ** 2) / 2).exp()).ln()).sqrt()
        base = area / (-r * r / 2).exp()
        scale = Decimal(2**52)
        accept = [int(r / base * scale), 0] + [int(x[i - 1] / x[i] * scale) for i in range(2, 256)]
        width = [float(base / scale)] + [float(x[i] / scale) for i in range(1, 256)]
        density = [float((-xi * xi / 2).exp()) for xi in x]
    return float(r), np.array(accept, dtype=np.int64), np.array(width), np.array(density)


_R, _ACCEPT, _WIDTH, _DENSITY = _ziggurat()


@compiled
def normal(state: Words) -> float:
    """Return a standard normal variate by the ziggurat method; one draw in 99% of cases."""
    while True:
        word = bits(state)
        layer = np.int64(word & np.uint64(0xFF))
        negative = (word >> np.uint64(8)) & np.uint64(1)
        distance = np.int64((word >> np.uint64(9)) & np.uint64(0x000FFFFFFFFFFFFF))
        x: float = distance * _WIDTH[layer]
        if negative != 0:
            x = -x
        if distance < _ACCEPT[layer]:
            return x
        if layer == 0:
            while True:
                xx = -log(1.0 - uniform(state)) / _R
                yy = -log(1.0 - uniform(state))
                if yy + yy > xx * xx:
                    return -(_R + xx) if (distance >> 8) & 1 else _R + xx
        edge: float = (_DENSITY[layer - 1] - _DENSITY[layer]) * uniform(state) + _DENSITY[layer]
        if edge < exp(-0.5 * x * x):
            return x


@compiled
def fill_normal(out: Floats, stream: Words) -> None:
    """Fill an array (n,) with standard normal variates."""
    for k in range(out.size):
        out[k] = normal(stream)


@compiled
def gamma(state: Words, shape: float) -> float:
    """Return a Gamma variate with scale 1, by Marsaglia and Tsang (2000); a shape below 1 through shape + 1."""
    whole = shape if shape >= 1.0 else shape + 1.0
    d = whole - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(state)
        root = 1.0 + c * x
        if root > 0.0:
            v = root * root * root
            u = 1.0 - uniform(state)
            if u < 1.0 - 0.0331 * (x * x) * (x * x):  # implies the next line, without logarithms
                break
            if log(u) < 0.5 * x * x + d * (1.0 - v + log(v)):
                break
    drawn: float = d * v
    return drawn if shape >= 1.0 else drawn * exp(log(1.0 - uniform(state)) / shape)


@compiled
def beta(state: Words, a: float, b: float) -> float:
    """Return a Beta(a, b) variate from two Gammas; shapes must be at least .1, or both Gammas might be 0."""
    x = gamma(state, a)
    return x / (x + gamma(state, b))


@compiled
def pick(state: Words, probabilities: Floats) -> int:
    """Return an index drawn with the given probabilities, always using one draw."""
    u = uniform(state)
    last = 0
    total = 0.0
    for i in range(probabilities.size):
        if probabilities[i] > 0.0:
            last = i
            total += probabilities[i]
            if u < total:
                return i
    return last


@compiled
def only_maximum(values: Floats, at: unsigned, allowed: Bools) -> int:
    """Return the index of the unique allowed maximum of `values[at:]`; -1 if not unique, or not all are finite.

    Values that are not allowed need not be finite. The first and the last are handled without a loop.
    """
    last = unsigned(allowed.size) - ONE
    head = values[at] if allowed[0] else -np.inf
    tail = values[at + last] if allowed[last] else -np.inf
    total = head + tail  # NaN if one of them is NaN
    best = head if head > tail else tail
    where = 0 if head > tail else (np.int64(last) if head < tail else -1)
    for i in range(ONE, last):
        value = values[at + i] if allowed[i] else -np.inf
        total += value
        where = np.int64(i) if value > best else (where if value < best else -1)
        best = value if value > best else best
    return where if total == total and abs(best) < np.inf else -1  # type: ignore[return-value]


@compiled
def argmax_set(values: Floats, allowed: Bools, probabilities: Floats) -> bool:
    """Distribute probability 1 evenly over the allowed maxima of `values`: a uniform tie-break.

    Returns False if no allowed value is finite, or one of them is NaN.
    """
    best = -np.inf
    for i in range(values.size):
        if allowed[i]:
            if values[i] != values[i]:
                return False
            best = max(best, values[i])
    if not abs(best) < np.inf:
        return False
    ties = 0
    for i in range(values.size):
        if allowed[i] and values[i] == best:
            ties += 1
    for i in range(values.size):
        probabilities[i] = 1.0 / ties if allowed[i] and values[i] == best else 0.0
    return True
