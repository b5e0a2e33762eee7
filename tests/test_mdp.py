"""Finite MDPs: constructors against hand-computed values, exact solution against brute force, sampling."""

from itertools import product

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsvi import problems
from rlsvi.bases import Dense
from rlsvi.core.random import stream
from rlsvi.mdp import (
    FiniteMDP,
    backward_induction,
    chain,
    deep_sea,
    dirichlet,
    evaluate,
    from_gymnasium,
    river_swim,
)
from rlsvi.mdp.finite import first_state, step, terminal_reward


def successors(mdp, s, a, h=0):
    """The entries of a row, as {(next state, mean reward): probability}; refuses duplicates."""
    t = mdp.table
    row = ((h if t.per_period else 0) * t.states + s) * t.actions + a
    entries = range(t.indptr[row], t.indptr[row + 1])
    found = {(int(t.successor[i]), float(t.reward[i])): float(t.probability[i]) for i in entries}
    assert len(found) == len(entries)
    return found


def brute_value(mdp, h, s, choose):
    """Expected return from (h, s), by going through every trajectory; `choose` reduces the Q of the actions."""
    end = 0.0 if mdp.terminal_reward is None else mdp.terminal_reward[s]
    if h == mdp.horizon or (mdp.absorbing is not None and mdp.absorbing[s]):
        return end
    legal = mdp.table.legal
    q = {
        a: sum(p * (r + brute_value(mdp, h + 1, n, choose)) for (n, r), p in successors(mdp, s, a, h).items())
        for a in range(mdp.actions)
        if legal[h if len(legal) > 1 else 0, s, a]
    }
    return choose(h, s, q)


# ---- constructors -----------------------------------------------------------------------------------------


def test_chain_rows():
    mdp = chain(5)
    assert (mdp.states, mdp.actions, mdp.horizon) == (5, 2, 4)
    assert successors(mdp, 0, 0) == {(0, 0.0): 1.0}
    assert successors(mdp, 2, 1) == {(3, 0.0): 0.8, (1, 0.0): 0.2}
    assert successors(mdp, 4, 1) == {(4, 0.0): 0.8, (3, 0.0): 0.2}


@pytest.mark.parametrize("length", [2, 3, 10, 50])
def test_chain_value_is_the_chance_to_succeed_every_time(length):
    assert backward_induction(chain(length)).V[0, 0] == pytest.approx((1 - 1 / length) ** (length - 1))


@pytest.mark.parametrize("length", [2, 3, 10, 20])
def test_on_a_deterministic_chain_the_optimal_values_are_0_or_1(length):
    """1 where the end is as far away as there are steps left, at most, and the action does not waste them."""
    mdp = chain(length, deterministic=True)
    assert successors(mdp, 0, 1) == {(1, 0.0): 1.0}
    Q = backward_induction(mdp).Q
    for h in range(length - 1):
        for s in range(length):
            for a, after in enumerate((max(s - 1, 0), min(s + 1, length - 1))):
                assert Q[h, s, a] == float(length - 1 - after <= length - 2 - h)


def deep_sea_episode(size, right, actions, move_cost, fails):
    """Deep sea played by its rules: the mean return of one sequence of actions and failures."""
    column, total = 0, 0.0
    for row, (action, failed) in enumerate(zip(actions, fails, strict=True)):
        if action == right[row][column]:
            total += (column == size - 1) - move_cost / size
            column = column if failed else min(column + 1, size - 1)
        else:
            column = max(column - 1, 0)
    return total


@pytest.mark.parametrize("randomize", [False, True])
def test_deep_sea_returns_are_those_of_its_rules(randomize):
    size, cost = 4, 0.3
    right = np.random.default_rng(7).integers(2, size=(size, size)) if randomize else np.ones((size, size))
    mdp = deep_sea(size, move_cost=cost, randomize_actions=randomize, seed=7)
    t, random = mdp.table, stream(0)
    for actions in product(range(2), repeat=size):
        s, total = first_state(t, random), 0.0
        for h, a in enumerate(actions):
            s, r = step(t, h, s, a, random)
            total += r
        assert s == size * size
        assert total == pytest.approx(deep_sea_episode(size, right, actions, cost, [False] * size))


