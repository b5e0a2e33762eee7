"""A shop that is stopped and started again learns as one that was never stopped."""

import numpy as np
import pytest

from rlsvi_shop import Recommender
from rlsvi_shop.samples import with_catalogue

PRODUCTS = ["tea", "coffee", "cocoa", "juice", "water"]
SCALED = {"low": 0, "high": 10}
RARELY = 10**6  # visits between two samples, so that the tests decide when they are drawn


class RestartedShop:
    """A shop that can be stopped and started again, in a folder of its own.

    `file` is what becomes of the learner's file when the shop stops: it is "kept", "removed", or "older", as after
    a loss of power, when it is not written.
    """

    def __init__(self, folder, url=None, file="kept", every=RARELY, **learning):
        folder.mkdir()
        self._file, self._options = (
            file,
            {
                "database": url or f"sqlite:///{folder}/own.db",
                "folder": str(folder),
                "slots": 3,
                "customer": {"age": SCALED},
                "product": {"price": SCALED},
                "learning": {"draws": 3, "history": 4, **learning},
                "every": every,
            },
        )
        self.shop = Recommender(**self._options)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.shop.stop()

    def restart(self, killed=False):
        if killed or self._file == "older":
            self.shop._follower._stack.close()
            self.shop.events.close()
        else:
            self.shop.stop()
        if self._file == "removed":
            self.shop.settings.file("learner").unlink()
        self.shop = Recommender(**self._options)

    def known(self):
        """All that was learned from events, except for what depends on when samples were drawn."""
        self.shop._follower.catch_up()
        learner = self.shop._follower.learner
        visits = {name: {**vars(visit), "at": None} for name, visit in learner.open.items()}
        learner.chains.statistics.sum_up(learner.chains.visits.arrays())
        statistics = {**vars(learner.chains.statistics), "recent": learner.chains.statistics.recent.tobytes()}
        log = {name: part.tolist() for name, part in learner.chains.visits.arrays()._asdict().items()}
        return learner.last, learner.ignored, learner.products, visits, statistics, log

    def served(self):
        """All numbers that recommendations follow from, those that are told of products, and all that happened."""
        told, events = self.shop.described_products(), self.shop.events.since(0, 10**6)
        happened = [event._replace(at=0.0) for event in events]
        if self.shop.sample is None:
            return told, happened
        # Every request begins with the catalogue of that time.
        sample = with_catalogue(self.shop.sample, self.shop.events.catalogue(), self.shop.settings.product)
        return told, happened, sample.last, sample.names, [part.tobytes() for part in sample.draws]

    def samples(self):
        """All numbers that recommendations follow from, after new samples were drawn."""
        self.shop.learn()
        return [part.tobytes() for part in self.shop.sample.draws]


@pytest.mark.parametrize("file", ["kept", "removed", "older"])
@pytest.mark.parametrize("ended", [0, 1, 2, 64])
def test_a_shop_that_is_restarted_learns_on(tmp_path, url, ended, file, quick_disk):
    with RestartedShop(tmp_path / "a", url, file) as restarted, RestartedShop(tmp_path / "b") as steady:
        for each in (restarted, steady):
            each.shop.add_all(dict.fromkeys(PRODUCTS))
            for visit in range(ended):
                each.shop.recommend(f"ended {visit}", among=["tea"])
                each.shop.feedback(f"ended {visit}", "tea", visit % 2)
                each.shop.close(f"ended {visit}")
            each.shop.recommend("open", {"age": 3}, among=["cocoa"])
        for visit in ("open", "later", "last"):
            restarted.restart()
            assert restarted.shop._follower.learner.last == restarted.shop.events.last()
            for each in (restarted, steady):
                each.shop.recommend(visit, among=["juice"])
                each.shop.feedback(visit, "juice", 1.0)
                each.shop.close(visit)
            assert restarted.known() == steady.known()
        assert restarted.shop._follower.learner.visits == ended + 3


