"""An experiment for the tests of graphics cards, in a module that other processes can import."""

from rlsvi import RLSVI, problems
from rlsvi.study.experiment import Play, experiment


@experiment
def regret_of(*, length, seed):
    """Even seeds play on; seed 3 fails."""
    agent, problem = RLSVI(seed=seed), problems.chain(length, 2, seed=seed)
    history = yield Play(agent, problem, 8)
    if seed == 3:
        raise ArithmeticError("3 is not liked")
    more = (yield Play(agent, problem, 4, regret=False)) if seed % 2 == 0 else history
    return {"regret": history.regret.sum(), "reward": more.reward.sum()}