def test_deep_sea_randomizes_actions_by_cell_and_seed():
    rewards = [deep_sea(8, seed=seed).table.expected for seed in (0, 0, 1)]
    assert np.array_equal(rewards[0], rewards[1])
    assert not np.array_equal(rewards[0], rewards[2])
    cells = (rewards[0].reshape(-1, 2)[:-1] != 0).argmax(axis=1)  # the costly action of each cell
    assert 0.2 < cells.mean() < 0.8


@pytest.mark.parametrize("size", [1, 2, 10, 30])
def test_deep_sea_value(size):
    assert backward_induction(deep_sea(size)).V[0, 0] == pytest.approx(0.99)


def test_stochastic_deep_sea_rows():
    N, cost = 4, 0.01 / 4
    mdp = deep_sea(N, stochastic=True, randomize_actions=False)
    assert successors(mdp, 0, 1) == {(N + 1, -cost): 0.75, (N, -cost): 0.25}
    assert successors(mdp, 0, 0) == {(N, 0.0): 1.0}
    assert successors(mdp, N - 1, 1) == {(2 * N - 1, 1 - cost): 1.0}  # the wall: both outcomes are one
    assert successors(mdp, N * N - 1, 1) == {(N * N, 1 - cost): 1.0}
    t = mdp.table
    rows = np.repeat(np.arange(2 * (N * N + 1)), np.diff(t.indptr))
    assert set(rows[t.std > 0] // 2) == {(N - 1) * N, N * N - 1}
    assert set(t.std) == {0.0, 1.0}
    assert t.absorbing.nonzero()[0].tolist() == [N * N]


def test_stochastic_deep_sea_always_right_reaches_the_treasure_by_the_rules():
    size, cost = 4, 0.2
    mdp = deep_sea(size, stochastic=True, move_cost=cost, randomize_actions=False)
    value = evaluate(mdp, np.ones((size, mdp.states), dtype=int))[0, 0]
    expected = 0.0
    for fails in product([False, True], repeat=size):
        odds = np.prod([1 / size if f else 1 - 1 / size for f in fails])
        expected += odds * deep_sea_episode(size, np.ones((size, size)), [1] * size, cost, fails)
    assert value == pytest.approx(expected)
    assert value == pytest.approx((1 - 1 / size) ** (size - 1) - cost)
    assert backward_induction(mdp).V[0, 0] > value  # after a failure it is better to save the cost


def test_river_swim_rows():
    mdp = river_swim()
    assert (mdp.states, mdp.horizon) == (6, 20)
    assert successors(mdp, 0, 0) == {(0, 0.005): 1.0}
    assert successors(mdp, 0, 1) == {(0, 0.0): 0.4, (1, 0.0): 0.6}
    assert successors(mdp, 3, 0) == {(2, 0.0): 1.0}
    assert successors(mdp, 3, 1) == {(2, 0.0): 0.05, (3, 0.0): 0.6, (4, 0.0): 0.35}
    assert successors(mdp, 5, 1) == {(4, 1.0): 0.4, (5, 1.0): 0.6}


def test_river_swim_of_two_states_has_no_middle():
    mdp = river_swim(2, 3)
    assert successors(mdp, 1, 1) == {(0, 1.0): 0.4, (1, 1.0): 0.6}
    near, far = 0.4 * 0.005 + 0.6, 1 + 0.4 * 0.005 + 0.6  # with two steps to go
    assert backward_induction(mdp).V[0, 0] == pytest.approx(0.4 * near + 0.6 * far)


def test_dirichlet_means_and_shapes():
    S, A, H = 4, 3, 400
    mdp = dirichlet(S, A, H, alpha_P=[1.0, 2.0, 3.0, 4.0], alpha_R=(1.0, 3.0), seed=5)
    P, n = mdp.probability.reshape(H * S * A, S), H * S * A
    mean = np.array([0.1, 0.2, 0.3, 0.4])
    error = np.sqrt(mean * (1 - mean) / 11 / n)  # the variance of a Dirichlet of total weight 10
    assert (np.abs(P.mean(axis=0) - mean) < 5 * error).all()
    assert np.abs(P.std(axis=0) / np.sqrt(mean * (1 - mean) / 11) - 1).max() < 0.05
    assert abs(mdp.table.expected.mean() + 0.25) < 5 * np.sqrt(0.25 * 0.75 / 5 / n)
    assert mdp.table.per_period
    assert mdp.start.tolist() == [1, 0, 0, 0]


def test_dirichlet_rewards_are_minus_one_or_zero():
    mdp, random = dirichlet(2, 2, 3, homogeneous=True, start=1, seed=2), stream(1)
    assert not mdp.table.per_period
    assert mdp.horizon == 3
    assert mdp.start.tolist() == [0, 1]
    assert {step(mdp.table, 0, 0, 0, random)[1] for _ in range(200)} == {-1.0, 0.0}


def test_dirichlet_seeds():
    first, same, other = (dirichlet(3, 2, 2, seed=s).probability for s in (0, 0, 1))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


# ---- Gymnasium's toy text ---------------------------------------------------------------------------------


def toy_value(env, horizon):
    """Optimal value by the plainest dynamic programming on P itself, ending wherever `terminated` says so."""
    P, V = env.unwrapped.P, [0.0] * len(env.unwrapped.P)
    for _ in range(horizon):
        V = [
            max(sum(p * (r + (0.0 if done else V[n])) for p, n, r, done in P[s][a]) for a in P[s])
            for s in range(len(V))
        ]
    return float(np.dot(env.unwrapped.initial_state_distrib, V))


def make(name, **options):
    """The newest version that this Gymnasium has."""
    versions = [int(i.split("-v")[1]) for i in gymnasium.registry if i.startswith(f"{name}-v")]
    return gymnasium.make(f"{name}-v{max(versions)}", **options)


@pytest.mark.parametrize(
    ("name", "options", "horizon"),
    [
        ("FrozenLake", {}, 100),
        ("FrozenLake8x8", {}, 200),
        ("FrozenLake", {"is_slippery": False}, 100),
        ("Taxi", {}, 200),
        ("Taxi", {"is_rainy": True}, 200),
        ("CliffWalking", {"is_slippery": True}, 60),
    ],
)
def test_toy_text_values(name, options, horizon):
    env = make(name, **options)
    mdp = from_gymnasium(env, horizon if name == "CliffWalking" else None)
    assert mdp.horizon == horizon
    assert mdp.start @ backward_induction(mdp).V[0] == pytest.approx(toy_value(env, horizon), abs=1e-12)


def test_toy_text_known_values():
    cliff = from_gymnasium(make("CliffWalking"), horizon=50)
    assert cliff.start @ backward_induction(cliff).V[0] == -13
    assert cliff.states == 48
    lake = from_gymnasium(make("FrozenLake", is_slippery=False))
    assert lake.start @ backward_induction(lake).V[0] == 1.0
    assert lake.states == 16
    assert lake.absorbing.nonzero()[0].tolist() == [5, 7, 11, 12, 15]


class Toy:
    """The least that from_gymnasium asks of an environment."""

    spec = None

    def __init__(self, P, start=None):
        self.unwrapped, self.P = self, P
        if start is not None:
            self.initial_state_distrib = np.array(start)


def test_a_state_entered_both_ways_gets_an_end_beside_it():
    P = {
        0: {0: [(0.25, 1, 1.0, True), (0.25, 1, 1.0, False), (0.25, 1, 2.0, True), (0.25, 1, 1.0, True)]},
        1: {0: [(0.5, 2, 0.0, True), (0.5, 0, 4.0, True), (0.0, 2, 0.0, False)]},
        2: {0: [(1.0, 2, 0.0, True)]},
    }
    mdp = from_gymnasium(Toy(P, [1.0, 0.0, 0.0]), horizon=5)
    assert mdp.states == 4
    assert mdp.absorbing.tolist() == [False, False, True, True]  # 2 is only entered to end; 0 is the start
    assert successors(mdp, 0, 0) == {(3, 1.0): 0.5, (1, 1.0): 0.25, (3, 2.0): 0.25}
    assert successors(mdp, 1, 0) == {(2, 0.0): 0.5, (3, 4.0): 0.5}
    assert backward_induction(mdp).V[0, 0] == 0.25 * (1 + 1 + 2 + 1) + 0.25 * 2


def test_toy_text_refusals():
    loop = {0: {0: [(1.0, 0, 0.0, False)]}}
    with pytest.raises(ValueError, match="give horizon"):
        from_gymnasium(make("CliffWalking"))
    with pytest.raises(ValueError, match="no table P"):
        from_gymnasium(make("Blackjack"))
    with pytest.raises(ValueError, match="give `start`"):
        from_gymnasium(Toy(loop), horizon=3)
    with pytest.raises(ValueError, match="shape"):
        from_gymnasium(Toy(loop, [0.5, 0.5]), horizon=3)
    with pytest.raises(ValueError, match=r"actions 0\.\.0"):
        from_gymnasium(Toy({**loop, 1: {1: [(1.0, 0, 0.0, False)]}}, [1.0, 0.0]), horizon=3)
    with pytest.raises(ValueError, match="fickle"):
        from_gymnasium(make("Taxi", fickle_passenger=True))
    assert from_gymnasium(Toy(loop), horizon=3, start=[1.0]).name == "Toy"


# ---- validation -------------------------------------------------------------------------------------------

GOOD_P = np.full((2, 2, 2), 0.5)
GOOD_R = np.zeros((2, 2))


def build(P=GOOD_P, R=GOOD_R, **options):
    return FiniteMDP.from_arrays(P, R, **{"horizon": 3, "start": [1.0, 0.0]} | options)


def changed(array, index, value):
    out = np.array(array, dtype=float)
    out[index] = value
    return out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"P": changed(GOOD_P, (1, 0, 1), 0.4)}, r"state 1, action 0 \(period 0\) sum to 0.9, not to one"),
        ({"P": changed(GOOD_P, (1, 0), (1.5, -0.5))}, "not negative"),
        ({"P": changed(GOOD_P, (1, 0, 1), np.nan)}, "P must be finite"),
        ({"P": np.full((2, 2, 3), 1 / 3)}, "P must have shape"),
        ({"P": GOOD_P[None], "horizon": 3}, "P has 1 periods"),
        ({"horizon": None}, "horizon must be given"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1"),
        ({"R": changed(GOOD_R, (0, 1), np.nan)}, "R must be finite"),
        ({"R": np.zeros(2)}, "R must have shape"),
        ({"start": [0.5, 0.6]}, "start must be probabilities that sum to one"),
        ({"start": [np.nan, 1.0]}, "start must be probabilities"),
        ({"start": [1.0]}, r"start must have shape \(2,\)"),
        ({"terminal_reward": [0.0, np.inf]}, "terminal_reward must be finite"),
        ({"terminal_reward": np.zeros(3)}, "terminal_reward must have shape"),
        ({"absorbing": np.zeros(3, dtype=bool)}, "absorbing must have shape"),
        ({"absorbing": np.array([True, False])}, "absorbing state"),
        ({"legal": np.array([[True, False], [False, False]])}, "no action in state 1"),
        ({"legal": np.ones((2, 3), dtype=bool)}, "legal must have shape"),
        ({"rewards": "poisson"}, 'rewards must be "deterministic" or'),
        ({"rewards": ["gaussian"]}, 'rewards must be "deterministic" or'),
        ({"P": "ab"}, "P must be a number or an array of numbers"),
        ({"R": None}, "R must be a number or an array of numbers"),
        ({"start": None}, "start must be an array of numbers, got None"),
        ({"start": [[1.0], [1.0, 2.0]]}, "start must be an array of numbers"),
        ({"reward_values": None}, "reward_values must be an array of numbers, got None"),
        ({"reward_values": "ab"}, "reward_values must be an array of numbers, got 'ab'"),
        ({"reward_values": 1.0}, r"reward_values must be a pair \(low, high\), got 1.0"),
        ({"reward_std": "wide"}, "reward_std must be an array of numbers"),
        ({"terminal_reward": "ab"}, "terminal_reward must be an array of numbers"),
        ({"legal": "all"}, "legal must be an array of True and False"),
        ({"legal": True}, "legal must have shape"),
        ({"absorbing": [0.5, 0.5]}, "absorbing must be an array of True and False"),
        ({"rewards": "bernoulli", "R": GOOD_R + 2}, "Bernoulli"),
        ({"rewards": "bernoulli", "terminal_reward": [0.0, 2.0]}, "Bernoulli"),
        ({"rewards": "gaussian", "reward_std": -1.0}, "reward_std must not be negative"),
    ],
)
def test_finite_mdp_refuses(options, message):
    build()
    with pytest.raises(ValueError, match=message):
        build(**options)


