"""Choosing with samples of the posterior, and the file that they are mapped from."""

import numpy as np
import pytest

from rlsvi.core.regression import FactorError
from rlsvi_shop import Recommender
from rlsvi_shop.model.draws import Draws, DrawsFileError, choose, draw_of, order_of, read_draws, write_draws
from rlsvi_shop.model.targets import sign_of, told

N, S, Q, M, D = 9, 5, 2, 3, 4


def made(q=Q, m=M, seed=0):
    rng = np.random.default_rng(seed)
    offered = np.ones(N, np.bool_)
    offered[4] = False
    return Draws(
        weight=rng.standard_normal((S + 1, 1 + q + D + told(m), N)),
        base=rng.standard_normal(4),
        z=rng.standard_normal((N, m)),
        offered=offered,
        shown=rng.integers(0, 9, N),
        value=rng.standard_normal(N),
        spread=rng.random(N),
        beta=rng.standard_normal((S + 1, m * (1 + q + told(m)))),
        customer=np.array(q),
    )


@pytest.mark.parametrize(("q", "m"), [(0, 0), (2, 0), (0, 3), (2, 3)])
def test_choices(q, m):
    draws, rng = made(q, m), np.random.default_rng(1)
    for _ in range(50):
        c, known = rng.standard_normal(q), rng.permutation(N)[: rng.integers(0, 5)]
        x = rng.choice([-1, 1], len(known))
        allowed = rng.random(N) < 0.8
        allowed[known], allowed[8] = False, True
        history, by_answer, last, slot = np.zeros(D), np.zeros((2, m)), np.zeros(m), len(known)
        for n, answer in zip(known, x, strict=True):
            history[n % D] += answer * sign_of(n, D)
            by_answer[int(answer < 0)] += draws.z[n]
            last = answer * draws.z[n]
        h = [[max(2 - slot, 0) / 2], *by_answer, last] if m else []
        Q = np.concatenate([[1.0], c, history, *h]) @ draws.weight
        best = np.where(allowed & draws.offered, Q, -np.inf).argmax(axis=1)
        for draw in range(S + 1):
            found = choose(draws, draw, c, known, x, allowed, slot=slot)
            assert found.product == best[draw]
            assert found.propensity == np.mean(best[1:] == best[draw])
            assert found.explored == (best[draw] != best[0])


def test_ties_are_broken_by_a_random_order_of_each_visit_and_are_neither_the_best_guess_nor_exploration():
    draws, shown = made()._replace(weight=np.zeros((S + 1, 1 + Q + D + told(M), N))), np.zeros((2, N))
    for i in range(2000):
        visit, order, allowed = f"visit {i}", order_of(f"visit {i}", 3), np.arange(N) != 7
        for slot in range(2):
            arguments = draws, draw_of(visit, draws, 3), [0.0] * Q, [], [], allowed, order
            found = choose(*arguments)
            assert found == choose(*arguments)
            assert found.explored is None
            assert found.propensity == pytest.approx(1 / (N - 2 - slot))
            shown[slot, found.product] += 1
            allowed[found.product] = False
    assert shown[:, [4, 7]].sum() == 0  # not offered, and not allowed
    expected = 2000 / (N - 2)
    assert abs(np.delete(shown, [4, 7], axis=1) - expected).max() < 5 * expected**0.5


def test_a_tie_within_a_sample_counts_by_its_parts():
    draws = made(q=0, m=0)._replace(weight=np.zeros((S + 1, 1 + D, N)))
    draws.weight[1:, 0] = np.eye(N)[[2, 2, 7, 5, 5]]
    draws.weight[1, 0, 7] = draws.weight[0, 0, 7] = 1.0
    assert choose(draws, 0, [], [], []).propensity == pytest.approx(1.5 / S)
    assert choose(draws, 2, [], [], []).propensity == pytest.approx(1.5 / S)
    assert {choose(draws, 1, [], [], [], order=order).product for order in range(20)} == {2, 7}


