"""The recommender of a shop: wrong calls and arguments change nothing, and memory is what it is said to be."""

import copy
import pickle
from numbers import Integral

import numpy as np
import pytest

from rlsvi.core.random import stream
from rlsvi.shop import Recommender
from rlsvi.shop.size import AT_ONCE, Form, bytes_needed
from shop_twin import FORMS, J, N, arrays_of, come_and_go, made, serve, state


class Whole:
    """A whole number that is neither Python's own nor NumPy's."""

    def __init__(self, value):
        self.value = value

    def __int__(self):
        return self.value


Integral.register(Whole)


def test_no_customer_is_shown_a_product_she_knows():
    shop = made("pooled")
    x = np.array([1, -1, 0, 0, 0, 0, 0])
    shown = [shop.recommend("a", x)] + [shop.recommend("a") for _ in range(3)]
    assert len(set(shown)) == 4
    assert not {0, 1} & set(shown)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda s, a: s.feedback("nobody", a, True), LookupError, "customer 'nobody' is unknown, or was closed"),
        (lambda s, a: s.feedback("done", 0, True), LookupError, "customer 'done' is unknown, or was closed"),
        (lambda s, a: s.close("nobody"), LookupError, "is unknown"),
        (lambda s, a: s.values("nobody"), LookupError, "is unknown"),
        (lambda s, a: s.feedback("ann", 7, True), ValueError, r"product 7 is unknown: there are 0\.\.6"),
        (lambda s, a: s.feedback("ann", -1, True), ValueError, "product must be a whole number"),
        (lambda s, a: s.feedback("ann", 1.5, True), ValueError, "product must be a whole number"),
        (
            lambda s, a: s.feedback("ann", (a[0] + 1) % 7, True),
            ValueError,
            "was not recommended to customer 'ann'",
        ),
        (lambda s, a: s.feedback("bob", a[1], False), ValueError, "has answered product . already"),
        (lambda s, a: s.feedback("ann", a[0], 1), ValueError, "liked must be True or False"),
        (lambda s, a: s.feedback("ann", a[0], float("nan")), ValueError, "liked must be True or False"),
        (lambda s, a: s.feedback("kim", 0, True), ValueError, "was not recommended to customer 'kim'"),
        (lambda s, a: s.recommend("new", [np.nan] * 7), ValueError, "context must be finite"),
        (lambda s, a: s.recommend("new", [0.5] * 7), ValueError, "context must be 7 numbers -1, 0 or 1"),
        (lambda s, a: s.recommend("new", [0] * 6), ValueError, "context must be 7 numbers"),
        (lambda s, a: s.recommend("new", "likes"), ValueError, "context must be a number or an array"),
        (lambda s, a: s.recommend("new", [1] * 7), ValueError, "no product is left that customer 'new'"),
        (lambda s, a: s.recommend("ann", [0] * 7), ValueError, "must come with her first slot"),
        (lambda s, a: s.recommend("kim"), ValueError, "no product is left that customer 'kim'"),
        (lambda s, a: s.recommend("max"), ValueError, "was shown 4 products already: close"),
        (lambda s, a: s.recommend(None), ValueError, "customer must be a string or a whole number"),
        (lambda s, a: s.recommend(True), ValueError, "customer must be a string or a whole number"),
        (lambda s, a: s.expire(0.0), ValueError, "idle must be a positive"),
        (lambda s, a: s.expire(float("nan")), ValueError, "idle must be a positive"),
        (lambda s, a: s.expire(1.0, now=float("nan")), ValueError, "now must be a finite number of seconds"),
        (lambda s, a: s.expire(1.0, now=float("inf")), ValueError, "now must be a finite number of seconds"),
        (lambda s, a: s.expire(1.0, now="noon"), ValueError, "now must be a finite number of seconds"),
        (lambda s, a: s.recommend(1.0), ValueError, "customer must be a string or a whole number"),
        (lambda s, a: s.feedback("ann", True, True), ValueError, "product must be a whole number"),
        (lambda s, a: s.feedback("ann", "0", True), ValueError, "product must be a whole number"),
        (lambda s, a: s.values("max"), ValueError, "was shown 4 products already: close"),
        (lambda s, a: s.values("kim"), ValueError, "no product is left that customer 'kim'"),
        (
            lambda s, a: s.recommend("ann", among=[]),
            ValueError,
            "no product of `among` is left that customer 'ann'",
        ),
        (lambda s, a: s.recommend("ann", among=[a[0]]), ValueError, "no product of `among` is left"),
        (
            lambda s, a: s.recommend("new", among=[7]),
            ValueError,
            r"among must be numbers of products, each of 0\.\.6",
        ),
        (lambda s, a: s.recommend("new", among=3), ValueError, "among must be numbers of products"),
        (lambda s, a: s.recommend("new", among=[True] * 7), ValueError, "among must be numbers of products"),
        (lambda s, a: s.offer([]), ValueError, "products must be at least one"),
        (lambda s, a: s.offer(["book"]), ValueError, "products must be numbers of products"),
        (lambda s, a: s.keep("shop", sync=1), ValueError, "sync must be True or False"),
    ],
)
def test_wrong_calls_are_refused_and_change_nothing(call, error, words):
    shop = made("pooled")
    shop.recommend("done")
    shop.close("done")
    shown = [shop.recommend("ann"), shop.recommend("bob")]
    shop.feedback("bob", shown[1], True)
    shop.recommend("kim", [1, 1, 1, -1, -1, 1, 0])
    for _ in range(J):
        shop.recommend("max")
    before = state(shop)
    with pytest.raises(error, match=words):
        call(shop, shown)
    assert state(shop) == before