@pytest.mark.parametrize(
    ("indptr", "successor", "message"),
    [
        ([0, 1], [0, 0], "indptr must have"),
        ([0, 1, 1], [0, 0], "indptr must rise"),
        ([0, 1, 2], [0], "successor must have one entry"),
        ([0, 1, 2], [0, 2], "successor must hold states 0..1"),
        ([0, 1, 2], [-1, 0], "successor must hold states 0..1"),
        ([0, 1, 2], [0, 2**32], "successor must hold states 0..1"),  # which is 0 in 32 bits
        ([0, 1, 2], [0, 2**64], "successor must be an array of whole numbers"),
        ([0, 1, 2], None, "successor must be an array of whole numbers, got None"),
        ("ab", [0, 0], "indptr must be an array of whole numbers, got 'ab'"),
        ([[0], [1]], [0, 0], "indptr must be a vector of whole numbers"),
        ([0, 1, np.uint64(2**63)], [0, 0], "indptr must"),
    ],
)
def test_finite_mdp_refuses_broken_rows(indptr, successor, message):
    with pytest.raises(ValueError, match=message):
        FiniteMDP(3, 2, 1, indptr, successor, [1.0, 1.0], [0.0, 0.0], [1.0, 0.0])


def test_what_was_checked_cannot_be_changed():
    successor, start, legal = np.array([0, 1]), np.array([1.0, 0.0]), np.ones((2, 1), dtype=bool)
    mdp = FiniteMDP(3, 2, 1, [0, 1, 2], successor, [1.0, 1.0], [0.0, 0.0], start, legal=legal)
    successor[:], start[:], legal[:] = 9, 9.0, False  # the caller's own arrays
    assert mdp.table.successor.tolist() == [0, 1]
    assert mdp.table.start.tolist() == [1.0, 0.0]
    assert mdp.table.legal.all()
    for part in (*mdp.table, mdp.successor, mdp.legal):
        if isinstance(part, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                part[...] = 0
    features = Dense(phi := np.ones((2, 1, 3))).bind(2, 1, 3, 0)
    phi[:] = np.nan
    assert (features.table.phi == 1.0).all()
    for part in features.table:
        with pytest.raises(ValueError, match="read-only"):
            part[...] = 0


# ---- exact solution ---------------------------------------------------------------------------------------


@st.composite
def mdps(draw):
    """Small random MDPs with every feature a table can have."""
    S, A, H = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    periods = (H,) if draw(st.booleans()) else ()
    shape = (*periods, S, A)
    P = rng.dirichlet(np.ones(S), size=shape) * (rng.random((*shape, S)) < 0.7)
    P[..., 0] += P.sum(axis=-1) == 0
    P /= P.sum(axis=-1, keepdims=True)
    R = rng.normal(size=P.shape if draw(st.booleans()) else shape)
    start, options = np.ones(S) / S, {}
    if draw(st.booleans()):
        legal = rng.random((H, S, A) if draw(st.booleans()) else (S, A)) < 0.6
        legal[..., 0] |= ~legal.any(axis=-1)
        options["legal"] = legal
    if draw(st.booleans()):
        options["terminal_reward"] = rng.normal(size=S)
    if S > 1 and draw(st.booleans()):
        start = np.eye(S)[0]
        options["absorbing"] = np.arange(S) == S - 1
    return FiniteMDP.from_arrays(P, R, horizon=H, start=start, **options)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(mdps())
def test_backward_induction_is_brute_force(mdp):
    solution = backward_induction(mdp)
    for h, s in np.ndindex(mdp.horizon + 1, mdp.states):
        best = brute_value(mdp, h, s, lambda h, s, q: max(q.values()))
        assert solution.V[h, s] == pytest.approx(best, abs=1e-12)
    acting = ~mdp.table.absorbing
    barred = np.broadcast_to(~mdp.table.legal, solution.Q.shape)
    assert (np.isneginf(solution.Q) == barred)[:, acting].all()


def test_values_have_the_bits_of_plain_python():
    """Products are rounded before they are added, in order, so that the values are the same on every processor."""
    problem = problems.dirichlet(6, 3, 4, seed=1)
    t = problem.mdp.table
    uniform = evaluate(problem.mdp, np.full((4, 6, 3), 1 / 3))
    ahead = {"optimal": [0.0] * 6, "uniform": [0.0] * 6}
    for h in reversed(range(4)):
        Q = {name: np.empty((6, 3)) for name in ahead}
        for name, V in ahead.items():
            for s, a in np.ndindex(6, 3):
                row, total = (h * 6 + s) * 3 + a, 0.0
                for j in range(t.indptr[row], t.indptr[row + 1]):
                    total += float(t.probability[j]) * V[t.successor[j]]
                Q[name][s, a] = float(t.expected[row]) + total
        assert Q["optimal"].tolist() == problem.solution.Q[h].tolist()
        ahead["optimal"] = [max(row) for row in Q["optimal"].tolist()]
        ahead["uniform"] = [1 / 3 * a + 1 / 3 * b + 1 / 3 * c for a, b, c in Q["uniform"].tolist()]
        assert ahead["uniform"] == uniform[h].tolist()
    assert problem.random_regret == ahead["optimal"][0] - ahead["uniform"][0]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(mdps(), st.integers(0, 2**32 - 1))
def test_evaluate_is_brute_force_and_at_most_optimal(mdp, seed):
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    allowed = np.broadcast_to(mdp.table.legal, (H, S, A))
    policy = np.random.default_rng(seed).random((H, S, A)) * allowed
    policy /= policy.sum(axis=2, keepdims=True)
    V = evaluate(mdp, policy)
    for h, s in np.ndindex(H + 1, S):
        value = brute_value(mdp, h, s, lambda h, s, q: sum(policy[h, s, a] * x for a, x in q.items()))
        assert V[h, s] == pytest.approx(value, abs=1e-12)
    assert (V <= backward_induction(mdp).V + 1e-12).all()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(mdps())
def test_the_optimal_policy_is_legal_and_attains_the_optimum(mdp):
    solution = backward_induction(mdp)
    assert solution.policy.any(axis=2).all()
    assert not (solution.policy & ~mdp.table.legal)[:, ~mdp.table.absorbing].any()
    assert evaluate(mdp, solution.policy.argmax(axis=2)) == pytest.approx(solution.V, abs=1e-12)


def test_no_deterministic_policy_beats_the_optimum():
    mdp = dirichlet(2, 2, 3, seed=4)
    values = [
        evaluate(mdp, np.array(policy).reshape(3, 2))[0, 0] for policy in product(range(2), repeat=mdp.horizon * 2)
    ]
    assert max(values) == pytest.approx(backward_induction(mdp).V[0, 0], abs=1e-12)
    assert max(values) > min(values)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.zeros((2, 2), dtype=int), "policy must be integers"),
        (np.full((3, 2), 2), r"actions 0\.\.1"),
        (np.full((3, 2, 2), 0.4), "sum to one"),
        (np.ones((3, 2), dtype=int), "not legal"),
    ],
)
def test_evaluate_refuses(policy, message):
    with pytest.raises(ValueError, match=message):
        evaluate(build(legal=np.array([[True, False], [True, True]])), policy)