def test_without_a_best_guess_no_choice_is_called_one():
    """Two products are the best of the mean, and a third one the best of a sample: the odds are not those of q."""
    draws = made(q=0, m=0)._replace(weight=np.zeros((S + 1, 1 + D, N)))
    draws.weight[0, 0, [2, 7]] = 1.0
    draws.weight[1:, 0, [2, 2, 7, 5, 5]] = 2.0
    assert [choose(draws, draw, [], [], []).explored for draw in range(S + 1)] == [None] * (S + 1)
    draws.weight[0, 0, 2] = 1.5
    draws.weight[1:, 0] = np.eye(N)[[2, 2, 7, 5, 5]]
    found = [choose(draws, draw, [], [], []).explored for draw in range(S + 1)]
    assert found == [False, False, False, True, True, True]
    alone = np.arange(N) == 7
    assert choose(draws, 1, [], [], [], alone).explored is False


def test_a_visit_keeps_its_sample_and_visits_share_them_evenly():
    draws = made()
    used = [draw_of(f"visit {i}", draws, 3) for i in range(1000)]
    assert used == [draw_of(f"visit {i}", draws, 3) for i in range(1000)]
    assert used != [draw_of(f"visit {i}", draws, 4) for i in range(1000)]
    assert np.bincount(used, minlength=S + 1)[0] == 0
    assert np.bincount(used)[1:].min() > 150


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"c": [0.0]}, "c must be 2"),
        ({"c": [0.0, np.nan]}, "c must be 2"),
        ({"known": [N], "x": [1]}, "known must be"),
        ({"known": [-1], "x": [1]}, "known must be"),
        ({"known": [1], "x": [0.5]}, "known and x"),
        ({"known": [1], "x": []}, "known and x"),
        ({"allowed": np.ones(3, bool)}, "allowed"),
        ({"draw": S + 1}, "draw"),
        ({"draw": -1}, "draw"),
    ],
)
def test_what_does_not_fit_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        choose(**{"draws": made(), "draw": 1, "c": [0.0, 0.0], "known": [], "x": [], **given})


def test_no_product_is_left():
    with pytest.raises(LookupError, match="no product is left"):
        choose(made(), 1, [0.0, 0.0], [], [], np.arange(N) == 4)


def test_values_that_are_not_finite_raise():
    draws = made()
    draws.weight[2] = np.nan
    with pytest.raises(FactorError):
        choose(draws, 1, [0.0, 0.0], [], [])


def test_a_file_gives_back_the_draws_read_only(tmp_path):
    draws, path = made(), tmp_path / "draws.rlsvi"
    write_draws(path, draws, {"event": 7, "products": ["ä", "b"]})
    found, about = read_draws(path)
    assert about == {"event": 7, "products": ["ä", "b"]}
    for one, other in zip(draws, found, strict=True):
        assert one.dtype == other.dtype
        assert (one == other).all()
    assert not found.weight.flags.writeable
    assert choose(found, 2, [0.1, 0.2], [1], [1]) == choose(draws, 2, [0.1, 0.2], [1], [1])


def test_a_new_file_replaces_the_old_one_under_its_readers(tmp_path):
    path = tmp_path / "draws.rlsvi"
    write_draws(path, made(seed=0), {})
    old = read_draws(path).draws
    write_draws(path, made(seed=1), {})
    assert (old.weight == made(seed=0).weight).all()
    assert (read_draws(path).draws.weight == made(seed=1).weight).all()
    assert [file.name for file in tmp_path.iterdir()] == ["draws.rlsvi"]


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "draws.rlsvi"
    write_draws(path, made(), {"event": 7})
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    cuts = [whole[:size] for size in (0, 5, 14, 31, 200, len(whole) - 64, len(whole) - 1)]
    damaged = [*cuts, whole + b"\0" * 64, b"[" * 40 + whole]
    beginning = whole.index(b"}}") + 64  # the lines, the header and its padding: every byte
    for place in [*range(beginning), *rng.integers(0, len(whole), 200)]:
        damaged.append(whole[:place] + bytes([whole[place] ^ 1 << rng.integers(8)]) + whole[place + 1 :])
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(DrawsFileError):
            read_draws(path)


