"""The readings of Q in Tetris, and verdicts that show all of them.

The paper prints Q = theta . phi, calls every feature a whole number, and found a discount of .99 helpful. It
does not say when phi looks at the board: here after the placement and the removal of full rows, which hides the
rows removed. This reading changes nothing in the text, and is the one that is judged. Two others discount less.
The last adds the reward at hand, Q = r + gamma theta . phi, with features divided by the height of the board.
"""

from collections.abc import Callable, Iterable
from typing import Any

from rlsvi.paper.claim import Outcome, Row, Verdict

LITERAL: dict[str, Any] = {"form": "literal", "units": "raw"}
PRINTED, PATIENT, ENDLESS = "as printed, γ = .99", "literal, γ = .999", "literal, γ = 1"
AFTERSTATE = "afterstate, γ = .99"
READINGS: dict[str, dict[str, Any]] = {
    PRINTED: {**LITERAL, "gamma": 0.99},
    PATIENT: {**LITERAL, "gamma": 0.999},
    ENDLESS: {**LITERAL, "gamma": 1.0},
    AFTERSTATE: {"form": "afterstate", "units": "scaled", "gamma": 0.99},
}
MET = {Outcome.REPRODUCED: "yes", Outcome.NOT_REPRODUCED: "no", Outcome.INCONCLUSIVE: "open"}


def in_each_reading(
    headings: Row,
    judge: Callable[[str], tuple[Verdict, Row]],
    readings: Iterable[str] = READINGS,
    remarks: Iterable[Row] = (),
) -> Verdict:
    """The verdict in the reading that is printed, and a table of all with whether they meet the criterion.

    judge : for the name of a reading, its verdict and its row under `headings`.
    """
    found = {name: judge(name) for name in readings}
    rows = [(name, *row, MET[verdict.outcome]) for name, (verdict, row) in found.items()]
    return found[PRINTED][0]._replace(table=(("reading", *headings, "met"), *rows, *remarks))