# ---- sampling ---------------------------------------------------------------------------------------------

N_DRAWS = 40_000


def close(frequency, p):
    """Within five standard errors of N_DRAWS draws; certain where p is."""
    return abs(frequency - p) <= 5 * np.sqrt(p * (1 - p) / N_DRAWS)


def test_step_draws_successors_and_their_rewards_with_the_given_odds():
    P = np.array([[[0.0, 0.2, 0.3, 0.5]] * 2] * 4)
    R = np.arange(32.0).reshape(4, 2, 4)
    mdp = FiniteMDP.from_arrays(np.stack([P, P[..., ::-1]]), np.stack([R, -R]), start=[0.1, 0.0, 0.6, 0.3])
    random = stream(11)
    for h, s, a in ((0, 1, 0), (1, 2, 1)):
        draws = [step(mdp.table, h, s, a, random) for _ in range(N_DRAWS)]
        assert all(r == (R[s, a, n] if h == 0 else -R[s, a, n]) for n, r in draws)
        odds = P[s, a] if h == 0 else P[s, a, ::-1]
        counts = np.bincount([n for n, _ in draws], minlength=4) / N_DRAWS
        assert all(close(f, p) for f, p in zip(counts, odds, strict=True))
    starts = np.bincount([first_state(mdp.table, random) for _ in range(N_DRAWS)], minlength=4) / N_DRAWS
    assert all(close(f, p) for f, p in zip(starts, mdp.start, strict=True))


