"""A learning curve: as blocks in the terminal, and as a picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rlsvi.study.evaluation import Evaluation

BLOCKS = " ▁▂▃▄▅▆▇█"


def chart(returns: list[float], width: int = 60, height: int = 6, what: str = "return of episodes") -> str:
    """Returns as columns of blocks, from the first episode on the left; a column is the mean of its episodes."""
    parts = np.array_split(np.asarray(returns, dtype=np.float64), min(max(width, 1), len(returns)))
    means = np.array([part.mean() for part in parts])
    least, most = float(means.min()), float(means.max())
    levels = np.full(len(means), 4 * height) if most == least else (means - least) / (most - least) * height * 8
    eighths = np.maximum(np.round(levels).astype(int), 1)
    lines = []
    for row in range(height - 1, -1, -1):
        label = {height - 1: f"{most:.4g}", 0: f"{least:.4g}"}.get(row, "")
        blocks = "".join(BLOCKS[min(max(k - 8 * row, 0), 8)] for k in eighths)
        lines.append(f"{label:>9} ┤{blocks}")
    each = f", a column is the mean of about {len(returns) / len(means):.3g}" if len(returns) > width else ""
    return "\n".join([*lines, f"{'':9} └ {what} 1 to {len(returns)}{each}"])


def picture(returns: list[float], title: str, evaluation: "Evaluation | None", path: Path) -> None:
    """Every return, their running mean, and what the policy is worth in the end."""
    from matplotlib.figure import Figure

    from rlsvi.core.files import whole_file
    from rlsvi.study.plot import COLOURS, INK, styled

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = styled(figure.subplots())
    at, values = np.arange(1, len(returns) + 1), np.asarray(returns, dtype=np.float64)
    window = min(max(len(returns) // 10, 1), 20)
    dots: dict[str, Any] = {"color": COLOURS[0], "alpha": 0.5, "clip_on": False, "zorder": 3}
    axes.plot(at, values, ".", label="an episode of training", **dots)
    if window > 1:
        running = np.convolve(values, np.full(window, 1 / window), "valid")
        axes.plot(at[window - 1 :], running, color=COLOURS[0], linewidth=2.0, label=f"mean of the last {window}")
    if evaluation is not None:
        _, low, high = evaluation.interval
        label = f"posterior mean, {len(evaluation.returns)} fresh episodes: {evaluation.mean:.1f}"
        axes.axhline(evaluation.mean, color=COLOURS[1], linewidth=1.5, label=label)
        if np.isfinite(high - low):
            axes.axhspan(low, high, color=COLOURS[1], alpha=0.2, linewidth=0)
    axes.set_xlim(1, max(len(returns), 2))
    axes.set_xlabel("episode", color=INK)
    axes.set_ylabel("return", color=INK)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.legend(frameon=False, fontsize=9)
    with whole_file(path) as file:
        figure.savefig(file, dpi=150, format="png")