@pytest.mark.parametrize(
    "change",
    [
        {"weight": np.full((S + 1, 1 + Q + D + told(M), N), np.nan)},
        {"z": np.zeros((N - 1, M))},
        {"offered": np.ones(N + 1, np.bool_)},
        {"customer": np.array(1 + Q + D)},
        {"customer": np.array(-1)},
        {"base": np.full(4, np.inf)},
    ],
)
def test_a_file_whose_arrays_do_not_belong_together_is_refused(tmp_path, change):
    write_draws(tmp_path / "draws.rlsvi", made()._replace(**change), {})
    with pytest.raises(DrawsFileError):
        read_draws(tmp_path / "draws.rlsvi")


def test_a_shop_of_which_nothing_is_known_shows_products_at_random_and_says_so(tmp_path):
    with Recommender(database=f"sqlite:///{tmp_path}/shop.db", slots=3) as shop:
        shop.add_all({f"p{i}": None for i in range(8)})
        runs = sum(_is_run(shop.recommend(f"visit {i}", count=3)) for i in range(100))
        events = shop.events.since(0, 1000)
    assert runs < 15  # of 336 orders 6 are runs; all visits were before ties had an order of their own
    for event in events[8:]:
        assert event.propensity == pytest.approx(1 / (8 - event.slot))
    assert len({event.product for event in events[8:] if event.slot == 0}) == 8


def _is_run(products):
    numbers = [int(product[1:]) for product in products]
    return numbers == list(range(numbers[0], numbers[0] + 3))


def visits_of(story, s, slots):
    """Every visit that sample s can make, and its probability: product after product, ties one by one."""
    found = {(): 1.0}
    for slot in range(slots):
        longer = {}
        for shown, chance in found.items():
            values = [(-np.inf if a in shown else value) for a, value in enumerate(story(slot, shown)[s])]
            ties = np.flatnonzero(np.array(values) == max(values))
            longer |= {(*shown, int(a)): chance / len(ties) for a in ties}
        found = longer
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_propensities_of_a_visit_are_those_of_the_slow_twin_and_add_up_to_one(seed):
    """Samples with ties are replaced before the last slot, and an answer arrives after the first one."""
    rng, products, samples, slots = np.random.default_rng(seed), 4, int(2 + seed % 4), 3
    first, later = (rng.integers(0, 3, (samples + 1, 1 + products, products)).astype(float) for _ in range(2))

    def draws(weight):
        few = {
            "offered": np.ones(products, bool),
            "z": np.zeros((products, 0)),
            "beta": np.zeros((samples + 1, 0)),
        }
        return made(q=0, m=0)._replace(weight=weight, **few)

    def story(slot, shown):
        return (first if slot < 2 else later)[:, 0] + sum(
            (first if slot < 2 else later)[:, 1 + a] for a in shown[:1]
        )

    every = [visits_of(story, s, slots) for s in range(1, samples + 1)]
    total = {visit: np.mean([one.get(visit, 0.0) for one in every]) for visit in set().union(*every)}
    assert sum(total.values()) == pytest.approx(1.0)
    seen, tries = {}, 3000
    for i in range(tries):
        name, shown, agreeing, product = f"v{i}", (), None, 1.0
        for slot in range(slots):
            those = draws(first if slot < 2 else later)
            draw, order = draw_of(name, those, seed), order_of(name, seed) ^ slot
            allowed = ~np.isin(np.arange(products), shown)
            found = choose(those, draw, [], shown[:1], [1] * len(shown[:1]), allowed, order, agreeing=agreeing)
            shown, agreeing, product = (*shown, found.product), found.agreeing, product * found.propensity
        assert every[draw - 1][shown] > 0
        assert product == pytest.approx(total[shown])
        relative = np.array([one.get(shown, 0.0) for one in every])
        assert agreeing == pytest.approx(relative / relative.max())
        seen[shown] = seen.get(shown, 0) + 1
    for shown, chance in total.items():
        assert abs(seen.get(shown, 0) - tries * chance) < 5 * (tries * chance) ** 0.5 + 1


def test_samples_of_another_number_or_seed_tell_no_propensity():
    draws = made(q=0, m=0)
    first = choose(draws, 2, [], [], [])
    assert choose(draws, 2, [], [], [], None, 0, 0, first.agreeing).propensity is not None
    for other in ([], [1.0] * (S + 1), [1.0, 0.0, 1.0, 1.0, 1.0]):
        found = choose(draws, 2, [], [], [], None, 0, 0, other)
        assert (found.propensity, found.agreeing, found.product) == (None, None, first.product)
