"""Cases of compiled agents, which have the same bits on every processor, and cases in ROUNDED, which have not.

The latter use linear algebra, logarithms or environments of other libraries, whose last bits depend on the
processor. They are short, lest a last bit change an action. The inputs of the others are made without these:
features are eighths.
"""

import tempfile
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np

import rlsvi
from rlsvi import bases, problems
from rlsvi.core import random
from rlsvi.envs import FiniteMDPEnv
from rlsvi.simulate import simulate

from .driving import SEED, continual, fused, learned
from .environments import Traced, Walk


def random_variates():
    state = random.stream(9)
    normal = np.array([random.normal(state) for _ in range(3000)])
    gamma = np.array([random.gamma(state, shape) for shape in (0.3, 1.0, 7.5) for _ in range(300)])
    beta = np.array([random.beta(state, 0.7, 2.5) for _ in range(300)])
    return {"normal": normal, "gamma": gamma, "beta": beta, "stream": state}


def problem_tables():
    made = {"chain": problems.chain(5), "agnostic": problems.chain(5, 3, rho=0.5)}
    made |= {"deep sea": problems.deep_sea(4, stochastic=True), "river swim": RIVER(), "shop": SHOP()}
    made["dirichlet"] = problems.dirichlet(4, 2, 3, seed=2)
    found = {}
    for name, problem in made.items():
        table, env = problem.mdp.table, Traced(FiniteMDPEnv(problem.mdp))
        for seed in range(3):
            (_, info), over = env.reset(seed=seed), False
            while not over:
                legal = np.flatnonzero(info.get("action_mask", np.ones(problem.mdp.actions)))
                _, _, over, _, info = env.step(int(legal[seed % len(legal)]))
        features = problem.basis.bind(table.states, table.actions, table.horizon, 0).table
        found |= {f"{name}: played": tuple(env.rows), f"{name}: solution": tuple(problem.solution)[:2]}
        found |= {f"{name}: features": tuple(features), f"{name}: random": problem.random_regret}
        found[f"{name}: table"] = (table.successor, table.probability, table.expected, table.terminal, table.legal)
    return found


def exported():
    """What an agent for CartPole writes for NumPy alone, and the agents that `agent_for` chooses."""
    env = gymnasium.make("CartPole-v1")
    agent = rlsvi.agent_for(env, seed=SEED, basis=bases.Fourier(features=20))
    agent.learn(env, episodes=3)
    with tempfile.TemporaryDirectory() as folder:
        agent.export(Path(folder, "policy.npz"))
        with np.load(Path(folder, "policy.npz")) as file:
            found = {name: file[name] for name in file.files if name != "layout"}
    chosen = [sorted(rlsvi.agent_for(made).get_params().items()) for made in (env, FiniteMDPEnv(RIVER().mdp))]
    return found | {"agent_for": np.frombuffer(repr(chosen).encode(), np.uint8)}


def belief():
    """A posterior of 30 observations."""
    found, rng = rlsvi.Posterior(2, 3, lam=0.5, sigma=0.3, prior_mean=0.1), np.random.default_rng(4)
    for i in range(30):
        found.observe(i % 2, rng.integers(-4, 5, 3) / 4.0, float(rng.integers(-8, 9)) / 8.0)
    return found


def posterior():
    made = belief()
    variance = made.variance(1, np.array([1.0, 0.5, -2.0]))
    return {"mean": made.mean(), "sample": made.sample(7), "variance": variance}


def evidence():
    agent = rlsvi.RLSVI(seed=SEED)
    simulate(agent, dense_features(), 20)
    return {"found": np.array(rlsvi.evidence(agent)), "posterior": belief().log_evidence()}


def coherent_features():
    made = {"shared": problems.chain(5, 3), "per period": problems.chain(5, 3, per_period=True)}
    return {name: problem.basis.phi for name, problem in made.items()}


def dense_features():
    """A problem whose rewards are everywhere, learned through four functions."""
    phi = np.random.default_rng(1).integers(-8, 9, (5, 5, 3, 4)) / 8.0
    return problems.Problem(problems.dirichlet(5, 3, 5, seed=3).mdp, bases.Dense(phi))


def state_features(x):
    """Functions of an observation of the walk."""
    return [1.0, x[0] / 7.0, x[1] / 7.0, x[0] * x[1] / 49.0]


NUMBERED, MEASURED, CART = partial(Walk, True), partial(Walk, False), partial(gymnasium.make, "CartPole-v1")
RIVER = partial(problems.river_swim, 4, 6)
SHOP = partial(problems.recommendation, 4, 3, seed=1)
ANY = bases.StateFeatures(state_features)
UNKNOWN = rlsvi.InverseGamma(1.5, 0.2)
HALVING = rlsvi.Exponential(0.5, 0.9)

RLSVI, LSVI, Incremental = rlsvi.RLSVI, rlsvi.LSVI, rlsvi.IncrementalRLSVI
Stationary, Bounded, Continual = rlsvi.StationaryRLSVI, rlsvi.BoundedRLSVI, rlsvi.ContinualRLSVI


class Often(Bounded):
    """Plans within an episode."""

    update_every = 7


