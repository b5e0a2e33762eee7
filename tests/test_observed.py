"""Bases of measured and counted observations: against formulas written out, and what they refuse."""

import itertools

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Sequence, Text, Tuple

import rlsvi
from contract.bases import measured_bases
from pages import blocks
from rlsvi import bases
from rlsvi.bases.fourier import chosen, count, frequencies
from rlsvi.bases.layout import grown, layout_of, ranges_of, scaled, vector_of
from rlsvi.core.elementary import exp, log, power

RNG = np.random.default_rng(0)
MIXED = Dict({"place": Box(-1.0, 3.0, (2,), np.float64), "mode": Discrete(3, start=5), "flags": MultiBinary(2)})


# ---- layouts ----------------------------------------------------------------------------------------------


def test_spaces_are_taken_apart():
    layout = layout_of(MIXED)
    assert (layout.low, layout.high) == ([-1.0, -1.0], [3.0, 3.0])
    assert sorted(layout.counts) == [2, 2, 3]
    x = vector_of(layout, {"place": np.array([0.5, 1.0]), "mode": 6, "flags": np.array([1, 0])})
    assert x[:2].tolist() == [0.5, 1.0]
    assert sorted(x[2:].tolist()) == [0.0, 1.0, 1.0]  # 6 is the second mode


def test_tuples_and_multidiscrete_are_counted_from_zero():
    layout = layout_of(Tuple((Discrete(4), MultiDiscrete([2, 3], start=[1, 0]))))
    assert layout.counts == [4, 2, 3]
    assert vector_of(layout, (3, np.array([2, 2]))).tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize("bound", [np.inf, 3.4e38])
def test_a_bound_that_says_nothing_is_none(bound):
    assert layout_of(Box(-bound, bound, (1,), np.float64)).low == [None]


@pytest.mark.parametrize(
    ("space", "observation", "message"),
    [
        (Box(0.0, 1.0, (2,), np.float64), np.array([0.0, np.nan]), "NaN, infinity"),
        (Box(0.0, 1.0, (2,), np.float64), np.zeros(3), r"shape \(2,\)"),
        (Discrete(3), 3, "outside"),
        (MIXED, {"place": np.zeros(2)}, r"it lacks \['flags', 'mode'\]"),
        (Tuple((Discrete(2), Discrete(2))), (1,), "a tuple of 2 parts, got 1"),
    ],
)
def test_observations_are_checked(space, observation, message):
    with pytest.raises(ValueError, match=message):
        vector_of(layout_of(space), observation)


def test_a_space_that_cannot_be_served_says_what_to_do():
    with pytest.raises(ValueError, match=r"observation\['b'\] is Sequence.*FilterObservation"):
        layout_of(Dict({"a": Discrete(2), "b": Sequence(Discrete(2))}))
    with pytest.raises(ValueError, match=r"agent_for.*FlattenObservation"):
        rlsvi.RLSVI(horizon=5, basis=bases.of(Text(5)))._features(rlsvi.envs.task.Task(5, 2, None), "a")


# ---- scaling ----------------------------------------------------------------------------------------------


def test_ranges_follow_what_is_observed_and_keep_bounds():
    ranges = ranges_of([0.0, None], [2.0, None])
    ranges = grown(ranges, np.array([[1.0, -1.0], [2.0, 1.0]]))
    assert ranges.low.tolist() == [0.0, -1.2]  # a tenth of the width more on each side
    assert ranges.high.tolist() == [2.0, 1.2]
    assert grown(ranges, np.array([[9.0, 1.1]])) is None  # a bound of the space stays
    assert scaled(ranges, np.array([9.0, 1.2])).tolist() == [1.0, 1.0]
    assert np.allclose(scaled(ranges, np.array([0.5, 0.0])), [0.25, 0.5])


def test_observed_ranges_stay_within_the_bounds_of_the_space():
    ranges = ranges_of([0.0, -1.0], [2.0, 1.0], observed=True)
    assert np.isnan(ranges.low).all()
    ranges = grown(ranges, np.array([[1.0, 0.0], [1.5, 0.5]]))
    assert ranges.low.tolist() == [0.95, -0.05]
    assert ranges.high.tolist() == [1.55, 0.55]
    ranges = grown(ranges, np.array([[1.9, 7.0]]))  # beyond its bound: taken at it
    assert ranges.high.tolist() == [1.9, 1.0]
    assert grown(ranges, np.array([[1.0, 8.0]])) is None


