"""Bases: tables, arrays, the paper's two random bases against their text, features of observations."""

import itertools
import math

import gymnasium
import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures

import rlsvi
from rlsvi.bases import (
    ActionFeatures,
    Dense,
    Features,
    FeatureTable,
    StateFeatures,
    Tabular,
    Transformer,
    agnostic,
    bound,
    coherent,
)
from rlsvi.bases.basis import is_from_table
from rlsvi.core import elementary
from rlsvi.core.checks import LARGEST_NUMBER
from rlsvi.mdp import backward_induction
from values import action_values

H, S, A = 4, 5, 2


@pytest.fixture(scope="module")
def Q():
    return backward_induction(rlsvi.mdp.chain(S)).Q


# ---- tabular and dense ------------------------------------------------------------------------------------


def test_a_table_has_a_block_of_one_weight_for_each_state_and_action():
    features = Tabular().bind(S, A, H, 0)
    assert (features.blocks, features.dim) == (S * A, 1)
    assert sorted(features.table.block.ravel()) == list(range(S * A))
    assert np.array_equal(features.table.phi, np.ones((1, S, A, 1)))


def test_a_table_needs_numbered_states():
    with pytest.raises(ValueError, match=r"Discrete.*StateFeatures"):
        Tabular().bind(None, A, H, np.zeros(3))


@pytest.mark.parametrize("shape", [(S, A, 3), (H, S, A, 3), (1, S, A, 3)])
def test_dense_takes_one_array_or_one_a_period(shape):
    phi = np.random.default_rng(0).standard_normal(shape)
    features = Dense(phi).bind(S, A, H, 0)
    assert (features.blocks, features.dim) == (1, 3)
    each = np.broadcast_to(phi, (H, S, A, 3))
    for h in range(H):
        for s in range(S):
            block, rows = features.at(h, s)
            assert np.array_equal(rows, each[h, s])
            assert block.tolist() == [0, 0]


