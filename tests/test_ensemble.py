"""EnsembleRLSVI, against one regression per member on raw transitions, closed forms, and RLSVI as its limit."""

import numpy as np
import pytest
from scipy.stats import chi2, kstest

import rlsvi
from rlsvi import LSVI, RLSVI, EnsembleRLSVI, EpsilonGreedy, Problem, problems
from rlsvi.agents.contract import plan as plan_of
from rlsvi.core.elementary import log
from rlsvi.core.random import normal, reseed, stream, uniform
from rlsvi.envs import FiniteMDPEnv
from rlsvi.offline.recorder import Recorder
from rlsvi.simulate.finite import simulate
from test_bootstrap import weighted
from test_unknown_noise import A, H, S, basis_of, noisy_mdp
from twin import Rows, lsvi, raw_episodes, regression, ridge_regression
from values import action_values

KINDS = ["dense", "tabular", "blocks"]
PERTURB = ["targets", pytest.param("weights", marks=pytest.mark.slow)]  # weights compile all of it anew
GOLDEN, WORD = 0x9E3779B97F4A7C15, 2**64


def stream_of(key, number):
    """The random stream that belongs to a number: a block of weights, or an episode, counted from 1."""
    state = np.empty(4, np.uint64)
    reseed(state, np.uint64(int(key) ^ (number * GOLDEN % WORD)))
    return state


def prior_draws(agent, m):
    """theta0 of a member, (H, weights)."""
    features, key = agent._learner.features, agent._learner.mind.own.keys[m]
    draws = np.zeros((H, features.blocks, features.dim))
    for h in range(H):
        for b in range(features.blocks):
            state = stream_of(key, h * features.blocks + b + 1)
            draws[h, b] = [normal(state) for _ in range(features.dim)]
    return agent.prior_mean + agent.prior_scale / np.sqrt(agent.lam) * draws.reshape(H, -1)


def noise_of(agent, episodes, m):
    """w_im, or the weights, of a member: one for each step of each episode."""
    found = []
    for number, episode in enumerate(episodes, 1):
        state = stream_of(agent._learner.mind.own.keys[-1], number)
        if agent.perturb == "targets":
            drawn = [[agent.sigma * normal(state) for _ in range(agent.members)] for _ in episode]
        else:
            drawn = [[-log(1.0 - uniform(state)) for _ in range(agent.members)] for _ in episode]
        found.append([step[m] for step in drawn])
    return found


def twin_plan(agent, episodes, rows, m):
    """The weights (H, weights) of a member, from all raw transitions."""
    start, noise, ridge = prior_draws(agent, m), noise_of(agent, episodes, m), agent.lam * agent.sigma**2
    theta = np.zeros((H + 1, rows.weights))
    for h in reversed(range(H)):
        X, b = regression(episodes, h, rows, theta[h + 1])
        own = np.array([steps[h] for steps in noise if len(steps) > h])
        if agent.perturb == "targets":
            theta[h] = ridge_regression(X, b + own, ridge, start[h])
        else:
            theta[h] = weighted(X, b, own, np.full(rows.weights, ridge), start[h])
    return theta[:H]


@pytest.mark.parametrize("perturb", PERTURB)
@pytest.mark.parametrize("kind", KINDS)
def test_every_member_is_a_regression_of_its_own(kind, perturb):
    """Seen or unseen, a state has the values of the twin: a block keeps its prior draw when it becomes live."""
    options = {"lam": 0.5, "sigma": 0.7, "prior_mean": 0.3, "prior_scale": 1.4}
    agent = EnsembleRLSVI(seed=3, members=4, perturb=perturb, **options)
    mdp = noisy_mdp()
    history = simulate(agent, Problem(mdp, basis_of(kind)), 12, trace=True)
    episodes, rows = raw_episodes(history.trace, mdp), Rows(agent._learner.features)
    picked = {int(4 * uniform(stream(seed))): seed for seed in range(20)}
    assert picked.keys() == {0, 1, 2, 3}
    for m, seed in picked.items():
        theta, plan = twin_plan(agent, episodes, rows, m), agent._learner.plan(True, stream(seed))
        for h in range(H):
            for s in range(S):
                found = action_values(agent, plan, h, s)
                np.testing.assert_allclose(found, rows(h, s) @ theta[h], rtol=1e-9, atol=1e-9)
    theta, _ = lsvi(episodes, rows, H, 0.5 * 0.7**2, 0.3)
    plan = agent._learner.plan(False, stream(0))
    for h in range(H):
        for s in range(S):
            found = action_values(agent, plan, h, s)
            np.testing.assert_allclose(found, rows(h, s) @ theta[h], rtol=1e-9, atol=1e-9)


# ---- the distribution of members, and RLSVI as the limit --------------------------------------------------


def random_log(mdp, episodes):
    """A log of random actions, which no member has influenced."""
    env = Recorder(FiniteMDPEnv(mdp))
    LSVI(explore=EpsilonGreedy(1.0), seed=5).learn(env, episodes=episodes)
    return env.frame()