def test_ranges_grow_a_logarithmic_number_of_times():
    ranges, times = ranges_of([None], [None]), 0
    for x in np.arange(1, 10_001, dtype=float):
        new = grown(ranges, np.array([[x]]))
        ranges, times = new or ranges, times + (new is not None)
        assert ranges.low[0] <= x <= ranges.high[0]
    assert times <= 1 + np.ceil(np.log(10_000 / 2) / np.log(1.5))


# ---- features ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothness", [0.0, 2.0])
def test_fourier_features_are_cosines_of_all_products(smoothness):
    x = RNG.random((5, 3))
    phi = bases.Fourier(order=2, smoothness=smoothness).rows(x)
    expected = {}
    for c in itertools.product(range(3), repeat=3):
        expected[c] = np.cos(np.pi * x @ np.array(c)) / max(1.0, np.linalg.norm(c)) ** smoothness
    assert phi.shape == (5, 27)
    assert np.allclose(np.sort(phi, axis=1), np.sort(np.stack(list(expected.values()), axis=1), axis=1))
    assert np.array_equal(phi[2:3], bases.Fourier(order=2, smoothness=smoothness).rows(x[2:3]))  # bit for bit


@pytest.mark.parametrize("smoothness", [0.5, 1.7, 2.0, 3.0])
def test_fourier_features_have_the_same_bits_on_every_processor(smoothness):
    """The power is made of operations that IEEE 754 defines, and what is exported has the same."""
    basis = bases.Fourier(features=200, smoothness=smoothness)
    size = np.unique(np.maximum(1, np.linalg.norm(list(itertools.product(range(6), repeat=2)), axis=1)))
    plain_exp, plain_log, plain_power = (getattr(it, "py_func", it) for it in (exp, log, power))
    whole = smoothness == int(smoothness)
    expected = [
        1 / (plain_power(x, int(smoothness)) if whole else plain_exp(smoothness * plain_log(x)))
        for x in size.tolist()
    ]
    phi = basis.rows(np.zeros((1, 2)))[0]
    assert np.array_equal(np.unique(phi), expected[::-1])
    assert np.array_equal(basis.arrays(2)["scale"], phi)


@pytest.mark.parametrize(
    ("n", "order", "features", "expected"),
    [
        (4, None, 256, (3, 4)),
        (2, None, 256, (5, 2)),
        (4, 7, 512, (7, 2)),
        (40, None, 256, (5, 1)),
    ],
)
def test_the_budget_decides_what_is_combined(n, order, features, expected):
    assert chosen(n, order, features, None) == expected
    assert count(n, *expected) == bases.Fourier(order, features).rows(np.zeros((1, n))).shape[1] <= features


@pytest.mark.parametrize(("n", "features"), [(6, 256), (4, 100), (5, 300), (22, 254)])
def test_where_not_all_products_fit_the_smoothest_waves_are_taken(n, features):
    waves, size = frequencies(n, None, features, None, 1.0)
    c = 2 * waves.T
    longest = (c**2).sum(axis=1).max()
    assert len(np.unique(c, axis=0)) == len(c) <= features
    if n < 7:  # all up to the longest, and with those just longer the budget would be exceeded
        squares = np.array([np.dot(v, v) for v in itertools.product(range(5), repeat=n)])
        assert (squares <= longest).sum() == len(c)
        assert (squares <= squares[squares > longest].min()).sum() > features
    else:  # pairs are complete
        assert longest == 2
        assert len(c) == 1 + n + n * (n - 1) // 2
    assert np.allclose(size, np.maximum(1, np.linalg.norm(c, axis=1)))


def test_fourier_says_when_nothing_fits():
    with pytest.raises(ValueError, match=r"1001 Fourier features.*features=256"):
        bases.Fourier().rows(np.zeros((1, 1000)))
    with pytest.raises(ValueError, match="smoothness"):
        bases.Fourier(smoothness=-1).rows(np.zeros((1, 2)))


def test_polynomials_span_all_of_their_degree():
    x = RNG.random((40, 2))
    phi = bases.Polynomial(degree=3).rows(x)
    assert phi.shape == (40, 10)
    target = 1 + x[:, 0] ** 2 * x[:, 1] - 3 * x[:, 1] ** 3
    assert np.allclose(phi @ np.linalg.lstsq(phi, target)[0], target)
    with pytest.raises(ValueError, match="lower the degree"):
        bases.Polynomial(degree=30).rows(x)


