"""Counted numbers as zeros and ones."""

from itertools import accumulate

import numpy as np

from rlsvi.core.compile import Floats


def one_hot(whole: Floats, counts: list[int]) -> Floats:
    """(N, sum of counts): one 1 for the value of each number."""
    first = np.array([0, *accumulate(counts)][:-1])
    out = np.zeros((len(whole), sum(counts)))
    np.put_along_axis(out, whole.astype(np.int64) + first, 1.0, axis=1)
    return out


def joint_one_hot(whole: Floats, counts: list[int]) -> Floats:
    """(N, product of counts): one 1 for the values of all numbers together."""
    out = np.zeros((len(whole), int(np.prod(counts))))
    index = np.ravel_multi_index(tuple(whole.astype(np.int64).T), tuple(counts))
    out[np.arange(len(whole)), index] = 1.0
    return out
