"""The headline claims at the sizes the paper names: who learns, how soon, and that it stays learned."""

import numpy as np
import pytest

import rlsvi
from rlsvi import LSVI, RLSVI, Boltzmann, EpsilonGreedy, Greedy
from rlsvi.simulate.finite import simulate

pytestmark = pytest.mark.slow


def own_chain(seed):
    """Example 1 with 50 states, through ten random coherent features that belong to the seed."""
    return rlsvi.problems.chain(length=50, features=10, seed=seed)


def runs_of(problem, episodes, seeds, **agents):
    return rlsvi.compare(agents, problem, episodes, seeds, progress=False)


# ---- the chain of 50 states, K = 10, lambda = 1, sigma = .1 -----------------------------------------------


@pytest.fixture(scope="module")
def twenty():
    """20 seeds, each with its own basis, for 3,000 episodes."""
    return runs_of(own_chain, 3000, 20, RLSVI=RLSVI(lam=1.0, sigma=0.1))


@pytest.fixture(scope="module")
def long():
    """One of them for 100,000 episodes."""
    return runs_of(own_chain, 100_000, 1, RLSVI=RLSVI(lam=1.0, sigma=0.1))


def test_rlsvi_learns_the_chain_with_every_seed_in_hundreds_of_episodes(twenty):
    times = twenty.learning_times("RLSVI")
    assert np.isfinite(times).all()
    assert 200 <= np.median(times) <= 600
    # random play would take 2^49 episodes; no seed is a straggler (measured: 160 to 614)
    assert times.max() < 1500


def test_rlsvi_ends_with_the_optimal_policy_of_the_chain_with_every_seed(twenty):
    regret = np.stack([run.history.regret for run in twenty.of("RLSVI")])
    assert (regret[:, 1500:] == 0.0).all()
    assert (regret >= 0.0).all()


@pytest.mark.slow
def test_expected_regret_is_flat_from_2000_to_100_000(twenty, long):
    for run in [*twenty.of("RLSVI"), *long.of("RLSVI")]:
        assert run.history.regret[2000:].sum() == 0.0  # not one policy that is not optimal
        # and the rewards are those of success with probability V*: a binomial count, within 5 sd
        p, n = (1 - 1 / 50) ** 49, len(run.history.reward) - 2000
        assert abs(run.history.reward[2000:].sum() - n * p) < 5 * np.sqrt(n * p * (1 - p))
    for short, run in zip(twenty.of("RLSVI"), long.of("RLSVI"), strict=False):
        assert (run.history.reward[:3000] == short.history.reward).all()  # they are the same runs


@pytest.mark.slow
@pytest.mark.parametrize("explore", [EpsilonGreedy(0.1), Boltzmann(1.0)], ids=["epsilon-greedy", "Boltzmann"])
def test_dithering_sees_no_reward_of_the_chain_in_100_000_episodes(explore):
    """The chance to see one is 100,000 p* 2^-49, below 1e-10."""
    history = simulate(LSVI(lam=1.0, explore=explore, seed=0), own_chain(0), 100_000, regret=False)
    assert (history.reward == 0.0).all()


@pytest.mark.parametrize("length", [4, 6])
@pytest.mark.parametrize(
    "explore", [Greedy(), EpsilonGreedy(0.1), Boltzmann(1.0)], ids=["greedy", "epsilon-greedy", "Boltzmann"]
)
def test_the_first_reward_of_dithering_takes_two_to_the_length_episodes(explore, length):
    """Before it every value is zero and every action fair: geometric with success p* 2^-(N-1)."""
    n = 400
    chance = (1 - 1 / length) ** (length - 1) / 2 ** (length - 1)
    problem = rlsvi.problems.chain(length)
    first = []
    for seed in range(n):
        agent, waited = LSVI(lam=1.0, explore=explore, seed=seed), 0
        while True:
            rewards = simulate(agent, problem, 64, regret=False).reward
            if rewards.any():
                first.append(waited + rewards.argmax() + 1)
                break
            waited += 64
    sd = np.sqrt(1 - chance) / chance
    assert abs(np.mean(first) - 1 / chance) < 3.5 * sd / np.sqrt(n)
    assert abs(np.std(first) / sd - 1) < 0.25  # a geometric one, not some other time of the same mean


# ---- deep sea of size 20, a table -------------------------------------------------------------------------


def test_rlsvi_learns_deep_sea_with_every_seed():
    """Learned: the treasure was found ten times, and the last policies are optimal."""
    runs = runs_of(lambda seed: rlsvi.problems.deep_sea(20, seed=seed), 1000, 20, RLSVI=RLSVI(lam=1.0, sigma=0.1))
    found = [np.flatnonzero(run.history.reward > 0.5) for run in runs.of("RLSVI")]
    assert all(len(episodes) >= 10 for episodes in found)
    tenth = [episodes[9] + 1 for episodes in found]
    assert np.median(tenth) < 250  # measured: 164, from 120 to 191
    best = rlsvi.problems.deep_sea(20).solution.V[0, 0]
    last = np.stack([run.history.regret[-100:] for run in runs.of("RLSVI")])
    assert last.mean() < 0.01 * best  # it goes on to explore a little: measured .0025


def test_dithering_does_not_find_the_treasure_of_deep_sea():
    """Greedy LSVI learns at once that right moves cost, and goes no further."""
    problem = rlsvi.problems.deep_sea(20)
    for explore in (Greedy(), EpsilonGreedy(0.1), Boltzmann(1.0)):
        history = simulate(LSVI(lam=1.0, explore=explore, seed=0), problem, 5000, regret=False)
        assert (history.reward < 0.5).all()
