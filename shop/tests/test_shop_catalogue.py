"""Products that come and go: from the file of the settings, and before the learner knows them."""

import os

import numba
import numpy as np
import pytest
from serving import serving

from rlsvi_shop import Events, Recommender, import_events, judge
from rlsvi_shop.follower import Follower
from rlsvi_shop.model.draws import with_products
from rlsvi_shop.model.learner import ShopLearner
from rlsvi_shop.model.targets import told
from rlsvi_shop.requests import NotFound
from rlsvi_shop.service import worker
from rlsvi_shop.service.processes import load_products
from rlsvi_shop.service.statistics import ShopStatistics
from rlsvi_shop.settings import ShopSettings

PRICE = {"price": {"low": 0, "high": 10}}


def settings(folder, **options):
    (folder / "products.csv").write_text("product,price\ntea,1\ncocoa,9\njuice,\n")
    file = folder / "shop.toml"
    file.write_text('database = "sqlite:///shop.db"\nslots = 2\n[serve]\nproducts = "products.csv"\n')
    found = ShopSettings.from_toml(file).model_dump(exclude={"customer", "product", "reward", "learning"})
    return ShopSettings(**{**found, "product": PRICE, "learning": {"draws": 4, "history": 4}, **options})


def known(where):
    with Events(where.database) as events:
        return {name: (event.kind, event.features) for name, event in events.catalogue().items()}


# ---- the file of products -----------------------------------------------------------------------------------


def test_the_file_adds_what_the_catalogue_never_had(tmp_path):
    where = settings(tmp_path)
    load_products(where)
    first = {"tea": ("added", {"price": 1.0}), "cocoa": ("added", {"price": 9.0}), "juice": ("added", None)}
    assert known(where) == first
    with Recommender(where, learning=False) as shop:
        shop.remove("tea")
        shop.add("cocoa", {"price": 5})
        before = shop.events.last()
    load_products(where)  # the service starts again
    with Events(where.database) as events:
        assert events.last() == before
    (tmp_path / "products.csv").write_text("product,price\ntea,1\ncocoa,9\njuice,3\nwine,7\n")
    load_products(where)
    assert known(where) == {
        "tea": ("removed", None),
        "cocoa": ("added", {"price": 5.0}),
        "juice": ("added", {"price": 3.0}),  # had no features
        "wine": ("added", {"price": 7.0}),
    }


CLICKS = "visit,product,reward\n" + "".join(
    f"v{n},{product},{reward}\n" for n in range(12) for product, reward in (("tea", 1), ("cocoa", 0))
)


def test_imported_clicks_and_the_judge_know_the_features_of_the_file(tmp_path, monkeypatch):
    where = settings(tmp_path)
    (tmp_path / "clicks.csv").write_text(CLICKS.replace("v0,cocoa", "v0,soup"))
    with Events(where.database) as events:
        assert import_events(events, where, tmp_path / "clicks.csv").events == 4 + 12 * 5
    expected = {"tea": {"price": 1.0}, "cocoa": {"price": 9.0}, "juice": None, "soup": None}
    assert {name: features for name, (_, features) in known(where).items()} == expected


def test_the_judge_knows_the_features_of_products_that_were_imported_without_them(tmp_path, monkeypatch):
    where = settings(tmp_path)
    (tmp_path / "clicks.csv").write_text(CLICKS)
    bare = where.model_copy(update={"serve": where.serve.model_copy(update={"products": None})})
    with Events(where.database) as events:
        import_events(events, bare, tmp_path / "clicks.csv")
        before = events.last()
    features, refresh = [], ShopLearner.refresh

    def noted(learner):
        draws = refresh(learner)
        features.append(draws.z.ravel().tolist())
        return draws

    monkeypatch.setattr(ShopLearner, "refresh", noted)
    judge(where)
    assert features == [[-0.8, 0.8]] * 2
    judge(bare)
    assert features[2:] == [[0.0, 0.0]] * 2
    with Events(where.database) as events:
        assert events.last() == before  # judging writes nothing


# ---- products that the samples do not know yet --------------------------------------------------------------


@pytest.fixture
def server(tmp_path):
    """A process that serves with samples which learned that dear products are liked."""
    where = settings(tmp_path, learning={"draws": 4, "history": 4, "exploration": 1.0})
    load_products(where)
    with Recommender(where) as shop:
        shop.add_all({f"p{n}": {"price": n} for n in range(8)})
        for n in range(80):
            for product in shop.recommend(f"v{n}", count=2):
                price = 9.0 if product == "cocoa" else float(product[1:]) if product[0] == "p" else 0.0
                shop.feedback(f"v{n}", product, price / 10)
        shop.remove("p3")
        shop._follower.catch_up()
        shop._follower.publish()
    with Recommender(where, learning=False) as server:
        assert server.renew()
        yield server