def test_bernoulli_rewards():
    mdp = build(R=np.array([[-0.7, 0.0], [-1.0, -0.2]]), rewards="bernoulli", reward_values=(-1, 0))
    random = stream(3)
    for s, a in np.ndindex(2, 2):
        rewards = np.array([step(mdp.table, 0, s, a, random)[1] for _ in range(N_DRAWS)])
        assert set(rewards) <= {-1.0, 0.0}
        assert close(-rewards.mean(), -mdp.table.expected[2 * s + a])


def test_gaussian_rewards_have_their_own_deviation():
    mdp = build(R=GOOD_R + 2, rewards="gaussian", reward_std=np.repeat([0.0, 3.0], 4))
    random = stream(4)
    assert step(mdp.table, 0, 0, 0, random)[1] == 2.0
    rewards = np.array([step(mdp.table, 0, 1, 0, random)[1] for _ in range(N_DRAWS)])
    assert abs(rewards.mean() - 2) < 5 * 3 / np.sqrt(N_DRAWS)
    assert abs(rewards.std() / 3 - 1) < 5 / np.sqrt(2 * N_DRAWS)


def test_terminal_rewards():
    assert terminal_reward(build(terminal_reward=[1.0, 2.5]).table, 1, stream(0)) == 2.5
    assert terminal_reward(build().table, 1, stream(0)) == 0.0
    random = stream(5)
    mdp = build(terminal_reward=[0.0, 0.25], rewards="bernoulli")
    mean = np.mean([terminal_reward(mdp.table, 1, random) for _ in range(N_DRAWS)])
    assert close(mean, 0.25)


def test_the_grid_pays_in_the_far_corner():
    """Without slips, the shortest path of 2 (N - 1) steps is certain to reach it; with them, random play gains."""
    certain = problems.grid(4, slip=0.0, horizon=6)
    assert certain.solution.V[0, 0] == 1.0
    assert certain.solution.policy[0, 0].tolist() == [False, True, True, False]
    assert problems.grid(4, slip=0.0, horizon=5).solution.V[0, 0] == 0.0
    blind = problems.grid(4, slip=1.0)
    assert blind.random_regret == pytest.approx(0.0, abs=1e-12)
    values = [problems.grid(4, slip=slip).solution.V[0, 0] for slip in (0.0, 0.1, 0.5, 1.0)]
    assert values == sorted(values, reverse=True)
    assert problems.grid(3).mdp.horizon == 8
    with pytest.raises(ValueError, match="slip"):
        problems.grid(slip=1.5)
    with pytest.raises(ValueError, match="size"):
        problems.grid(1)