def test_radial_functions_stand_on_a_grid_or_at_random():
    phi = bases.Radial(features=10).rows(np.array([[0.5, 0.5], [0.0, 1.0]]))  # 3 x 3 and a 1
    assert phi.shape == (2, 10)
    assert phi[:, 0].tolist() == [1.0, 1.0]
    assert np.isclose(np.sort(phi[0])[-2], 1.0)
    assert np.isclose(np.sort(phi[0])[-3], np.exp(-0.5))  # a neighbour is one width away
    assert bases.Radial(features=50).rows(RNG.random((3, 9))).shape == (3, 50)
    with pytest.raises(ValueError, match="width"):
        bases.Radial(width=0.0).rows(np.zeros((1, 2)))


def test_every_grid_of_tiles_has_one_tile_that_holds_a_point():
    x = np.array([[0.0, 0.0], [1.0, 1.0], [0.51, 0.2]])
    phi = bases.Tiles(grids=3, tiles=4).rows(x).reshape(3, 3, 25)
    assert (phi.sum(axis=2) == 1).all()
    assert np.flatnonzero(phi[2, 0]).tolist() == [2 * 5 + 0]
    assert np.flatnonzero(phi[2, 1]).tolist() == [2 * 5 + 0]  # shifted by 1/3 and by 0 (3/3) of a tile
    with pytest.raises(ValueError, match="combines fewer numbers"):
        bases.Tiles().rows(np.zeros((1, 12)))


def test_hashed_tiles_are_tiles_each_with_a_place_of_its_own():
    """Points share as many features as they share tiles, where there are many more places than tiles."""
    x = np.random.default_rng(0).random((60, 3))
    tiles, hashed = bases.Tiles(grids=4, tiles=2, features=4 * 27), bases.HashedTiles(4, 2, features=2**14, seed=1)
    same, found = tiles.rows(x) @ tiles.rows(x).T, hashed.rows(x) @ hashed.rows(x).T
    assert np.array_equal(found, same)  # two of the seeds 0 to 9 have a pair of tiles in one place
    few = bases.HashedTiles(4, 2, features=20).rows(x)
    assert (few @ few.T >= same).all()
    assert not np.array_equal(hashed.rows(x), bases.HashedTiles(4, 2, features=2**14, seed=4).rows(x))
    assert bases.HashedTiles().rows(RNG.random((5, 50))).sum(axis=1).tolist() == [8.0] * 5  # where Tiles refuse


# ---- what every basis of measured numbers promises --------------------------------------------------------


@pytest.fixture(params=measured_bases(), ids=lambda basis: type(basis).__name__)
def measured(request):
    """Every exported basis of measured numbers."""
    return request.param


def test_rows_are_finite_and_do_not_depend_on_one_another(measured):
    x = RNG.random((30, 2))
    phi = measured.rows(x)
    assert phi.dtype == np.float64
    assert np.isfinite(phi).all()
    assert phi.shape == (30, measured.size(2, 10**6))
    assert all(np.array_equal(measured.rows(x[i : i + 1]), phi[i : i + 1]) for i in range(30))
    assert np.array_equal(measured.rows(np.asfortranarray(x)), phi)
    with pytest.raises(ValueError, match="x must"):
        measured.rows(np.zeros(2))


class Wind(gymnasium.Env):
    """A walk on a square, with counted weather; the first number pays."""

    action_space = Discrete(2)
    observation_space = Dict({"x": Box(-np.inf, np.inf, (2,), np.float64), "weather": Discrete(2)})

    def _look(self):
        return {"x": self.x, "weather": int(self.np_random.integers(2))}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = np.zeros(2), 0
        return self._look(), {}

    def step(self, action):
        self.x, self.t = self.x + self.np_random.normal(2 * action - 1, 1.0, 2), self.t + 1
        return self._look(), float(self.x[0]), False, self.t == 12, {}


def test_an_agent_learns_with_it_and_is_saved_at_any_time(measured, tmp_path):
    whole = rlsvi.BoundedRLSVI(basis=measured, seed=0).learn(Wind(), episodes=5)
    rlsvi.BoundedRLSVI(basis=measured, seed=0).learn(Wind(), episodes=3).save(tmp_path / "agent")
    rest = rlsvi.load(tmp_path / "agent").learn(Wind(), episodes=2)
    assert rest.basis == measured
    assert np.array_equal(rest._learner.theta, whole._learner.theta)