def test_members_are_samples_of_the_posterior():
    """Of fixed data: the last period against its closed form, the first against samples of RLSVI."""
    mdp, M, options = noisy_mdp(), 3000, {"lam": 2.0, "sigma": 0.4, "prior_mean": 0.3, "basis": basis_of("dense")}
    data = random_log(mdp, 15)
    ensemble = EnsembleRLSVI(seed=1, members=M, **options).fit(data, FiniteMDPEnv(mdp))
    exact, mind = RLSVI(seed=2, **options).fit(data, FiniteMDPEnv(mdp)), ensemble._learner.mind
    X = np.array([Rows(exact._learner.features)(0, s) for s in range(S)]).reshape(S * A, -1)
    last, members, samples, noise = np.zeros((M, 3)), np.zeros((M, S * A)), np.zeros((M, S * A)), stream(0)
    for m in range(M):
        own = mind.own._replace(noise=mind.own.noise[:, :, m : m + 1].copy(), keys=mind.own.keys[[m, M]])
        alone = mind._replace(own=own)
        assert plan_of(alone, True, noise)
        last[m], members[m] = alone.values.theta[H - 1, 0], X @ alone.values.theta[0, 0]
        samples[m] = X @ exact._learner.plan(True, noise).theta[0, 0]
    U, mean = mind.factor.U[H - 1, 0], exact._learner.plan(False, noise).theta[H - 1, 0]
    z = (last - mean) @ np.triu(U).T / 0.4  # standard normal, if theta ~ N(mean, sigma^2 P^-1)
    assert np.linalg.norm(z.mean(axis=0)) < np.sqrt(chi2.ppf(1 - 1e-4, 3) / M)
    assert np.abs(z.T @ z / M - np.eye(3)).max() < 4 * np.sqrt(2 / M)
    assert kstest((z**2).sum(axis=1), chi2(3).cdf).pvalue > 1e-3
    deviation = samples.std(axis=0)
    assert (np.abs(members.mean(axis=0) - samples.mean(axis=0)) < 4 * deviation * np.sqrt(2 / M)).all()
    fourth = ((samples - samples.mean(axis=0)) ** 4).mean(axis=0)
    error = np.sqrt(2 * (fourth - deviation**4) / M)
    assert (np.abs(members.var(axis=0) - deviation**2) < 4 * error).all()


def test_many_members_are_rlsvi_and_one_is_not():
    """The regret of a short life: with more members than episodes, hardly any member is picked twice."""
    problem, runs = problems.deep_sea(5), 300
    agents = {"exact": RLSVI(), "many": EnsembleRLSVI(members=400), "one": EnsembleRLSVI(members=1)}
    regrets = {
        name: np.array([simulate(agent.clone(seed=seed), problem, 30).regret.sum() for seed in range(runs)])
        for name, agent in agents.items()
    }
    error = np.sqrt(sum(regrets[name].var() for name in ("exact", "many")) / runs)
    assert abs(regrets["exact"].mean() - regrets["many"].mean()) < 3 * error
    assert regrets["exact"].var() < 2 * regrets["many"].var() < 4 * regrets["exact"].var()
    error = np.sqrt(sum(regrets[name].var() for name in ("exact", "one")) / runs)
    assert regrets["one"].mean() - regrets["exact"].mean() > 6 * error


@pytest.mark.slow
def test_weights_explore_only_through_the_prior_draws():
    """On a chain of 12 states, nothing differs between members before the first reward but their priors."""
    problem, episodes = problems.chain(12, 5), 400
    without = simulate(EnsembleRLSVI(perturb="weights", prior_scale=0, seed=0), problem, episodes)
    assert without.reward.sum() == 0
    np.testing.assert_allclose(without.regret, problem.random_regret, rtol=1e-12)
    assert simulate(EnsembleRLSVI(perturb="weights", sigma=1.0, seed=0), problem, episodes).reward.sum() > 50


# ---- arguments and files ----------------------------------------------------------------------------------


def test_too_many_members_are_refused_with_a_remedy():
    for perturb in ("targets", "weights"):
        with pytest.raises(ValueError, match="use fewer members"):
            simulate(EnsembleRLSVI(members=10**13, perturb=perturb), problems.chain(4), 1)


@pytest.mark.parametrize("perturb", PERTURB)
def test_a_file_with_other_members_is_refused(perturb, tmp_path):
    agent = EnsembleRLSVI(members=3, perturb=perturb, basis=rlsvi.bases.Tabular(), seed=0)
    agent.learn(FiniteMDPEnv(problems.deep_sea(3).mdp), episodes=2)
    agent.members = 4
    agent.save(tmp_path / "agent")
    with pytest.raises(ValueError, match="keys of 4 members"):
        rlsvi.load(tmp_path / "agent")
    agent.members = 3
    own = agent._learner.mind.own
    array = own.noise if perturb == "targets" else own.outcomes.weights
    array[0, -1] = -1.0 if perturb == "targets" else 0.0
    array[0, 0] = -1.0 if perturb == "weights" else 0.0
    agent.save(tmp_path / "agent")
    with pytest.raises(ValueError, match=r"members have noise where|weights are negative"):
        rlsvi.load(tmp_path / "agent")
