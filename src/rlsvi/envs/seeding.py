"""How an environment seeds the stream it draws from, so that compiled loops can draw the same numbers."""

import gymnasium
import numpy as np

from rlsvi.core.compile import Words
from rlsvi.core.random import reseed


def unseeded() -> Words:
    """A stream that no seed has started yet: all zero, which no seed gives."""
    return np.zeros(4, dtype=np.uint64)


def seed_stream(env: gymnasium.Env[object, object], stream: Words, seed: int | None) -> None:
    """Start the stream from the seed of `reset`; without one, go on, or start from the environment's generator."""
    if seed is not None and seed >= 2**64:
        raise ValueError(f"seed must be below 2**64, got {seed}")
    if seed is not None or not stream.any():
        word = int(env.np_random.integers(2**63)) if seed is None else seed
        reseed(stream, np.uint64(word))
