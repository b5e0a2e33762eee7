"""The recommendation engine at the paper's size, side by side with others, on one core.

    python -m benchmarks.recommendation [--out DIR] [--quick]

One run of RLSVI of 1,200 episodes against the paper's pseudo-code in dense NumPy, whose K = 110 matrices are
rebuilt each episode, with one Cholesky factor a period and triangular solves by SciPy, as NumPy has none; every
agent of section 6.3; incremental RLSVI as a share of batch, and what an episode costs after ten thousand others;
and decisions a second beside MABWiser's linear Thompson sampling, if it is installed (pip install
'.[bench]'). Prints a table and writes DIR/recommendation.json. Machines are noisy: trust the ratios.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path
from statistics import median

import numpy as np
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_limits

import rlsvi
from rlsvi.bases import Recommendation
from rlsvi.envs import RecommendationEnv
from rlsvi.simulate.finite import simulate

N, J, LAM, SIGMA = 10, 5, 0.2, 1e-3**0.5
AGENTS = {
    "RLSVI": rlsvi.RLSVI(lam=LAM, sigma=SIGMA),
    "incremental RLSVI, nu = 0": rlsvi.IncrementalRLSVI(lam=LAM, sigma=SIGMA, nu=0.0),
    "incremental RLSVI, nu = .01": rlsvi.IncrementalRLSVI(lam=LAM, sigma=SIGMA, nu=0.01),
    "incremental RLSVI, nu = .01, literal": rlsvi.IncrementalRLSVI(
        lam=LAM, sigma=SIGMA, nu=0.01, keep_prior=False
    ),
    "LSVI, Boltzmann 0.1": rlsvi.LSVI(lam=LAM, explore=rlsvi.Boltzmann(0.1)),
    "LSVI, Boltzmann 10": rlsvi.LSVI(lam=LAM, explore=rlsvi.Boltzmann(10.0)),
    "LSVI, greedy": rlsvi.LSVI(lam=LAM),
    "linear bandit, a period": rlsvi.ContextualBandit(lam=LAM, sigma=SIGMA),
    "linear bandit, pooled": rlsvi.ContextualBandit(lam=LAM, sigma=SIGMA, pooled=True),
    "Thompson sampling": rlsvi.ThompsonSampling(),
    "optimal myopic policy": rlsvi.OptimalPolicy(myopic=True),
    "optimal policy": rlsvi.OptimalPolicy(),
}


def features(x):
    """phi_m and phi_mn of every product, (N, N^2 + N)."""
    phi = np.zeros((N, N + N * N))
    for a in range(N):
        phi[a, a] = 1.0
        phi[a, N + a * N : N + (a + 1) * N] = x
    return phi


def pseudo_code(env, episodes, seed):
    """Algorithms 1 and 2 in dense NumPy: every regression is rebuilt from all episodes. The sum of the rewards."""
    rng, total, K = np.random.default_rng(seed), 0.0, N + N * N
    A, r, prior = np.zeros((J, episodes, K)), np.zeros((J, episodes)), LAM * np.eye(K)
    following, barred = np.zeros((J, episodes, N, K)), np.zeros((J, episodes, N))
    for episode in range(episodes):
        theta = np.zeros((J + 1, K))
        for h in reversed(range(J)) if episode else ():
            X, b = A[h, :episode], r[h, :episode].copy()
            if h + 1 < J:
                b += (following[h, :episode] @ theta[h + 1] + barred[h, :episode]).max(axis=1)
            L = np.linalg.cholesky(X.T @ X / SIGMA**2 + prior)
            z = rng.standard_normal(K) + solve_triangular(L, X.T @ b / SIGMA**2, lower=True, check_finite=False)
            theta[h] = solve_triangular(L, z, lower=True, trans="T", check_finite=False)
        x, info = env.reset(seed=int(rng.integers(2**31)))
        for h in range(J):
            phi, mask = features(x), np.where(info["action_mask"] == 1, 0.0, -np.inf)
            Q = phi @ theta[h] + mask
            a = int(rng.choice(np.flatnonzero(Q == Q.max())))
            x, reward, _, _, info = env.step(a)
            A[h, episode], r[h, episode] = phi[a], reward
            if h + 1 < J:
                following[h, episode], barred[h, episode] = features(x), np.where(x == 0, 0.0, -np.inf)
            total += reward
    return total


def seconds(work):
    begin = time.process_time()
    work()
    return time.process_time() - begin


def late(problem, agent, episodes):
    """What an episode costs after ten thousand others, as a multiple of the first `episodes`."""
    agent = agent.clone(seed=0)
    simulate(agent, problem, 5)
    first = seconds(lambda: simulate(agent, problem, episodes, regret=False))
    simulate(agent, problem, 10_000, regret=False)
    return seconds(lambda: simulate(agent, problem, episodes, regret=False)) / first


def decisions(episodes):
    """Decisions a second, choosing and learning, of linear Thompson sampling by us and by MABWiser."""
    rates = {}
    env = RecommendationEnv(N, J)
    agent = AGENTS["linear bandit, pooled"].clone(seed=0, basis=Recommendation())
    agent.learn(env, episodes=5)
    took = seconds(lambda: agent.learn(env, episodes=episodes))
    rates["rlsvi, through Gymnasium"] = episodes * J / took
    problem = rlsvi.problems.recommendation(N, J)
    fast = AGENTS["linear bandit, pooled"].clone(seed=0)
    simulate(fast, problem, 5, regret=False)
    took = seconds(lambda: simulate(fast, problem, 20 * episodes, regret=False))
    rates["rlsvi, in the compiled loop"] = 20 * episodes * J / took
    try:
        from mabwiser.mab import MAB, LearningPolicy
    except ImportError:
        print("MABWiser is not installed, and not compared with: pip install '.[bench]'")
        return rates
    mab = MAB(list(range(N)), LearningPolicy.LinTS(alpha=SIGMA, l2_lambda=LAM * SIGMA**2), seed=0)
    mab.fit(list(range(N)), [0.5] * N, np.hstack([np.ones((N, 1)), np.zeros((N, N))]))

    def play():
        for episode in range(episodes):
            x, _ = env.reset(seed=episode)
            over = False
            while not over:
                context = np.concatenate([[1.0], x])[None]
                worth = mab.predict_expectations(context)  # of all products: it takes no mask
                a = max((n for n in range(N) if x[n] == 0), key=worth.__getitem__)
                x, reward, over, _, _ = env.step(a)
                mab.partial_fit([a], [reward], context)

    rates["MABWiser, LinTS"] = episodes * J / seconds(play)
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--quick", action="store_true", help="a quarter of the episodes in dense NumPy")
    options = parser.parse_args()
    result = {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "python": platform.python_version()}

    def row(what, value):
        print(f"{what:<60}{value:>16}", flush=True)

    print(f"{J} out of {N} products, one core")
    problem = rlsvi.problems.recommendation(N, J)
    episodes = 300 if options.quick else 1200
    runs = {name: [] for name in AGENTS}
    regret = []
    for agent in AGENTS.values():
        simulate(agent.clone(seed=0), problem, 5)
    with threadpool_limits(1):
        for seed in range(3):  # in turns with the rest, so that a busy moment hits all of them
            for name, agent in AGENTS.items():
                fresh = agent.clone(seed=seed)
                begin = time.process_time()
                simulate(fresh, problem, episodes, regret=False)
                runs[name].append(time.process_time() - begin)
            exact = AGENTS["RLSVI"].clone(seed=seed)
            regret.append(seconds(lambda exact=exact: simulate(exact, problem, episodes)))
        dense = seconds(lambda: pseudo_code(RecommendationEnv(N, J), episodes, 0))
        rates = decisions(200)
        aged = {name: late(problem, agent, episodes) for name, agent in AGENTS.items() if "RLSVI" in name}
    result["seconds"] = {name: median(times) for name, times in runs.items()}
    result |= {
        "aged": aged,
        "episodes": episodes,
        "dense_numpy": dense,
        "rlsvi_with_regret": median(regret),
        "decisions": rates,
    }
    row(f"dense NumPy, a run of {episodes} episodes", f"{dense:.1f} s")
    for name, took in result["seconds"].items():
        row(f"{name}, a run of {episodes} episodes", f"{took * 1e3:.0f} ms")
    for name, times in aged.items():
        share = median(a / b for a, b in zip(runs[name], runs["RLSVI"], strict=True))
        row(f"{name}, its time as a share of batch", f"{share:.2f}")
        row(f"{name}, an episode after 10,000 others, times the first", f"{times:.2f}")
    row("RLSVI with the exact regret of every episode", f"{median(regret) * 1e3:.0f} ms")
    row("RLSVI, times faster than dense NumPy", f"{dense / result['seconds']['RLSVI']:.0f}")
    for name, rate in rates.items():
        row(f"linear Thompson sampling: {name}, decisions a second", f"{rate:,.0f}")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "recommendation.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
