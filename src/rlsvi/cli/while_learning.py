"""What `rlsvi train` does while an agent learns: evaluate it, save it and write logs."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rlsvi.callbacks import Callback
    from rlsvi.envs.making import Made

_option = partial(typer.Option, rich_help_panel="While learning")
EvaluateEvery = Annotated[
    int | None,
    _option("--evaluate-every", min=1, metavar="N", help="Play 20 fresh episodes after every N episodes."),
]
KeepBest = Annotated[
    Path | None,
    _option("--keep-best", metavar="FILE", help="Save the agent with the best of these evaluations here."),
]
CheckpointEvery = Annotated[
    int | None,
    _option("--checkpoint-every", min=1, metavar="N", help="Save the agent to --out after every N episodes."),
]
CsvFile = Annotated[
    Path | None, _option("--csv", metavar="FILE", help="Write a line for every episode to this CSV file.")
]
TensorBoardFolder = Annotated[
    Path | None, _option("--tensorboard", metavar="FOLDER", help="Write curves for TensorBoard to this folder.")
]


def callbacks(
    made: "Made",
    out: Path,
    evaluate_every: int | None,
    keep_best: Path | None,
    checkpoint_every: int | None,
    csv: Path | None,
    tensorboard: Path | None,
) -> tuple[list["Callback"], list[dict[str, float]]]:
    """The callbacks that the options ask for, in their order, and where the evaluations will be listed."""
    from rlsvi.callbacks import CSV, Callback, Checkpoint, Evaluate, TensorBoard

    class KnowsItsEnvironment(Callback):
        """Checkpoints name the environment as the user does, with its module."""

        def begin(self, agent: Any, env: Any) -> None:
            agent.environment = made

    found: list[Callback] = [KnowsItsEnvironment()]
    results: list[dict[str, float]] = []
    if keep_best == out:
        raise ValueError(f"--keep-best and --out are both {out}: name two files")
    if evaluate_every is not None:
        evaluation = Evaluate(evaluate_every, keep_best=keep_best)
        results = evaluation.results
        found.append(evaluation)
    elif keep_best is not None:
        raise ValueError("--keep-best needs evaluations to choose by: give --evaluate-every too")
    if csv is not None:
        found.append(CSV(csv))
    if tensorboard is not None:
        found.append(TensorBoard(tensorboard))
    if checkpoint_every is not None:
        found.append(Checkpoint(checkpoint_every, out))
    return found, results
