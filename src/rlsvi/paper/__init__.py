"""The paper's experiments: one folder per topic, one file per figure with its settings, claims and plot."""

from importlib import import_module
from typing import TYPE_CHECKING

from rlsvi.core.checks import instead, shown

if TYPE_CHECKING:
    from rlsvi.paper.figure import Figure

TOPICS = {
    "chain": {
        "dithering": "how long dithering takes to the first reward (Example 1)",
        "chain-regret": "regret on a chain of 50 states",
        "chain-length": "learning time against the length of the chain",
        "chain-features": "learning time against the number of basis functions",
        "chain-scaling": "both on logarithmic scales",
        "chain-features-many": "basis functions on chains of several lengths",
        "chain-quadratic": "a quadratic fit in the length, for each number of basis functions",
        "chain-agnostic": "basis functions that cannot represent the values",
        "chain-lambda": "robustness to the prior's precision lambda",
        "chain-sigma": "robustness to the noise sigma",
    },
    "tetris": {
        "tetris": "learning to play Tetris, 20 x 10",
        "mini-tetris": "learning to play Tetris with four rows, S and Z",
    },
    "recommendation": {
        "recsys-boltzmann": "recommendations: RLSVI against Boltzmann exploration",
        "recsys-myopic": "recommendations: RLSVI against bandits and the optimal myopic policy",
    },
    "extensions": {
        "incremental": "incremental RLSVI: regret against batch",
        "continual": "continual RLSVI in a river without end",
        "bootstrap": "RLSVI by a nonparametric bootstrap on the chain",
        "homogeneous": "RLSVI, PSRL and UCRL2 on MDPs whose periods are alike",
        "worst-case": "RLSVI with the noise of worst-case bounds, clipped, and with bounded targets",
    },
    "descendants": {
        "deep-sea": "DeepSea: learning time against its size, beside ensembles, PSRL and dithering",
        "concurrent": "concurrent agents that share their data: regret per agent against their number",
        "seed-sampling": "agents that share every step: fixed seeds against new draws",
        "ensemble-size": "ensembles: regret and learning time against the number of members",
        "swing-up": "swing-up of a cart and pole: how often a sparse reward is found, beside dithering",
    },
    "theory": {
        "lemma": "stochastic optimism: the lemmas in random cases, and the steps of their proofs",
        "theorem": "regret on MDPs of Theorem 1's prior against its bound, and tabula rasa algorithms",
        "conjecture": "is learning on the chain polynomial in K and H?",
    },
}
FIGURES = {name: words for figures in TOPICS.values() for name, words in figures.items()}


def figure_called(name: str) -> "Figure":
    """The figure called `name`, from the file of that name in the folder of its topic."""
    if not isinstance(name, str):
        raise TypeError(f"name must be the name of a figure, got {shown(name)}")
    for topic, figures in TOPICS.items():
        if name in figures:
            found: Figure = import_module(f"rlsvi.paper.{topic}.{name.replace('-', '_')}").FIGURE
            return found
    raise ValueError(f"unknown figure {shown(name)}: {instead(name, FIGURES, '`rlsvi list` shows all')}")
