"""A figure of a user, with a claim of its own, in a module that other processes can import."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Picture

from rlsvi.study.job import Job
from rlsvi.study.statistics import bootstrap, median
from rlsvi_paper.claim import at_most, claim
from rlsvi_paper.figure import Figure


def walked(*, length, seed):
    return {"steps": float(np.random.default_rng(seed).integers(length) + length)}


def jobs(seeds, lengths):
    return [Job.of(walked, length=length, seed=seed) for length in lengths for seed in range(seeds)]


@claim("A walk is short", "section 1")
def short(frame: pl.DataFrame):
    """The median is at most 100."""
    return at_most(bootstrap(median, frame["steps"].to_numpy()), 100.0, "few steps")


def draw(frame):
    picture = Picture()
    picture.subplots().plot(frame["length"], frame["steps"], ".")
    return picture


walks = Figure(
    name="walks",
    title="Walks of a user",
    where="section 1",
    caption="Every dot is a walk.",
    sizes={"quick": {"seeds": 6, "lengths": [2, 3]}},
    jobs=jobs,
    claims=[short],
    draw=draw,
)
taken = Figure(**{**vars(walks), "name": "dithering"})
odd = Figure(**{**vars(walks), "name": "a/b"})
