"""What a figure is made of."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from rlsvi.core.checks import hint, whole
from rlsvi.study.job import Job
from rlsvi_paper.claim import Claim, Outcome, Verdict, claims_in, varied

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

SCALES = ("quick", "paper")
FEWEST_SEEDS = 5  # seeds; a bootstrap of fewer runs gives intervals that are too short


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: what is computed for it, what the paper says about it, how it is drawn.

    Parameters
    ----------
    name
        What `rlsvi paper` calls it.
    title
        Its heading in the report.
    where
        Where it stands in the paper.
    caption
        What is drawn and how to read it.
    sizes
        For each scale the arguments of `jobs`, "seeds" among them.
    jobs
        The jobs of a size.
    claims
        Functions of the table of all results, declared by `claim`.
    draw
        The picture, from the same table.

    Examples
    --------
    >>> import rlsvi_paper
    >>> figure = rlsvi_paper.figure_called("chain-regret")
    >>> figure.where
    'section 6.1.1, figure 2'
    """

    name: str
    title: str
    where: str
    caption: str
    sizes: Mapping[str, Mapping[str, Any]]
    jobs: Callable[..., list[Job]]
    claims: Sequence[Claim]
    draw: Callable[[pl.DataFrame], "Picture"]

    @classmethod
    def of(
        cls,
        module: str,
        *,
        title: str,
        where: str,
        caption: str,
        quick: Mapping[str, Any],
        paper: Mapping[str, Any],
        claims: Sequence[Claim] | None = None,
    ) -> "Figure":
        """Make the figure of a file, named like it, of its functions `jobs` and `draw` and of its claims.

        Parameters
        ----------
        module
            The `__name__` of the file.
        title
            Its heading in the report.
        where
            Where it stands in the paper.
        caption
            What is drawn and how to read it.
        quick
            The arguments of `jobs` at a scale of seconds to a minute.
        paper
            The arguments of `jobs` at the paper's scale.
        claims
            By default, those that the file declares.

        Returns
        -------
        Figure
            The figure.
        """
        file, name = sys.modules[module], module.rpartition(".")[2].replace("_", "-")
        sizes, found = {"quick": quick, "paper": paper}, claims or claims_in(file)
        return cls(name, title, where, caption, sizes, file.jobs, found, file.draw)

    def plan(self, scale: str = "quick", seeds: int | None = None) -> list[Job]:
        """The jobs at a scale: "quick" (seconds to a minute) or "paper" (the paper's own sizes).

        Parameters
        ----------
        seeds
            Runs per setting; by default as the scale has it.
        """
        if scale not in SCALES:
            raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {scale!r}{hint(scale, SCALES)}")
        if scale not in self.sizes:
            raise ValueError(f"{self.name} has no sizes for the scale {scale!r}: it has {', '.join(self.sizes)}")
        size = dict(self.sizes[scale])
        if seeds is not None:
            size["seeds"] = whole("seeds", seeds, 1)
        return self.jobs(**size)

    def judge(self, frame: pl.DataFrame, scale: str = "paper") -> list[Verdict]:
        """The verdicts on all claims.

        Where an interval decides, it is inconclusive if seeds are too few for one, or if the claim was not
        reproduced in runs that are smaller than the paper's: larger ones might reproduce it.
        """
        rows = {claim.name: claim.rows(frame) for claim in self.claims}
        return [varied(partial(_judged, claim, rows[claim.name], scale)) for claim in self.claims]

    def seeds(self, frame: pl.DataFrame) -> int:
        """How many seeds the verdicts are made of; the least of all claims."""
        return min(claim.rows(frame)["seed"].n_unique() for claim in self.claims)


def _judged(claim: Claim, rows: pl.DataFrame, scale: str) -> Verdict:
    verdict = claim.judge(rows)
    small = scale != "paper" and verdict.outcome is Outcome.NOT_REPRODUCED
    if verdict.interval is not None and (small or rows["seed"].n_unique() < FEWEST_SEEDS):
        return verdict._replace(outcome=Outcome.INCONCLUSIVE)
    return verdict