def test_a_worker_compiles_nothing_while_it_serves(server, tmp_path, monkeypatch):
    """The code that chooses is loaded before the first request, and is the same for all samples there are."""
    chosen, before, choose = [], [], worker.choose
    monkeypatch.setattr(worker, "choose", lambda draws, *known: chosen.append(draws) or choose(draws, *known))

    def run(started, sockets):
        before.extend(chosen)
        started.should_exit = True  # its thread ends too

    monkeypatch.setattr(worker.uvicorn.Server, "run", run)
    monkeypatch.setattr(worker.signal, "signal", lambda *_: None)
    monkeypatch.setattr(worker.gc, "freeze", lambda: None)
    worker.serve(server.settings, None, os.getppid())
    samples = [*before, server.sample.draws]
    server.add("new", {"price": 4})
    server.recommend("of the new catalogue")
    samples.append(server.sample.draws)
    with Recommender(server.settings) as learning:
        learning.learn()
        samples.append(learning.sample.draws)
    assert len(samples) == 4
    assert len({tuple(map(numba.typeof, draws)) for draws in samples}) == 1


def test_a_product_can_be_recommended_as_soon_as_it_is_added(server):
    with serving(server) as ask:
        many = [{"product": name, "features": {"price": price}} for name, price in (("dear", 10), ("cheap", 0))]
        many += [{"product": "plain"}, {"product": "p3", "features": {"price": 3}}]
        assert ask("PUT", "/products", {"products": many}).status == 200
        for each in many:  # also the one that comes back
            found = ask("POST", "/recommend", {"visit": f"for {each['product']}", "among": [each["product"]]})
            assert (found.status, found.json["products"]) == (200, [each["product"]])
        both = [
            ask("POST", "/recommend", {"visit": f"b{n}", "among": ["cheap", "dear"]}).json["products"][0]
            for n in range(20)
        ]
        assert both == ["dear"] * 20  # known by its features
        assert ask("POST", "/recommend", {"visit": "x", "among": ["nothing"]}).status == 404
        assert ask("DELETE", "/products/dear").status == 200
        gone = ask("POST", "/recommend", {"visit": "y", "among": ["dear"]})
        assert (gone.status, "is offered" in gone.json["error"]) == (409, True)
        assert ask("GET", "/products").status == ask("GET", "/statistics").status == 200
    with Follower(server.settings, server.events) as follower:
        assert follower.learner.ignored == 0
        follower.publish()
    assert server.renew()
    assert server.recommend("z", among=["plain"]) == "plain"


def test_a_shop_that_was_empty_serves_its_first_product(tmp_path):
    where = settings(tmp_path)
    with Follower(where) as follower:
        follower.publish()
    with Recommender(where, learning=False) as server:
        assert server.renew()
        server.add("tea", {"price": 3})
        assert server.recommend("ann") == "tea"
        with pytest.raises(NotFound, match="unknown: add it first"):
            server.recommend("bob", among=["coffee"])


def test_new_products_have_the_weights_that_a_refresh_gives_them_at_first(server):
    draws, z = server.sample.draws, np.array([[0.5], [-1.0]])
    more = with_products(draws, z)
    (m,), q, N = draws.z.shape[1:], int(draws.customer), draws.weight.shape[2]
    for s, beta in enumerate(draws.beta):
        for n in range(2):
            g = beta.reshape(m, 1 + q + told(m)).T @ z[n]  # of (1, c, h)
            expected = np.concatenate([g[: 1 + q], np.zeros(4), g[1 + q :]])
            assert more.weight[s, :, N + n] == pytest.approx(expected)
    assert (more.weight[:, :, :N] == draws.weight).all()
    assert more.offered[N:].all()
    assert np.isnan([more.value[N:], more.spread[N:]]).all()
    assert (more.value[:N] == draws.value).all()


def test_the_value_of_a_product_that_was_added_since_the_samples_is_not_made_up(server):
    server.add("later", {"price": 3})
    assert server.recommend("ann", among=["later"]) == "later"
    listed = {each["product"]: (each["value"], each["spread"]) for each in server.described_products()}
    assert listed.pop("later") == (None, None)
    assert np.isfinite(list(listed.values())).all()
    page = ShopStatistics(server.settings, server.events, lambda: server.sample)
    row = page.current(by="value", descending=False)["products"]["rows"][-1]  # without a number: last
    assert (row["product"], row["value"], row["low"], row["high"]) == ("later", None, None, None)


@pytest.mark.parametrize("name", ["tea", "007", "1_000"])
def test_a_database_of_strings_is_not_served_by_integers(tmp_path, name):
    url = f"sqlite:///{tmp_path}/shop.db"
    with Recommender(database=url) as shop:
        shop.add_all({"12": None, name: None})
    wrong = ShopSettings(database=url, ids="integer")
    for start in (load_products, Recommender, lambda settings: Recommender(settings, learning=False)):
        with pytest.raises(ValueError, match=f"the database has .*'{name}'.* integer: set ids = 'string'"):
            start(wrong)
    with Recommender(database=url) as shop:  # the database was closed, and is as it was
        assert shop.products == ["12", name]
