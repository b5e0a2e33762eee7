"""How often the intervals of `rlsvi.value_of` contain the true value: `python -m benchmarks.coverage`.

Logs are drawn from problems whose exact solution is known. The policy that is judged is optimal except for a share
of random actions, the policy that made the log has a larger share. Widths are medians. Times are CPU times.
"""

import argparse
import time
import warnings

import gymnasium as gym
import numpy as np
import polars as pl

import rlsvi
from rlsvi.mdp.recommendation import histories

LEVEL = 0.95


class Case:
    """A problem, a policy to judge, and one that makes logs: the shares of random actions of both."""

    def __init__(self, mdp, env, judged, logged, sizes, basis=None, period=None):
        self.mdp, self.env, self.sizes, self.basis = mdp, env, sizes, basis
        Q, legal = rlsvi.mdp.backward_induction(mdp).Q, mdp.table.legal[0]
        period = np.zeros(mdp.states, int) if period is None else period
        greedy = np.eye(mdp.actions)[np.argmax(Q[period, np.arange(mdp.states)], axis=1)]
        uniform = legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)
        self.judged, self.logged = ((1 - share) * greedy + share * uniform for share in (judged, logged))
        self.truth, self.of_log = (self.value(policy) for policy in (self.judged, self.logged))

    def value(self, policy):
        """What a policy is worth, exactly."""
        return float(rlsvi.mdp.evaluate(self.mdp, np.tile(policy, (self.mdp.horizon, 1, 1)))[0] @ self.mdp.start)

    def log(self, episodes, rng):
        """Play all episodes at once."""
        t, parts = self.mdp.table, []
        chances, after, reward = _rows(t)
        s, episode = rng.choice(t.states, size=episodes, p=t.start), np.arange(episodes)
        for h in range(t.horizon):
            a = _drawn(np.cumsum(self.logged[s], axis=1), rng)
            row = s * t.actions + a
            k = _drawn(chances[row], rng)
            ended = t.absorbing[after[row, k]]
            parts.append(
                (episode, np.full(len(s), h), s, a, reward[row, k], after[row, k], ended, self.logged[s, a])
            )
            s, episode = after[row, k][~ended], episode[~ended]
        names = (
            "episode",
            "step",
            "observation",
            "action",
            "reward",
            "next_observation",
            "terminated",
            "propensity",
        )
        columns = dict(zip(names, (np.concatenate(part) for part in zip(*parts, strict=True)), strict=True))
        columns["truncated"] = (columns["step"] == t.horizon - 1) & ~columns["terminated"]
        return pl.DataFrame(columns)


def _rows(t):
    """The cumulative probabilities, successors and rewards of every state and action, padded."""
    many = np.diff(t.indptr)
    k = np.arange(many.max())
    entry = np.minimum(t.indptr[:-1, None] + k, len(t.successor) - 1)
    chances = np.where(k < many[:, None], t.probability[entry], 0.0)
    return np.cumsum(chances, axis=1), t.successor[entry], t.reward[entry]


def _drawn(cumulative, rng):
    beyond = rng.random(len(cumulative))[:, None] >= cumulative[:, :-1]
    return beyond.sum(axis=1)


def cases():
    """FrozenLake, Taxi and the recommendation model with few products, by a table and by the paper's features."""
    lake = gym.make("FrozenLake-v1")
    taxi = gym.make(max(name for name in gym.registry if name.startswith("Taxi-v")))
    one_hot = rlsvi.bases.StateFeatures(lambda s: np.eye(16)[s])
    shop = rlsvi.mdp.recommendation(6, 3, seed=1)
    period = np.append((histories(6, 3) != 0).sum(axis=1), 2)
    of_shop = shop, rlsvi.envs.FiniteMDPEnv(shop), 0.1, 1.0, (30, 100, 300, 1000)
    return {
        "FrozenLake": Case(rlsvi.mdp.from_gymnasium(lake), lake, 0.1, 0.3, (30, 100, 300, 1000)),
        "FrozenLake, features": Case(rlsvi.mdp.from_gymnasium(lake), lake, 0.1, 0.3, (30, 100), one_hot),
        "Taxi": Case(rlsvi.mdp.from_gymnasium(taxi), taxi, 0.0, 0.3, (100, 300)),
        "recommendation": Case(*of_shop, period=period),
        "recommendation, features": Case(*of_shop, rlsvi.bases.Recommendation(), period),
    }


def measured(case, episodes, logs, draws):
    """The estimates (logs, 3) of each estimator, and the median effective number of episodes."""
    found, effective = {}, []
    for i in range(logs):
        log = case.log(episodes, np.random.default_rng([i, episodes]))
        judged = rlsvi.value_of(
            lambda s: case.judged[s], log, case.env, basis=case.basis, level=LEVEL, draws=draws, seed=i
        )
        effective.append(judged.effective)
        for name, interval in judged.estimates.items():
            found.setdefault(name, []).append(interval)
    return {name: np.array(intervals) for name, intervals in found.items()}, float(np.median(effective))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| problem | episodes | effective | estimator | logs | covered | too low | too high | width | bias |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for problem, case in cases().items():
        if given.only and given.only != problem:
            continue
        for episodes in case.sizes:
            begin = time.process_time()
            found, effective = measured(case, episodes, given.logs, given.draws)
            for name, (value, low, high) in ((name, each.T) for name, each in found.items()):
                shares = (low <= case.truth) & (case.truth <= high), high < case.truth, low > case.truth
                print(
                    f"| {problem} | {episodes} | {effective:.0f} | {name} | {len(value)} |",
                    *(f"{share.mean():.3f} |" for share in shares),
                    f"{np.median(high - low):.3g} | {value.mean() - case.truth:+.3f} |",
                    flush=True,
                )
            print(f"<!-- {problem}, {episodes}: {time.process_time() - begin:.0f} s -->", flush=True)
        print(f"<!-- {problem}: judged {case.truth:.4f}, logged {case.of_log:.4f} -->", flush=True)


if __name__ == "__main__":
    main()
