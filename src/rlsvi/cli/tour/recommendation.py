"""Third stop: recommendations that build on each other, against bandits."""

from rlsvi.cli.tour.compared import compared
from rlsvi.cli.tour.exhibit import Exhibit
from rlsvi.cli.tour.guide import Guide

TITLE = "Recommend five products in a row"
CODE = """import rlsvi
problem = rlsvi.problems.recommendation(seed=0)
agents = {"RLSVI": rlsvi.RLSVI(lam=0.2, sigma=0.03), "linear bandit": rlsvi.ContextualBandit(lam=0.2, sigma=0.03)}
runs = rlsvi.compare(agents | {"Thompson sampling": rlsvi.ThompsonSampling()}, problem, episodes=3000, seeds=10)
runs.plot("recommendation.png")"""


def show(guide: Guide) -> Exhibit:
    """Compare RLSVI with two bandits, and plot their regret."""
    runs, picture = compared(CODE, guide)
    left = runs.summary()["regret_left"].to_list()
    sentence = (
        "What a customer likes depends on what was shown before: per customer, over the last tenth of the run, "
        f"RLSVI loses {left[0]:.0%} of what random recommendations lose, a linear bandit {left[1]:.0%}, and "
        f"Thompson sampling, which ignores what was shown, {left[2]:.0%}."
    )
    guide.say(sentence)
    return Exhibit("recommendation", TITLE, sentence, CODE, picture, "image/svg+xml")