@pytest.mark.parametrize("shape", [(S, A), (A, S, 3), (H + 1, S, A, 3), (S, A + 1, 3), (1, H, S, A, 3)])
def test_dense_refuses_other_shapes(shape):
    with pytest.raises(
        ValueError, match=r"phi must have shape \(S, A, K\) or \(H, S, A, K\) with S = 5, A = 2, H = 4"
    ):
        Dense(np.zeros(shape)).bind(S, A, H, 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_dense_refuses_features_that_are_not_finite(bad):
    phi = np.zeros((S, A, 3))
    phi[2, 1, 0] = bad
    with pytest.raises(ValueError, match="must be finite, got NaN"):
        Dense(phi).bind(S, A, H, 0)


def test_the_arrays_of_a_basis_are_as_compiled_code_wants_them():
    phi = np.asfortranarray(np.ones((S, A, 3), dtype=np.float32))
    table = Dense(phi).bind(S, A, H, 0).table
    assert table.phi.flags.c_contiguous
    assert table.phi.dtype == np.float64
    assert table.block.dtype == np.int32


# ---- coherent ---------------------------------------------------------------------------------------------


def appendix_c(Q, K, seed):
    """Algorithm "Generating a random coherent basis", line by line, with the projection written out."""
    H, S, A = Q.shape
    rng = np.random.default_rng(seed)
    Psi = rng.standard_normal((H * S * A, K))  # 1
    Psi[:, 0] = 1  # 2
    stacked = np.concatenate([Q[h].ravel() for h in range(H)])  # 3
    Psi[:, 1] = stacked  # 4
    P = Psi @ np.linalg.inv(Psi.T @ Psi) @ Psi.T  # 5
    W = rng.standard_normal((H * S * A, K))  # 6
    W[:, 0] = 1  # 7
    W_P = P @ W  # 8
    for k in range(K):
        W_P[:, k] = W_P[:, k] / np.sqrt((W_P[:, k] ** 2).sum()) * (H * S * A)  # 9
    return W_P.reshape(H, S, A, K)  # 10


@pytest.mark.parametrize(("K", "seed"), [(2, 0), (3, 1), (10, 2), (40, 3)])
def test_coherent_is_the_algorithm_of_appendix_c(Q, K, seed):
    # Both are exact but for rounding, which the projection's inverse magnifies by the condition of Psi'Psi.
    np.testing.assert_allclose(coherent(Q, K, seed=seed).phi, appendix_c(Q, K, seed), rtol=0, atol=1e-7)


@pytest.mark.parametrize(("scale", "norm"), [("HSA", H * S * A), ("sqrt(HSA)", math.sqrt(H * S * A))])
@pytest.mark.parametrize("K", [2, 6])
def test_a_coherent_basis_spans_1_and_Q_with_scaled_independent_columns(Q, K, scale, norm):
    columns = coherent(Q, K, scale=scale, seed=4).phi.reshape(-1, K)
    np.testing.assert_allclose(np.linalg.norm(columns, axis=0), norm, rtol=1e-14)
    assert np.linalg.matrix_rank(columns) == K
    for target in (np.ones(Q.size), Q.ravel()):
        weights, *_ = np.linalg.lstsq(columns, target, rcond=None)
        assert np.abs(columns @ weights - target).max() < 1e-12


@pytest.mark.parametrize(("scale", "norm"), [("HSA", S * A), ("sqrt(HSA)", math.sqrt(S * A))])
@pytest.mark.parametrize("K", [2, 6, S * A, S * A + 3])
def test_a_coherent_basis_per_period_spans_1_and_Q_in_each_period_alone(Q, K, scale, norm):
    phi = coherent(Q, K, scale=scale, per_period=True, seed=4).phi
    assert phi.shape == (H, S, A, K)
    for h in range(H):
        columns = phi[h].reshape(-1, K)
        np.testing.assert_allclose(np.linalg.norm(columns, axis=0), norm, rtol=1e-13)
        assert np.linalg.matrix_rank(columns) == min(K, S * A)
        for target in (np.ones(S * A), Q[h].ravel()):
            weights, *_ = np.linalg.lstsq(columns, target, rcond=None)
            assert np.abs(columns @ weights - target).max() < 1e-11
    assert not np.allclose(phi[0], phi[1])


def test_the_first_period_of_a_basis_per_period_is_appendix_c_with_one_period(Q):
    first = coherent(Q, 4, per_period=True, seed=3).phi[0]
    np.testing.assert_allclose(first, appendix_c(Q[:1], 4, 3)[0], rtol=0, atol=1e-9)


def test_a_coherent_basis_spans_nothing_else_in_particular(Q):
    """Another problem's values are not in the span of 6 of 40 directions."""
    columns = coherent(Q, 6).phi.reshape(-1, 6)
    target = np.random.default_rng(0).standard_normal(Q.size)
    weights, *_ = np.linalg.lstsq(columns, target, rcond=None)
    assert np.linalg.norm(columns @ weights - target) > 0.5 * np.linalg.norm(target)


def test_the_seed_draws_the_coherent_basis(Q):
    assert np.array_equal(coherent(Q, 3, seed=1).phi, coherent(Q, 3, seed=1).phi)
    assert not np.allclose(coherent(Q, 3, seed=1).phi, coherent(Q, 3, seed=2).phi)


def test_illegal_actions_count_as_zero():
    Q = np.arange(12.0).reshape(2, 3, 2)
    masked = Q.copy()
    masked[0, 1, 1], Q[0, 1, 1] = -np.inf, 0
    assert np.array_equal(coherent(masked, 3).phi, coherent(Q, 3).phi)
    assert np.array_equal(agnostic(masked, 3, 0.1).phi, agnostic(Q, 3, 0.1).phi)


def test_coherent_names_an_unknown_scale(Q):
    with pytest.raises(ValueError, match='scale must be "HSA"'):
        coherent(Q, 3, scale="one")


# ---- agnostic ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rho_is", "std"), [("variance", math.sqrt(0.09)), ("std", 0.09)])
def test_an_agnostic_basis_is_Q_with_noise_of_the_size_asked_for(Q, rho_is, std):
    K = 5000
    noise = agnostic(Q, K, 0.09, rho_is=rho_is, seed=0).phi - Q[..., None]
    n = noise.size
    # Standard errors: std / sqrt(n) of the mean, std / sqrt(2 n) of the standard deviation; 4 of them.
    assert abs(noise.mean()) < 4 * std / math.sqrt(n)
    assert abs(noise.std() - std) < 4 * std / math.sqrt(2 * n)
    # At each of the 40 entries too: 5 standard errors.
    assert np.abs(noise.mean(axis=-1)).max() < 5 * std / math.sqrt(K)


def test_an_agnostic_basis_without_noise_is_Q(Q):
    assert np.array_equal(agnostic(Q, 3, 0.0).phi, np.repeat(Q[..., None], 3, axis=-1))


def test_the_seed_draws_the_agnostic_basis(Q):
    assert np.array_equal(agnostic(Q, 3, 0.1, seed=1).phi, agnostic(Q, 3, 0.1, seed=1).phi)
    assert not np.allclose(agnostic(Q, 3, 0.1, seed=1).phi, agnostic(Q, 3, 0.1, seed=2).phi)


@pytest.mark.parametrize("rho", [-0.1, np.nan, np.inf])
def test_agnostic_names_a_wrong_rho(Q, rho):
    with pytest.raises(ValueError, match="rho must be finite and not negative"):
        agnostic(Q, 3, rho)


def test_agnostic_names_wrong_features_and_an_unknown_reading(Q):
    with pytest.raises(ValueError, match="features must be a whole number of at least 1"):
        agnostic(Q, 0, 0.1)
    with pytest.raises(ValueError, match='rho_is must be "variance" or "std"'):
        agnostic(Q, 3, 0.1, rho_is="precision")


# ---- features of observations -----------------------------------------------------------------------------


def test_state_features_have_a_block_an_action():
    features = StateFeatures(lambda x: [1.0, x[0], x[0] * x[1]]).bind(None, 3, 7, np.zeros(2))
    assert (features.blocks, features.dim, features.table) == (3, 3, None)
    block, phi = features.at(0, np.array([2.0, 5.0]))
    assert block.tolist() == [0, 1, 2]
    assert phi.tolist() == [[1.0, 2.0, 10.0]] * 3


def test_action_features_have_one_block():
    features = ActionFeatures(lambda x, a: [x, a, x * a]).bind(None, 3, 7, 1.0)
    assert (features.blocks, features.dim, features.table) == (1, 3, None)
    block, phi = features.at(0, 2.0)
    assert block.tolist() == [0, 0, 0]
    assert phi.tolist() == [[2, 0, 0], [2, 1, 2], [2, 2, 4]]


@pytest.mark.parametrize("basis", [StateFeatures(lambda s: [1, s]), ActionFeatures(lambda s, a: [s, a])])
def test_features_of_numbered_states_are_a_table(basis):
    features = basis.bind(S, A, H, 0)
    assert features.table.phi.shape == (1, S, A, 2)
    for s in range(S):
        block, phi = features.at(3, s)
        assert np.array_equal(features.table.phi[0, s], phi)
        assert np.array_equal(features.table.block[s], block)
        assert (phi[1, 1] == s) or (phi[1].tolist() == [s, 1])


def kinds(function):
    return [StateFeatures(function), ActionFeatures(lambda x, a: function(x))]


@pytest.mark.parametrize("basis", kinds(lambda x: [1.0, np.nan] if x > 2 else [1.0, x]))
def test_features_that_are_not_finite_are_refused(basis):
    features = basis.bind(None, A, H, 0.0)
    with pytest.raises(ValueError, match="what function returns must be finite"):
        features.at(0, 3.0)
    with pytest.raises(ValueError, match="must be finite, got NaN"):
        basis.bind(S, A, H, 0)


@pytest.mark.parametrize("basis", kinds(lambda x: [1.0] * (2 + int(x > 2))))
def test_features_of_changing_length_are_refused(basis):
    features = basis.bind(None, A, H, 0.0)
    with pytest.raises(ValueError, match="same number of features: 2 at first, now 3"):
        features.at(0, 3.0)
    with pytest.raises(ValueError, match="same number of features"):
        basis.bind(S, A, H, 0)


@pytest.mark.parametrize("basis", kinds(lambda x: [[1.0, x]]) + kinds(lambda x: x))
def test_features_that_are_no_vector_are_refused(basis):
    with pytest.raises(ValueError, match="function must return a vector"):
        basis.bind(None, A, H, 0.0)


@pytest.mark.parametrize("basis", [*kinds(lambda x: []), Dense(np.zeros((S, A, 0)))])
def test_a_basis_without_features_is_refused(basis):
    with pytest.raises(ValueError, match="feature"):
        basis.bind(S, A, H, 0)


# ---- scikit-learn -----------------------------------------------------------------------------------------

POINTS = np.random.default_rng(0).uniform(-1, 1, (20, 2))


@pytest.mark.parametrize(
    "transformer",
    [PolynomialFeatures(2), RBFSampler(n_components=7, random_state=0)],
    ids=["PolynomialFeatures", "RBFSampler"],
)
def test_a_fitted_transformer_serves_as_features(transformer):
    expected = transformer.fit(POINTS).transform(POINTS)
    features = Transformer(transformer).bind(None, 3, H, POINTS[0])
    assert (features.blocks, features.dim) == (3, expected.shape[1])
    for point, row in zip(POINTS, expected, strict=True):
        block, phi = features.at(0, point)
        assert block.tolist() == [0, 1, 2]
        # Products of other shapes may sum in another order: about eps for each of the few terms, all of size one.
        np.testing.assert_allclose(phi, np.tile(row, (3, 1)), rtol=0, atol=64 * np.finfo(float).eps)


def test_a_transformer_may_return_sparse_rows():
    encoder = OneHotEncoder().fit(np.arange(S).reshape(-1, 1))
    features = Transformer(encoder).bind(S, A, H, 0)
    assert (features.blocks, features.dim) == (A, S)
    assert np.array_equal(features.table.phi[0, :, 1], np.eye(S))


def test_an_agent_learns_through_a_transformer_of_states_as_through_a_table():
    """One hot states with a block an action are a table in another order: the same mean values."""
    problem = rlsvi.problems.chain(S)
    encoder = OneHotEncoder().fit(np.arange(S).reshape(-1, 1))
    agents = [rlsvi.LSVI(explore=rlsvi.EpsilonGreedy(1.0), seed=0, basis=b) for b in (Transformer(encoder), None)]
    for agent in agents:
        rlsvi.simulate.finite.simulate(agent, problem, 50)
    for h in range(H):
        for s in range(S):
            q = [action_values(a, a._plan(True), h, s) for a in agents]
            np.testing.assert_allclose(q[0], q[1], rtol=1e-12)


def test_a_transformer_of_another_dimension_is_refused():
    transformer = PolynomialFeatures(2).fit(POINTS)
    with pytest.raises(ValueError, match="2 features"):
        Transformer(transformer).bind(None, A, H, np.zeros(3))


def test_a_transformer_that_is_not_fitted_is_refused():
    with pytest.raises(ValueError, match="not fitted"):
        Transformer(PolynomialFeatures(2)).bind(None, A, H, np.zeros(2))


def test_a_transformer_must_transform():
    with pytest.raises(TypeError, match="transformer must have a transform method, got int"):
        Transformer(3).bind(None, A, H, np.zeros(2))


def test_what_a_transformer_returns_must_be_finite():
    class Reciprocal:
        def transform(self, X):
            with np.errstate(divide="ignore"):
                return 1 / X

    features = Transformer(Reciprocal()).bind(None, A, H, np.ones(2))
    with pytest.raises(ValueError, match="what transformer returns must be finite"):
        features.at(0, np.zeros(2))


def test_agents_refuse_a_basis_that_does_not_fit_the_problem():
    agent = rlsvi.RLSVI(basis=Dense(np.zeros((S + 1, A, 3))), seed=0)
    with pytest.raises(ValueError, match="phi must have shape"):
        rlsvi.simulate.simulate(agent, rlsvi.problems.chain(S), 1)


# ---- the door: hostile bases ------------------------------------------------------------------------------


class Own:
    """A basis as a user may write it: one block of three features, but for what is said otherwise."""

    def __init__(self, blocks=1, dim=3, at=None, table=None, **more):
        self._features = Features(blocks, dim, at or (lambda h, x: ([0, 0], np.ones((A, 3)))), table, **more)

    def bind(self, states, actions, horizon, example):
        return self._features


def returning(block, phi):
    return lambda h, observation: (block, phi)


PHI, BLOCK = np.ones((A, 3)), np.zeros(A, np.int32)


@pytest.mark.parametrize(
    ("block", "phi"),
    [
        (BLOCK, PHI),
        ([0, 0], [[1, 1, 1], [1, 1, 1]]),
        (BLOCK.astype(np.int64), PHI.astype(np.float32)),
        (BLOCK, np.asfortranarray(PHI)),
        (BLOCK, np.broadcast_to(np.ones(3), (A, 3))),
        (np.zeros(2 * A, np.uint8)[::2], np.ones((A, 6))[:, ::2]),
        (BLOCK, np.full((A, 3), LARGEST_NUMBER)),
    ],
    ids=["plain", "lists", "other types", "by columns", "read only", "strided", "large"],
)
def test_what_fits_comes_through_the_door_as_compiled_code_wants_it(block, phi):
    features = bound(Own(at=returning(block, phi)), None, A, H, 0.0)
    found = features.at(0, 0.0)
    assert [part.dtype for part in found] == [np.int32, np.float64]
    assert all(part.flags.c_contiguous and part.flags.writeable for part in found)
    assert np.array_equal(found[0], block)
    assert np.array_equal(found[1], phi)
    assert not np.shares_memory(found[1], phi)


@pytest.mark.parametrize(
    ("block", "phi", "message"),
    [
        (BLOCK, np.ones((A, 4)), r"Own must have shape \(2, 3\), got \(2, 4\): too wide: dim says 3"),
        (BLOCK, np.ones((A, 2)), r"got \(2, 2\): too narrow: dim says 3"),
        (BLOCK, np.ones((A - 1, 3)), r"got \(1, 3\): there are 2 actions"),
        (BLOCK, np.ones((A + 1, 3)), r"got \(3, 3\): there are 2 actions"),
        (BLOCK, np.ones(3), r"got \(3,\): one row for each action"),
        (BLOCK, np.ones((1, A, 3)), "one row for each action"),
        (BLOCK, np.full((A, 3), np.nan), "must be finite, got NaN"),
        (BLOCK, np.full((A, 3), np.inf), "must be finite"),
        (BLOCK, np.full((A, 3), 2 * LARGEST_NUMBER), "more than 1e"),
        (BLOCK, [[1, 2, 3], [1, 2]], r"Own.at must return blocks \(2,\) and features \(2, 3\)"),
        (BLOCK, "text", "Own.at must return"),
        (BLOCK, None, "Own.at must return|must have shape"),
        (BLOCK, np.ones((A, 3)) * 1j, "Own.at must return"),
        ([0, 1], PHI, r"blocks of Own must be numbered 0..0, got 0..1: count them from 0"),
        ([-1, 0], PHI, r"got -1..0"),
        ([2**40, 0], PHI, "must be numbered"),
        ([0], PHI, r"blocks of Own must have shape \(2,\), got \(1,\)"),
        ([0, 0, 0], PHI, "blocks of Own must have shape"),
        (0, PHI, "blocks of Own must have shape"),
        ([0.0, 0.0], PHI, "must be whole numbers, got float64"),
        ([False, False], PHI, "must be whole numbers, got bool"),
        (["a", "b"], PHI, "must be whole numbers"),
        ([None, None], PHI, "must be whole numbers"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_features_that_do_not_fit_stop_at_the_door(block, phi, message):
    features = bound(Own(at=returning(block, phi)), None, A, H, 0.0)
    with pytest.raises((ValueError, TypeError), match=message):
        features.at(0, 0.0)


@pytest.mark.parametrize("returned", [None, 3, PHI, (BLOCK, PHI, 0), (BLOCK,)])
def test_at_returns_two_things(returned):
    with pytest.raises((TypeError, ValueError), match="Own"):
        bound(Own(at=lambda h, x: returned), None, A, H, 0.0).at(0, 0.0)


def test_an_error_of_the_basis_itself_is_told_as_it_is():
    def at(h, observation):
        raise TypeError("my own mistake")

    with pytest.raises(TypeError, match=r"^my own mistake$"):
        bound(Own(at=at), None, A, H, 0.0).at(0, 0.0)


def table(phi=(1, S, A, 3), block=(S, A), number=0, kind=np.int32):
    return FeatureTable(np.ones(phi), np.full(block, number, kind))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (table((1, S, A, 4)), "the table of Own must have shape .* too wide"),
        (table((1, S, A, 2)), "too narrow"),
        (table((1, S - 1, A, 3)), "there are 5 states"),
        (table((1, S, A + 1, 3)), "there are 2 actions"),
        (table((S, A, 3)), r"must have shape \(1 or H, S, A, d\)"),
        (table((2, S, A, 3)), "with H = 4, got"),
        (table(block=(S,)), r"blocks of the table of Own must have shape \(5, 2\)"),
        (table(block=(A, S)), "blocks of the table of Own must have shape"),
        (table(number=1), r"numbered 0..0, got 1..1"),
        (table(number=-1), r"numbered 0..0"),
        (table(kind=np.float64), "whole numbers"),
        (FeatureTable(np.full((1, S, A, 3), np.nan), np.zeros((S, A), int)), "must be finite"),
        (FeatureTable(np.full((1, S, A, 3), "1"), np.zeros((S, A), int)), "FeatureTable"),
        (FeatureTable(None, None), "FeatureTable"),
        (3, "FeatureTable"),
    ],
)
def test_tables_that_do_not_fit_stop_at_the_door(wrong, message):
    with pytest.raises((ValueError, TypeError), match=message):
        bound(Own(table=wrong), S, A, H, 0)


def test_the_table_decides_where_a_basis_gives_both():
    features = bound(Own(at=returning([7, 7], "nonsense"), table=table((H, S, A, 3))), S, A, H, 0)
    block, phi = features.at(2, 4)
    assert block.tolist() == [0, 0]
    assert phi.tolist() == np.ones((A, 3)).tolist()
    with pytest.raises(ValueError, match="the observations are not numbered"):
        bound(Own(table=table()), None, A, H, 0.0)


def test_a_table_cannot_be_changed_behind_the_door():
    own = table()
    features = bound(Own(table=own), S, A, H, 0)
    own.block[:] = 10**6
    assert (features.table.block == 0).all()


def test_too_small_a_number_of_blocks_is_found_in_the_tables_of_this_package_too():
    given = Tabular().bind(S, A, H, 0)

    class Fewer:
        def bind(self, *_):
            return given._replace(blocks=3)

    with pytest.raises(ValueError, match=r"blocks of the table of Fewer must be numbered 0..2, got 0..9"):
        bound(Fewer(), S, A, H, 0)
    with pytest.raises(ValueError, match="there are 6 states"):
        bound(type("Other", (), {"bind": lambda *_: given})(), S + 1, A, H, 0)


@pytest.mark.parametrize("basis", [Tabular(), Dense(np.ones((H, S, A, 2))), StateFeatures(lambda s: [1, s])])
def test_tables_of_this_package_pass_as_they_are(basis):
    features = bound(basis, S, A, H, 0)
    assert is_from_table(features)
    assert np.shares_memory(features.at(0, 0)[1], features.table.phi)


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (None, "basis must be an object with a method bind.*not None"),
        ("tabular", "not 'tabular'"),
        (Tabular, r"pass Tabular\(..\)"),
        (
            type("Nothing", (), {"bind": lambda *_: None})(),
            "Nothing.bind must return .*Features, got None",
        ),
        (type("Pair", (), {"bind": lambda *_: (1, 3)})(), "Pair.bind must return .*, got tuple"),
        (Own(blocks=0), "the number of blocks of the basis Own must be a whole number of at least 1, got 0"),
        (Own(blocks=1.0), "the number of blocks of the basis Own must be a whole number"),
        (Own(blocks=None), "the number of blocks of the basis Own must be a whole number"),
        (Own(dim=-3), "the number of features .dim. of the basis Own must be a whole number"),
        (Own(dim=10**7), r"10000000 features in 4 periods, take .* GB.*this machine.*use fewer features"),
        (Own(blocks=10**12), "number of blocks of the basis Own must be at most 2147483647"),
        (Own(blocks=2**31), "number of blocks of the basis Own must be at most 2147483647"),
        (Own(at=3), r"must give a function at\(h, observation\), got 3"),
    ],
)
def test_what_is_no_basis_is_refused(basis, message):
    with pytest.raises((TypeError, ValueError), match=message):
        bound(basis, None, A, H, 0.0)


