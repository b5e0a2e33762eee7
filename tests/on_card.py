"""Runs on a graphics card, or on Numba's simulation of one, beside the same runs on the processor."""

import numpy as np

import rlsvi
from rlsvi import LSVI, RLSVI, problems
from rlsvi.mdp import FiniteMDP
from rlsvi.problems import Problem
from rlsvi.simulate.finite import simulate
from rlsvi.simulate.gpu import Batch, leaves


def noisy_maze(seed=0):
    """Gaussian rewards, masks, absorbing states: what a table can hold."""
    rng, S, A, H = np.random.default_rng(seed), 5, 3, 4
    P, legal = rng.dirichlet(np.ones(S), (S, A)), np.arange(A) <= np.arange(S)[:, None]
    options = {"rewards": "gaussian", "reward_std": 0.3, "legal": legal, "absorbing": np.arange(S) == S - 1}
    options["start"] = np.eye(S)[0]
    return Problem(FiniteMDP.from_arrays(P, rng.normal(size=(S, A)), horizon=H, **options))


KINDS = {
    "table": (RLSVI(), lambda seed: problems.deep_sea(4, stochastic=True, seed=seed)),
    "one table": (RLSVI(), problems.deep_sea(4)),
    "dense": (RLSVI(), lambda seed: problems.chain(5, 3, seed=seed)),
    "noisy maze": (RLSVI(sigma=0.3), noisy_maze),
    "blocks": (RLSVI(lam=0.2, sigma=0.03), lambda seed: problems.recommendation(4, 2, seed=seed)),
    "noise": (RLSVI(sigma=rlsvi.InverseGamma(2, 1)), problems.chain(4, 2)),
    "epsilon-greedy": (LSVI(explore=rlsvi.EpsilonGreedy(rlsvi.Linear(1, 0, 9))), problems.chain(4)),
    "Boltzmann": (LSVI(explore=rlsvi.Boltzmann(0.1)), problems.recommendation(4, 2)),
    "incremental": (rlsvi.IncrementalRLSVI(), problems.chain(4, 2)),
    "numbers": (
        lambda seed: RLSVI(lam=1.0 + seed, sigma=0.1 * (1 + seed)),
        lambda seed: problems.chain(5, 3, seed=seed),
    ),
    "schedules": (
        lambda seed: LSVI(explore=rlsvi.EpsilonGreedy(lambda episode: 1 / (1 + seed + episode))),
        problems.chain(4),
    ),
    "step sizes": (rlsvi.IncrementalRLSVI(nu=rlsvi.Linear(0.5, 0.1, 10), keep_prior=False), problems.chain(4, 2)),
    "per period": (RLSVI(), lambda seed: problems.chain(5, 3, per_period=True, seed=seed)),
    "bootstrap": (rlsvi.BootstrapRLSVI(), lambda seed: problems.chain(5, 3, seed=seed)),
    "ensemble": (
        lambda seed: rlsvi.EnsembleRLSVI(members=4, sigma=0.1 * (1 + seed), prior_scale=1.0 + seed),
        lambda seed: problems.chain(5, 3, seed=seed),
    ),
    "ensemble of one table": (rlsvi.EnsembleRLSVI(members=3), problems.deep_sea(4)),
    "ensemble with weights": (
        rlsvi.EnsembleRLSVI(members=3, perturb="weights"),
        lambda seed: problems.chain(5, 3, seed=seed),
    ),
    "homogeneous PSRL": (
        rlsvi.PSRL(reward_range=(-1, 0), homogeneous=True),
        lambda seed: problems.dirichlet(3, 2, 3, homogeneous=True, seed=seed),
    ),
    "PSRL": (rlsvi.PSRL(reward_range=(-1, 0)), lambda seed: problems.dirichlet(3, 2, 3, seed=seed)),
    "UCRL2": (rlsvi.UCRL2(reward_range=(-1, 0)), problems.dirichlet(3, 2, 3)),
    "UCBVI": (rlsvi.UCBVI(reward_range=(-1, 0)), problems.dirichlet(3, 2, 3)),
    "LSVI-UCB": (rlsvi.LSVIUCB(reward_range=(-1, 0)), problems.dirichlet(3, 2, 3)),
    "contextual": (rlsvi.ContextualBandit(), problems.recommendation(4, 2)),
    "Thompson": (rlsvi.ThompsonSampling(), problems.recommendation(4, 2)),
    "optimal": (rlsvi.OptimalPolicy(), lambda seed: problems.recommendation(4, 2, seed=seed)),
}


def differences(kind, runs, episodes, sample, regret=True):
    """What differs, bit for bit, between some of the runs on the card and the same on the processor."""
    agent, problem = kind
    drawn = [problem(seed) if callable(problem) else problem for seed in range(runs)]
    templates = [agent(seed) if not hasattr(agent, "clone") else agent for seed in range(runs)]
    agents = [template.clone(seed=seed) for seed, template in enumerate(templates)]
    batch = Batch(agents, drawn)
    parts = [
        batch.play(range(runs), episodes // 2, regret=regret),
        batch.play(sample, episodes - episodes // 2, regret=regret),
    ]
    minds = [leaf.copy_to_host() if hasattr(leaf, "copy_to_host") else leaf for leaf in leaves(batch.runs.mind)]
    streams = batch.runs.streams.copy_to_host()
    before = len(leaves(batch.template[:3]))
    stacked = [not leaf.shared for leaf in batch.leaves[before : before + len(minds)]]
    found = []
    for position, seed in enumerate(sample):
        one = agents[seed]
        for history in (parts[0][seed], parts[1][position]):
            expected = simulate(one, drawn[seed], len(history.reward), regret=regret)
            found += [
                field for field in expected._fields[:4] if not same(getattr(history, field), expected, field)
            ]
        found += [] if np.array_equal(streams[..., seed], one._streams) else ["streams"]
        own = leaves(one._learner.mind)
        for i, (leaf, mine) in enumerate(zip(minds, own, strict=True)):
            if stacked[i] and not _same_numbers(leaf[..., seed], mine):
                found.append(f"leaf {i} of the mind")
    return found


def same(part, expected, field):
    return np.ascontiguousarray(part).tobytes() == getattr(expected, field).tobytes()


def _same_numbers(one, other):
    """Whether two arrays, or numbers, agree where both have room."""
    if not isinstance(other, np.ndarray):
        return one == other
    corner = tuple(slice(min(n, m)) for n, m in zip(one.shape, other.shape, strict=True))
    return np.array_equal(one[corner], other[corner], equal_nan=True)