@pytest.mark.parametrize("whole", [int, np.int64, np.int32, np.uint8, Whole])
def test_any_whole_number_names_a_customer_and_a_product(whole):
    shop = made("pooled")
    a = shop.recommend(whole(3))
    shop.feedback(whole(3), whole(a), np.bool_(True))
    assert shop.open == [3]
    assert type(shop.open[0]) is int
    shop.close(whole(3))
    assert shop.open == []


def test_customers_not_heard_of_are_closed_and_learned_from():
    shop = made("pooled")
    a = shop.recommend("early")
    shop.feedback("early", a, True)
    shop.recommend("late")
    early, late = (shop._open[name].touched for name in ("early", "late"))
    early[0], late[0] = 100.0, 200.0
    assert shop.expire(50.0, now=120.0) == []
    assert shop.expire(50.0, now=160.0) == ["early"]
    assert shop.open == ["late"]
    assert shop.customers == 1
    assert shop._mind.bias[0].any()


def test_a_visit_without_answers_teaches_nothing():
    shop, other = made("pooled", every=100), made("pooled", every=100)
    for i in range(3):
        shop.recommend(i)
        shop.close(i)
    assert all((a == b).all() for a, b in zip(shop._mind.factor, other._mind.factor, strict=True))


# ---- memory -----------------------------------------------------------------------------------------------


def held(shop):
    return sum(array.nbytes for array in arrays_of(shop).values())


@pytest.mark.parametrize("form", FORMS)
def test_the_memory_told_is_that_of_every_array_it_holds(form, tmp_path):
    shop = made(form, remember=100)
    worked_out = bytes_needed(Form(N, J, shop.pooled, shop.sketch), 100)
    sizes = [shop.bytes]
    assert shop.bytes == held(shop) <= worked_out
    for i in range(5):
        shop.recommend(i, [1, -1, 0, 0, 0, 0, i % 2])
        assert shop.bytes == held(shop)
    sizes.append(shop.bytes)
    serve(shop, 70, name=10)  # the arrays grew
    sizes.append(shop.bytes)
    assert shop.bytes == held(shop)
    assert sizes == sorted(set(sizes))
    serve(shop, 150, name=100)  # and some are forgotten
    assert shop._forgot
    shop.offer([0, 1, 2])
    assert shop.bytes == held(shop)
    shop.save(tmp_path / "shop")
    again = Recommender.load(tmp_path / "shop")
    assert again.bytes == held(again) == shop.bytes
    for customer in shop.open:
        shop.close(customer)
    assert shop.bytes == held(shop) <= worked_out
    assert shop._gone.given.size == 101


def test_memory_is_kept_to_where_contexts_take_more_than_was_thought():
    """The oldest are forgotten, which loses no answer, and at last nobody is let in until others have left."""
    x = [1, 1, -1, 0, 0, 0, 0]
    memory = bytes_needed(Form(N, J, True, None), 200)
    shop = made("pooled", remember=200, memory=memory)
    for i in range(400):
        shop.recommend(i, x)
        shop.close(i)
        assert shop.bytes == held(shop) <= memory
    assert shop._forgot
    assert shop._count < 200
    states = []

    def fill():
        for i in range(1000, 2000):
            states.append(state(shop))
            assert shop.bytes == held(shop) <= memory
            shop.recommend(i, x)

    with pytest.raises(MemoryError, match=r"does not fit in memory = .* close or expire some"):
        fill()
    assert state(shop) == states[-1]
    assert len(states) > AT_ONCE
    assert shop._count > 100  # those who are open take no more of the memory of those who were
    shop.close(1000)
    shop.recommend("another", x)
    for customer in shop.open:
        shop.close(customer)
        assert shop.bytes == held(shop) <= memory