def test_only_agents_that_keep_factors_need_room_for_them():
    with pytest.raises(ValueError, match="GB"):
        bound(Own(dim=10**6), None, A, H, 0.0)
    assert bound(Own(dim=10**6), None, A, H, 0.0, factors=False).dim == 10**6


WHOLE = np.ones((A, 3), np.int8)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"numbers": lambda x: WHOLE, "units": np.ones(2)}, "units of Own must be 3 finite numbers"),
        ({"numbers": lambda x: WHOLE, "units": np.array([1, 0, 1.0])}, "other than 0"),
        ({"numbers": lambda x: WHOLE, "units": None}, "units of Own must be 3"),
        ({"numbers": lambda x: WHOLE[:, :2], "units": np.ones(3)}, r"Own.numbers must return int8\(2, 3\)"),
        ({"numbers": lambda x: WHOLE + 0.5, "units": np.ones(3)}, "Own.numbers must return whole numbers"),
        ({"numbers": lambda x: WHOLE.astype(np.int8 if x else np.int64), "units": np.ones(3)}, "got int8"),
        ({"rewards": lambda x: np.ones(3)}, r"Own.rewards must return float64\(2,\), got float64\(3,\)"),
        ({"rewards": lambda x: np.full(2, np.nan)}, "must be finite"),
    ],
    ids=["few units", "zero", "no units", "narrow", "not whole", "another type", "long", "NaN"],
)
def test_whole_numbers_and_rewards_are_checked_too(more, message):
    def use():
        features = bound(Own(**more), None, A, H, 0.0)
        for observation in (0.0, 1.0):
            for function in (features.numbers, features.rewards):
                if function is not None:
                    function(observation)

    with pytest.raises(ValueError, match=message):
        use()


