"""Second stop: deep exploration on a chain of 50 states, against dithering."""

from rlsvi.cli.tour.compared import compared
from rlsvi.cli.tour.exhibit import Exhibit
from rlsvi.cli.tour.guide import Guide

TITLE = "Explore deeply: a reward 49 steps away"
CODE = """import rlsvi
problem = rlsvi.problems.chain(length=50, features=10, seed=0)
agents = {"RLSVI": rlsvi.RLSVI(sigma=0.1), "epsilon-greedy": rlsvi.LSVI(explore=rlsvi.EpsilonGreedy(0.1))}
runs = rlsvi.compare(agents, problem, episodes=2000, seeds=20)
runs.plot("chain.png")"""


def show(guide: Guide) -> Exhibit:
    """Compare both agents, and plot their regret."""
    runs, picture = compared(CODE, guide)
    learned = runs.summary()["learned"].to_list()
    sentence = (
        f"The only reward is at the far end of the chain: RLSVI learned to fetch it in {learned[0]} of "
        f"{len(runs.seeds)} runs, epsilon-greedy exploration in {learned[1]}."
    )
    guide.say(sentence)
    return Exhibit("chain", TITLE, sentence, CODE, picture, "image/svg+xml")