def test_the_memory_that_is_asked_for_is_enough():
    """For as many as are to be remembered, and for others who are open."""
    memory = bytes_needed(Form(N, J, True, None), 200)
    shop, most = made("pooled", remember=200, memory=memory, every=50), 0
    for i in range(AT_ONCE - 1):
        shop.recommend(f"open {i}")
    for i in range(300):
        for _ in range(J):
            shop.recommend(i)
        shop.close(i)
        assert shop.bytes <= memory
        most = max(most, shop._count)
    assert most == 200


@pytest.mark.parametrize("x", [None, [1, 1, -1, 0, 0, 0, 0]])
def test_room_taken_while_a_sample_was_drawn_is_given_back(x, tmp_path):
    memory = bytes_needed(Form(N, J, True, None), 100)
    shop = made("pooled", remember=100, memory=memory, every="later")
    for i in range(60):
        shop.recommend(i, x)
    shop._learning.acquire()  # another thread draws a sample, or saves
    for i in range(60):
        shop.close(i)
    with pytest.raises(MemoryError, match="again when no sample is drawn"):
        come_and_go(shop, 1000, x)
    shop._learning.release()
    assert (shop.open, shop.bytes > memory) == ([], True)
    came = shop.customers
    shop.save(tmp_path / "shop")
    for one in (shop, Recommender.load(tmp_path / "shop")):
        one.recommend("ann", x)
        assert one.bytes == held(one) <= memory
        assert (one._gone.given.size, one.customers) == (101, came)
        assert one._count >= 50  # no more are forgotten than must be
        one.close("ann")
        one.learn()
        assert one.open == []


def test_what_does_not_fit_is_refused_with_what_would():
    with pytest.raises(
        ValueError, match=r"need 20\.. GB in this form.*pass pooled=True \(1\.\d* GB\) or sketch=64"
    ):
        Recommender(500, 20)
    with pytest.raises(ValueError, match="smaller sketch, or remember fewer customers, or raise memory"):
        Recommender(50, 5, memory=1e3)
    assert bytes_needed(Form(500, 20, True, None), 20_000) < 1.1e9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"products": 0}, "products must be a whole number"),
        ({"slots": 8}, "slots must be at most products = 7"),
        ({"sketch": 0}, "sketch must be a whole number"),
        ({"every": 0}, "every must be a whole number"),
        ({"every": "soon"}, 'every must be a whole number of at least 1, "later" or None'),
        ({"every": True}, "every must be a whole number"),
        ({"pooled": "no"}, "pooled must be True or False, got 'no'"),
        ({"clip": 3}, "clip must be True or False, got 3"),
        ({"myopic": None}, "myopic must be True or False"),
        ({"products": 7.0}, "products must be a whole number"),
        ({"slots": "4"}, "slots must be a whole number"),
        ({"sketch": 2.5}, "sketch must be a whole number"),
        ({"baseline": True}, 'baseline must be "recent" or a number'),
        ({"baseline": [0.5]}, 'baseline must be "recent" or a number'),
        ({"baseline": float("nan")}, "baseline must be finite"),
        ({"remember": 1e4}, "remember must be a whole number"),
        ({"memory": "4 GB"}, "memory must be a positive"),
        ({"lam": -1.0}, "lam must be a positive"),
        ({"baseline": "mean"}, 'baseline must be "recent" or a number'),
        ({"baseline": 2.0}, 'baseline must be "recent" or a number'),
        ({"remember": 0}, "remember must be a whole number"),
        ({"memory": float("nan")}, "memory must be a positive"),
        ({"seed": -1}, "seed must be a non-negative"),
    ],
)
def test_wrong_arguments_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        Recommender(**{"products": 7, "slots": 4, **options})


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda shop: pickle.loads(pickle.dumps(shop))])
def test_a_copy_goes_its_own_way(copied, tmp_path):
    shop = made("both", remember=15)
    shop.keep(tmp_path / "shop")
    serve(shop, 20)
    before = state(shop)
    other = copied(shop)
    assert state(other) == before
    serve(other, 20, name=100)
    assert state(shop) == before
    assert other._journal is None


def test_streams_of_choice_and_posterior_are_apart():
    shop = made("exact")
    posterior = shop._streams[1].copy()
    shop.recommend(0)
    assert (shop._streams[1] == posterior).all()
    assert not (shop._streams[0] == stream(np.random.SeedSequence(1).spawn(3)[1])).all()
