"""Pairs of pixels: their definition, their scaling, when they are chosen, and whether they help."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import rlsvi
from rlsvi import bases
from rlsvi.agents.practice.bounded_rlsvi import BoundedRLSVI
from rlsvi.bases.layout import layout_of, ranges_of, scaled, seen_in
from rlsvi.bases.observed import picture_in
from rlsvi.bases.pixel_pairs import pairs_of


def slow_bin(d, most):
    """0, +-1, +-2, +-3 for 3 and 4, +-4 for 5 to 8, .., up to +-most."""
    k = sum(abs(d) > least for least in (0, 1, 2, 4, 8, 16))
    return int(np.sign(d)) * min(k, most)


def slow_row(picture, most):
    """The features of a picture (channels, height, width) by the definition; sums in the order of their keys."""
    z, sums = np.sign(picture - 0.5) * (2 * picture - 1) ** 2, {}
    pixels = list(np.ndindex(picture.shape))
    for i, (p, yi, xi) in enumerate(pixels):
        for q, yj, xj in pixels[i + 1 :]:
            key = p, q, slow_bin(yj - yi, most), slow_bin(xj - xi, most)
            sums.setdefault(key, []).append(z[p, yi, xi] * z[q, yj, xj])
    return [10 * sum(sums[key]) / np.sqrt(len(sums[key])) for key in sorted(sums)]


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    ("shape", "features", "most"), [((1, 7, 4), 400, 4), ((2, 4, 5), 400, 3), ((2, 6, 3), 50, 2)]
)
def test_features_are_the_pairs_at_every_displacement(shape, first, features, most):
    picture = np.random.default_rng(0).random((3, *shape))
    channels, height, width = shape
    basis = bases.PixelPairs(height, width, channels, first, features)
    x = (picture if first else np.moveaxis(picture, 1, -1)).reshape(3, -1)
    phi = basis.rows(x)
    assert np.array_equal(phi[:, 0], np.ones(3))
    assert np.allclose(phi[:, 1 : x.shape[1] + 1], 2 * np.sign(x - 0.5) * (2 * x - 1) ** 2)
    expected = np.array([slow_row(one, most) for one in picture])
    assert expected.shape[1] <= features
    assert np.allclose(phi[:, x.shape[1] + 1 :], expected)
    assert np.array_equal(basis.rows(x[1:2]), phi[1:2])  # a row does not depend on others


def test_pairs_do_not_depend_on_where_they_are():
    boards = np.full((2, 9, 9), 0.5)
    boards[0, 0, 0] = boards[0, 3, 1] = 1.0
    boards[1, 5, 6] = boards[1, 8, 7] = 1.0
    phi = bases.PixelPairs(9, 9).rows(boards.reshape(2, -1))[:, 82:]
    assert np.array_equal(phi[0], phi[1])
    assert np.count_nonzero(phi[0]) == 1


@pytest.mark.parametrize("channels", [1, 2, 4, 7, 20])
def test_the_number_of_sums_stays_within_the_budget(channels):
    assert 10 < len(pairs_of(bases.PixelPairs(10, 10, channels)).scale) <= 400
    least = channels * (channels + 1) // 2
    assert len(pairs_of(bases.PixelPairs(3, 3, channels, features=least)).scale) == least
    assert len(pairs_of(bases.PixelPairs(1, 1, 5, features=10)).scale) == 10


def test_all_pixels_of_a_channel_are_scaled_alike_around_their_means():
    rng = np.random.default_rng(0)
    x = 0.1 * rng.normal(size=(200, 5, 6, 2)) + 3
    x[np.arange(200), rng.integers(4, size=200), 2, 0] += 1.0  # one bright pixel in the first channel
    x[..., 1] = 7.0  # nothing ever in the second
    x = x.reshape(200, -1)
    basis = bases.PixelPairs(5, 6, 2)
    ranges = basis.spread(ranges_of([None] * 60, [None] * 60), seen_in(x))
    z = (2 * scaled(ranges, x) - 1).reshape(200, 5, 6, 2)
    assert np.allclose(z.mean(axis=0), 0)
    assert np.abs(z[..., 0]).max() == pytest.approx(1)
    assert np.array_equal(z[..., 1], np.zeros((200, 5, 6)))
    assert z[:, 4, 2, 0].std() < 0.2 < z[:, 0, 2, 0].std()  # noise where nothing ever is stays small
    given = ranges_of([0.0] * 60, [10.0] * 60)
    assert np.array_equal(basis.spread(given, seen_in(x)).low, given.low)


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (Box(0, 1, (10, 5)), bases.PixelPairs(10, 5)),
        (Box(0, 255, (8, 7, 3), np.uint8), bases.PixelPairs(8, 7, 3)),
        (Box(0, 255, (4, 8, 7), np.uint8), bases.PixelPairs(8, 7, 4, True)),
        (Dict(image=Box(0, 1, (7, 7, 3)), direction=Discrete(4)), bases.PixelPairs(7, 7, 3)),
        (Dict(image=Box(0, 1, (7, 7)), speed=Box(0, 1, (1,))), None),
        (Box(0, 1, (50,)), None),
        (Box(-1, 1, (4, 12)), None),  # a stack of vectors
        (Box(-np.inf, np.inf, (6, 6)), None),
        (Box(np.zeros((6, 6)), np.arange(1.0, 37).reshape(6, 6), dtype=np.float64), None),
        (Box(0, 1, (5, 5, 5, 5)), None),
        (Box(0, 1, (60, 60)), None),
    ],
)
def test_what_is_a_picture(space, expected):
    assert picture_in(layout_of(space)) == expected


class Rain(gym.Env):
    """Drops fall, the player in the last row steps aside: 1 for every step until one hits, 50 at most."""

    action_space = Discrete(3)
    observation_space = Box(0.0, 1.0, (6, 6, 2), np.float32)

    def _look(self):
        picture = np.zeros((6, 6, 2), np.float32)
        picture[..., 0], picture[-1, self.at, 1] = self.sky, 1
        return picture

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.sky, self.at, self.t = 1.0 * (self.np_random.random((6, 6)) < 0.1), 3, 0
        return self._look(), {}

    def step(self, action):
        self.t += 1
        self.at = min(max(self.at + int(action) - 1, 0), 5)
        self.sky = np.roll(self.sky, 1, axis=0)
        self.sky[0] = self.np_random.random(6) < 0.1
        hit = bool(self.sky[-1, self.at])
        return self._look(), 0.0 if hit else 1.0, hit, self.t >= 50, {}


@pytest.mark.slow
def test_the_default_agent_takes_pairs_where_pictures_do_not_recur_and_plays_well():
    agent = rlsvi.agent_for(Rain(), seed=0).learn(Rain(), episodes=60)
    assert not agent.uses_table
    assert agent.acting._learner.lookup.functions == bases.PixelPairs(6, 6, 2)
    assert agent.acting.rescalings >= 2
    assert rlsvi.evaluate(agent, Rain(), episodes=30, seed=1).mean > 35  # at random 9, with waves 17


@pytest.mark.parametrize("basis", [None, bases.PixelPairs(6, 6, 2, features=60)])
def test_saving_in_between_changes_nothing(tmp_path, basis):
    whole = BoundedRLSVI(seed=3, basis=basis).learn(Rain(), episodes=7)
    half = BoundedRLSVI(seed=3, basis=basis).learn(Rain(), episodes=3)
    half.save(tmp_path / "half")
    rest = rlsvi.load(tmp_path / "half")
    assert rest.basis == basis
    rest.learn(Rain(), episodes=4)
    assert np.array_equal(rest._learner.theta, whole._learner.theta)
    assert np.array_equal(rest._learner.lookup.ranges.low, whole._learner.lookup.ranges.low)


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (bases.PixelPairs(0, 5), "height must be a whole number of at least 1"),
        (bases.PixelPairs(5, 5.0), "width must be"),
        (bases.PixelPairs(5, 5, [1]), "channels must be"),
        (bases.PixelPairs(5, 5, channels_first=3), "channels_first must be True or False"),
        (bases.PixelPairs(5, 5, features=0), "features must be"),
        (bases.PixelPairs(6, 6, 2, features=2), "6 x 6 in 2 channels has 3 pairs.*features=3 or more.*Grayscale"),
        (bases.PixelPairs(2, 2, 50), "2 x 2 in 50 channels has 1275 pairs of channels, more than features=400"),
        (bases.PixelPairs(84, 84), "7056 pixels.*up to 2048.*ResizeObservation"),
        (bases.PixelPairs(6, 6), "36 numbers, got.*72"),
    ],
)
def test_bad_shapes_are_refused_before_the_first_step(basis, message):
    agent = BoundedRLSVI(seed=0, basis=basis)
    with pytest.raises(ValueError, match=message):
        agent.learn(Rain(), episodes=1)
    assert agent.steps == 0