@pytest.mark.parametrize("restarts", [12, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("file", ["kept", "removed", "older"])
def test_random_restarts_equal_a_shop_that_was_never_stopped(tmp_path, url, restarts, file, quick_disk):
    """With the learner's file, samples and recommendations are the same too, if both draw new samples together."""
    rng, options = np.random.default_rng(restarts), {"remember": 5} if file == "kept" else {}
    one, two = RestartedShop(tmp_path / "a", url, file, **options), RestartedShop(tmp_path / "b", **options)
    shown = {}  # by visit that is open: products and whether they were answered
    with one as restarted, two as steady:
        for number in range(restarts):
            for _ in range(rng.integers(0, 10)):
                happen(rng, [restarted.shop, steady.shop], shown, free=file == "kept")
            restarted.restart()
            if file == "kept":
                assert restarted.samples() == steady.samples()
            assert restarted.known() == steady.known(), f"after restart {number}"
        assert steady.shop._follower.learner.visits > restarts / 2


@pytest.mark.parametrize("every", [None, 4])
@pytest.mark.parametrize("restarts", [10, pytest.param(60, marks=pytest.mark.slow)])
def test_a_shop_that_was_stopped_or_killed_decides_as_one_that_was_not(tmp_path, url, restarts, every, quick_disk):
    """It goes on with the samples that it had, and draws new ones when the other one does."""
    rng, options, shown = np.random.default_rng(restarts), {"every": every, "remember": 5}, {}
    one, two = RestartedShop(tmp_path / "a", url, **options), RestartedShop(tmp_path / "b", **options)
    with one as restarted, two as steady:
        for number in range(restarts):
            for _ in range(rng.integers(0, 25)):
                happen(rng, [restarted.shop, steady.shop], shown, free=True)
            if rng.random() < 0.2:
                restarted.shop._follower.save()  # as every two minutes
            restarted.restart(killed=rng.random() < 0.6)
            assert restarted.served() == steady.served(), f"after restart {number}"
        assert steady.shop._follower.learner.visits > 2 * restarts
        assert restarted.samples() == steady.samples()


def test_new_settings_draw_new_samples(tmp_path):
    with RestartedShop(tmp_path / "a") as shop:
        shop.shop.add_all(dict.fromkeys(PRODUCTS))
        shop.shop.recommend("ann")
        shop.shop.close("ann")
        shop.restart()
        assert shop.shop.sample is not None
        shop._options["learning"]["exploration"] = 0.5
        shop.restart()
        assert shop.shop.sample is None
        shop.shop.recommend("bob")
        assert shop.shop.sample is not None


def happen(rng, shops, shown, free):
    """Let the same thing happen in several shops, which are told what to recommend unless they are `free`."""
    kind = rng.random()
    if not shops[0].products or kind < 0.1:
        product = str(rng.choice(PRODUCTS))
        for shop in shops:
            shop.add(product, {"price": len(product)})
    elif len(shops[0].products) > 3 and kind < 0.12:
        product = shops[0].products[0]
        for shop in shops:
            shop.remove(product)
    elif kind < 0.5 or not shown:
        visit = str(rng.choice([*shown, f"visit {rng.integers(2**60)}"]))
        left = [product for product in shops[0].products if product not in shown.get(visit, {})]
        if left and len(shown.get(visit, {})) < 3:
            context = None if visit in shown else {"age": int(rng.integers(10))}
            among = None if free else [str(rng.choice(left))]
            (product,) = {shop.recommend(visit, context, among=among) for shop in shops}
            shown.setdefault(visit, {})[product] = False
    else:
        visit = str(rng.choice(list(shown)))
        waiting = [product for product, answered in shown[visit].items() if not answered]
        if waiting and kind < 0.8:
            shown[visit][waiting[0]] = True
            reward = float(rng.normal())
            for shop in shops:
                shop.feedback(visit, waiting[0], reward)
        else:
            del shown[visit]
            for shop in shops:
                shop.close(visit)