FINITE = {
    "rlsvi": partial(RLSVI),
    "rlsvi-prior": partial(RLSVI, lam=3.0, sigma=0.4, prior_mean=0.5, reward_offset=-0.25),
    "rlsvi-unknown-noise": partial(RLSVI, sigma=UNKNOWN),
    "rlsvi-by-evidence": partial(RLSVI, sigma=rlsvi.ByEvidence(first=4)),
    "lsvi-greedy": partial(LSVI),
    "lsvi-epsilon": partial(LSVI, explore=rlsvi.EpsilonGreedy(HALVING)),
    "lsvi-boltzmann": partial(LSVI, explore=rlsvi.Boltzmann(0.2)),
    "incremental-0": partial(Incremental, nu=0.0),
    "incremental-0.01": partial(Incremental, nu=0.01),
    "incremental-paper": partial(Incremental, nu=0.1, keep_prior=False),
    "contextual": partial(rlsvi.ContextualBandit),
    "contextual-pooled": partial(rlsvi.ContextualBandit, pooled=True),
}
ENSEMBLES = {
    "ensemble": partial(rlsvi.EnsembleRLSVI, members=3, prior_mean=0.5, prior_scale=0.8),
    "ensemble-weights": partial(rlsvi.EnsembleRLSVI, members=3, perturb="weights"),
}
TABULAR = {
    "thompson": partial(rlsvi.ThompsonSampling),
    "optimal": partial(rlsvi.OptimalPolicy),
    "myopic": partial(rlsvi.OptimalPolicy, myopic=True),
    "psrl": partial(rlsvi.PSRL),
    "psrl-normal": partial(rlsvi.PSRL, reward_noise=0.5),
    "ucrl2": partial(rlsvi.UCRL2, scale=0.1),
    "ucbvi": partial(rlsvi.UCBVI, scale=0.1),
    "ucbvi-bernstein": partial(rlsvi.UCBVI, bonus="bernstein", scale=0.1),
    "lsvi-ucb": partial(rlsvi.LSVIUCB, scale=0.01),
}
STATIONARY = {
    "stationary": partial(Stationary, gamma=0.9, memory=25),
    "stationary-unknown-noise": partial(Stationary, gamma=0.9, sigma=UNKNOWN, regressions=3),
    "stationary-lsvi": partial(rlsvi.StationaryLSVI, gamma=0.9, memory=25, explore=rlsvi.EpsilonGreedy(0.2)),
}
CONTINUAL = {
    "continual-paper": partial(Continual, gamma=0.8),
    "continual-whitened": partial(Continual, gamma=0.8, noise="whitened"),
    "continual-independent": partial(Continual, gamma=0.8, noise="independent"),
    "continual-lsvi": partial(rlsvi.ContinualLSVI, gamma=0.8, explore=rlsvi.EpsilonGreedy(0.1)),
}
GRADIENT = partial(rlsvi.GradientRLSVI, ensemble=3, updates=8, memory=10)

COMPILED = {"random-variates": random_variates, "problem-tables": problem_tables, "posterior": posterior}
COMPILED |= {"evidence": evidence, "exported": exported, "coherent-features": coherent_features}
for name, make in FINITE.items():
    COMPILED[f"{name}-fused-features"] = fused(make, dense_features)
    COMPILED[f"{name}-masked"] = learned(partial(make, horizon=9), NUMBERED, episodes=8)
    COMPILED[f"{name}-any"] = learned(partial(make, horizon=9, basis=ANY), MEASURED, episodes=6)
for name in ("rlsvi", "rlsvi-unknown-noise", "lsvi-boltzmann", "incremental-0.01", "contextual"):
    COMPILED[f"{name}-fused-shop"] = fused(FINITE[name], SHOP)
    COMPILED[f"{name}-fused-table"] = fused(FINITE[name], RIVER)
for name, make in ENSEMBLES.items():
    COMPILED[f"{name}-fused-shop"] = fused(make, SHOP)
    COMPILED[f"{name}-masked"] = learned(partial(make, horizon=9), NUMBERED, episodes=8)
    COMPILED[f"{name}-any"] = learned(partial(make, horizon=9, basis=ANY), MEASURED, episodes=6)
for name, make in TABULAR.items():
    COMPILED[f"{name}-fused"] = fused(make, RIVER)
    COMPILED[f"{name}-masked"] = learned(make, partial(FiniteMDPEnv, SHOP().mdp), episodes=8)
for name, make in STATIONARY.items():
    COMPILED[f"{name}-masked"] = learned(make, NUMBERED, episodes=8)
    COMPILED[f"{name}-any"] = learned(partial(make, basis=ANY), MEASURED, steps=40)
for name, make in CONTINUAL.items():
    COMPILED[f"{name}-fused"] = continual(make)
    COMPILED[f"{name}-masked"] = learned(make, NUMBERED, steps=40)
    COMPILED[f"{name}-any"] = learned(partial(make, basis=ANY), MEASURED, steps=20)
COMPILED |= {
    "rlsvi-short-horizon": learned(partial(RLSVI, horizon=4), NUMBERED, steps=30),
    "gradient-masked": learned(partial(GRADIENT, horizon=9), NUMBERED, episodes=8),
    "gradient-any": learned(partial(GRADIENT, horizon=9, basis=ANY), MEASURED, episodes=8),
    "bounded-cart": learned(partial(Bounded, basis=bases.Fourier(features=30)), CART, episodes=4),
    "bounded-often": learned(
        partial(Often, basis=bases.Fourier(order=1), sigma=0.5, lam=1.0), MEASURED, episodes=6
    ),
    "bounded-radial": learned(partial(Bounded, gamma=0.9, basis=bases.Radial(20)), MEASURED, steps=40),
    "bounded-any": learned(partial(Bounded, gamma=0.9, basis=ANY, lam=3.0), MEASURED, episodes=6),
}

del COMPILED["rlsvi-by-evidence-fused-features"]  # of several peaks, rounding decides which is found
ROUNDED = {name for name in COMPILED if name.startswith("bounded-") or "by-evidence" in name}
ROUNDED |= {"evidence", "exported", "coherent-features"}