def test_what_it_exports_acts_as_the_agent_does(measured, tmp_path):
    agent = rlsvi.BoundedRLSVI(basis=measured, seed=0).learn(Wind(), episodes=3)
    mean = agent._plan(mean=True)
    agent._mean = mean._replace(theta=RNG.normal(size=mean.theta.shape))  # a policy of many turns
    if measured.arrays(2) is None:
        with pytest.raises(ValueError, match=f"{type(measured).__name__}.* cannot be exported, only bases"):
            agent.export(tmp_path / "policy.npz")
        return
    agent.export(tmp_path / "policy.npz")
    reader = {}
    exec(blocks("docs/interoperability.md")[0], reader)
    act = reader["policy"](tmp_path / "policy.npz")
    seen = [{"x": RNG.normal(0, 3, 2), "weather": k % 2} for k in range(100)]
    assert [act(each) for each in seen] == [agent.predict(each, deterministic=True)[0] for each in seen]


# ---- spaces to features -----------------------------------------------------------------------------------


def test_counted_numbers_have_weights_of_their_own():
    basis = bases.of(Dict({"x": Box(0.0, 1.0, (1,), np.float64), "k": Discrete(3)}), bases.Fourier(order=2))
    features = basis.bind(None, 2, 1, {"x": np.array([0.3]), "k": 0})
    assert (features.blocks, features.dim) == (2, 9)
    block, phi = features.at(0, {"x": np.array([0.3]), "k": 1})
    expected = np.zeros(9)
    expected[3:6] = bases.Fourier(order=2).rows(np.array([[0.3]]))[0]
    assert block.tolist() == [0, 1]
    assert np.array_equal(phi, np.stack([expected, expected]))


def test_many_counted_numbers_stand_side_by_side():
    features = bases.of(MultiDiscrete([100, 100])).bind(None, 2, 1, np.array([3, 4]))
    assert np.flatnonzero(features.at(0, np.array([3, 4]))[1][0]).tolist() == [3, 104]


def test_bounds_can_be_given_and_are_needed_by_agents_that_never_look_back():
    space = Box(-np.inf, np.inf, (2,), np.float64)
    with pytest.raises(ValueError, match="give low= and high="):
        bases.of(space).bind(None, 2, 1, np.zeros(2))
    basis = bases.of(space, bases.Fourier(order=1), low=[-1, -1], high=[1, 1])
    assert np.allclose(basis.bind(None, 2, 1, np.zeros(2)).at(0, np.array([1.0, -1.0]))[1][0][[0, 1]], [1, -1])
    with pytest.raises(ValueError, match="2 finite numbers"):
        bases.of(space, low=[0.0])
    with pytest.raises(ValueError, match="below high"):
        bases.of(space, low=[0.0, 1.0], high=[1.0, 1.0])
    with pytest.raises(TypeError, match="Fourier"):
        bases.of(space, "fourier")


def test_the_default_basis():
    assert bases.default(gymnasium.make("FrozenLake-v1")) == bases.Tabular()
    assert isinstance(bases.default(Discrete(10**6)), bases.Observed)
    basis = bases.default(gymnasium.make("MountainCar-v0"))
    assert basis.low == pytest.approx([-1.2, -0.07])


def test_a_stationary_agent_learns_through_the_default_basis_and_is_saved_with_it(tmp_path):
    env = gymnasium.make("MountainCar-v0", max_episode_steps=5)
    agent = rlsvi.StationaryRLSVI(basis=bases.default(env), seed=0).learn(env, episodes=2)
    agent.save(tmp_path / "agent")
    other = rlsvi.load(tmp_path / "agent")
    assert other.basis.layout == agent.basis.layout
    assert other.basis.basis == agent.basis.basis == bases.Radial(features=226)
    x = np.array([-0.5, 0.01])
    assert agent.predict(x, deterministic=True) == other.predict(x, deterministic=True)


def test_waves_approximate_a_gaussian_kernel_at_their_length():
    x, n, many = RNG.random((20, 3)), 3, 16_000
    phi = bases.Waves(features=many, length=2.0, seed=1).rows(x)
    assert phi.shape == (20, 1 + n + many)
    z = 12 * x - 6
    assert np.allclose(phi[:, : 1 + n], np.concatenate([np.ones((20, 1)), 0.3 * z], axis=1))
    apart = ((z[:, None] - z) ** 2).sum(axis=-1)
    assert np.allclose(phi[:, 1 + n :] @ phi[:, 1 + n :].T, np.exp(-0.5 * apart / 2.0**2), atol=0.05)
    assert np.array_equal(phi[3:4], bases.Waves(features=many, length=2.0, seed=1).rows(x[3:4]))  # bit for bit
    with pytest.raises(ValueError, match="length"):
        bases.Waves(length=0.0).rows(x)