@pytest.mark.parametrize("rows", [np.ones(3), np.ones((2, 3)), np.ones((1, 0)), np.full((1, 3), np.nan), "rows"])
def test_rows_of_ones_own_that_do_not_fit_are_refused(rows):
    class Rows:
        def rows(self, x):
            return rows

    basis = rlsvi.bases.of(gymnasium.spaces.Box(0.0, 1.0, (2,), np.float64), Rows())
    with pytest.raises(ValueError, match=r"Rows\.rows"):
        basis.bind(None, A, H, np.zeros(2))


def test_waves_and_bumps_have_the_bits_of_plain_python():
    """Cosines and exponentials are our own: those of libraries differ in the last bit."""
    cosine, exp = (getattr(each, "py_func", each) for each in (elementary.cosine, elementary.exp))
    x = np.random.default_rng(0).random((20, 2))
    c = list(itertools.product(range(3), repeat=2))
    size = {(i, j): max(1.0, math.sqrt(i * i + j * j)) for i, j in c}
    wave = {
        (i, j): [cosine(0.0 + u * (i / 2) + v * (j / 2)) / (size[i, j] * size[i, j]) for u, v in x.tolist()]
        for i, j in c
    }
    columns = rlsvi.bases.Fourier(order=2).rows(x).T.tolist()
    assert sorted(columns) == sorted(wave.values())
    centres = np.linspace(0, 1, 4).tolist()
    for row, (u, v) in zip(rlsvi.bases.Radial(17).rows(x).tolist(), x.tolist(), strict=True):
        away = [(u - a) * (u - a) + (v - b) * (v - b) for a, b in itertools.product(centres, repeat=2)]
        assert row == [1.0] + [exp(-0.5 * d / (1 / 3 * (1 / 3))) for d in away]
