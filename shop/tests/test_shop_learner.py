"""From events to samples: what is learned from, what is remembered, what a snapshot gives back."""

import numpy as np
import pytest
import shop_model_twin as twin
from stories import tell, visit

from rlsvi.core.archive import ArchiveError
from rlsvi_shop.events import Event
from rlsvi_shop.model import learner as model
from rlsvi_shop.model.draws import choose, read_draws, write_draws
from rlsvi_shop.model.learner import ShopLearner
from rlsvi_shop.model.snapshots import load_learner, save_learner
from rlsvi_shop.settings import ShopSettings

N, J = 6, 3
SCALED = {"low": -1, "high": 1}


def settings(features=True, **learning):
    return ShopSettings(
        slots=J,
        customer={"age": SCALED} if features else {},
        product={"price": SCALED, "size": SCALED} if features else {},
        learning={"draws": 3, "history": 4, **learning},
    )


def story(visits, seed=0, products=N):
    """Events of visits that overlap, some answered late or never, some closed early."""
    rng, events, waiting = np.random.default_rng(seed), [], {}
    for a in range(products):
        features = {"price": float(rng.uniform(-1, 1)), "size": float(rng.uniform(-1, 1))}
        events.append(Event("added", product=f"p{a}", features=features))
    for i in range(visits):
        waiting[f"v{i}"] = []
        while len(waiting) > 2 or (i == visits - 1 and waiting):
            name = str(rng.choice(list(waiting)))
            shown, kind = waiting[name], rng.random()
            unanswered = [a for a, done in shown if not done]
            if kind < 0.5 and unanswered:
                a = int(rng.choice(unanswered))
                waiting[name] = [(b, done or b == a) for b, done in shown]
                events.append(Event("answered", visit=name, product=f"p{a}", reward=float(rng.normal(a))))
            elif kind < 0.9 and len(shown) < J:
                a = int(rng.choice([a for a in range(products) if a not in [b for b, _ in shown]]))
                context = {"age": float(rng.uniform(-1, 1))} if not shown else None
                events.append(Event("recommended", visit=name, product=f"p{a}", slot=len(shown), features=context))
                shown.append((a, False))
            else:
                events.append(Event("closed", visit=name))
                del waiting[name]
    return [event._replace(id=3 * i + 1, at=float(i)) for i, event in enumerate(events)]


def taught(events, every=40, learner=None, **options):
    learner = learner or ShopLearner(settings(**options))
    for i, event in enumerate(events):
        learner.take(event)
        if i % every == every - 1:
            learner.refresh()
    return learner


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_visits_are_learned_from_as_they_happened():
    learner = ShopLearner(settings(features=False))
    tell(
        learner,
        *(Event("added", product=f"p{a}") for a in range(N)),
        *(Event("recommended", visit="v", product=f"p{a}", slot=a) for a in range(2)),
        Event("answered", visit="v", product="p1", reward=0.0),
        Event("recommended", visit="v", product="p5", slot=2),
        Event("answered", visit="v", product="p0", reward=2.5),
    )
    assert (list(learner.open), learner.visits) == (["v"], 0)
    tell(learner, Event("closed", visit="v"))
    assert (list(learner.open), learner.visits) == ([], 1)
    visits = learner.chains.visits.arrays()
    assert visits.product.tolist() == [0, 1, 5]
    assert visits.x.tolist() == [1, -1, 0]
    assert visits.when[:2].tolist() == [3, 2]
    assert visits.reward.tolist() == [2.5, 0.0, 0.0]


def test_a_visit_ends_with_its_last_answer():
    learner = ShopLearner(settings(features=False))
    tell(
        learner, Event("added", product="a"), Event("added", product="b"), *visit("v", closed=False, a=1.0, b=1.0)
    )  # there are fewer products than slots
    assert (learner.visits, learner.open) == (1, {})


@pytest.mark.parametrize(
    "event",
    [
        Event("answered", visit="gone", product="p0", reward=1.0),
        Event("answered", visit="v", product="p3", reward=1.0),
        Event("answered", visit="v", product="p0", reward=1.0),
        Event("answered", visit="v", product="?", reward=1.0),
        Event("recommended", visit="v", product="p0", slot=1),
        Event("recommended", visit="v", product="p1", slot=2),
        Event("recommended", visit="v", product="?", slot=1),
        Event("recommended", visit="new", product="p1", slot=1),
        Event("removed", product="?"),
    ],
)
def test_what_does_not_fit_is_ignored(event):
    learner = ShopLearner(settings(features=False))
    tell(learner, *(Event("added", product=f"p{a}") for a in range(N)), *visit("v", closed=False, p0=1.0))
    before = vars(learner.open["v"]).copy()
    tell(learner, event)
    assert learner.ignored == 1
    assert list(learner.open) == ["v"]
    assert vars(learner.open["v"]) == before


def test_wrong_events_are_refused():
    learner = ShopLearner(settings())
    tell(learner, Event("added", product="a"))
    with pytest.raises(ValueError, match="in order of their id"):
        learner.take(Event("added", product="b", id=1))
    with pytest.raises(ValueError, match="unknown kind"):
        learner.take(Event("opened", product="b", id=2))
    with pytest.raises(ValueError, match="reward of event 2"):
        learner.take(Event("answered", visit="v", product="a", reward=float("nan"), id=2))
    assert learner.last == 1


def test_samples_depend_on_the_events_alone():
    events = story(60)
    one, other = taught(events), taught(events)
    assert same(one.refresh(), other.refresh())
    assert not same(one.refresh(), taught(events, seed=1).refresh())


@pytest.mark.parametrize("features", [False, True])
def test_weights_and_targets_agree(features):
    """The mean after a refresh is the joint regression on the targets that it gives itself."""
    learner = taught(story(80), features=features, exploration=2.0, lam=3.0, sigma=0.5)
    learner.refresh()
    chains = learner.chains
    sizes, visits, products = chains.sizes, chains.visits.arrays(), chains.products.part(N)
    limits = chains.statistics.sums[:2]
    rows = list(twin.rows_of(visits, products.z, sizes))
    X = np.array([twin.joint(u, a, products.z, sizes) for *_, a, u in rows])
    ridge = np.full(X.shape[1], 3.0 * 0.5**2)

    def again(weight):
        y = [
            twin.target(visits, i, slot, weight, chains.base, products.z, products.offered, *limits, sizes)
            - chains.base[slot]
            for i, slot, *_ in rows
        ]
        return twin.on_u(np.linalg.solve(X.T @ X + np.diag(ridge), X.T @ np.array(y)), products.z, sizes)

    assert chains.ridges == (0.75,) * 4
    for weight in chains.weight[:1]:
        assert np.abs(again(weight) - weight).max() < 0.05 * np.abs(weight).max()
    spread = np.abs(chains.weight[1:] - chains.weight[0]).max(axis=(1, 2))
    assert (spread > 0.1).all()


def test_without_exploration_all_samples_are_the_mean():
    learner = taught(story(60), exploration=0.0)
    draws = learner.refresh()
    assert np.abs(draws.weight - draws.weight[0]).max() < 1e-12


@pytest.mark.parametrize("reward", [0.0, 1.0, 100.3])
@pytest.mark.parametrize("given", [{}, {"lam": 4.0}, {"sigma": 0.3}])
def test_equal_rewards_say_nothing_about_the_noise(reward, given):
    learner = ShopLearner(settings(features=False, remember=40, **given))
    tell(learner, *[Event("added", product=f"p{a}") for a in range(N)])

    def samples_after(i, *rewards):
        tell(learner, *visit(f"v{i}", False, **{f"p{(i + slot) % N}": each for slot, each in enumerate(rewards)}))
        return learner.refresh()

    chains, sigma = learner.chains, given.get("sigma") or 0.5 * (reward or 1.0)
    for i in range(80):  # the first of them are forgotten
        draws = samples_after(i, *[reward] * J)
    assert chains.sigma == pytest.approx(sigma)
    assert chains.tuned_at == 0
    assert np.ptp(draws.weight[1:, 0], axis=0).max() > 1e-4 * sigma  # the samples differ: it explores
    samples_after(80, reward + 1.0, reward, reward)
    assert chains.tuned_at == chains.statistics.answers == 81 * J
    assert 0.01 < chains.sigma < 0.5


def test_the_baseline_is_the_mean_reward_of_recent_visits_from_a_slot_on():
    learner = ShopLearner(settings(features=False))
    tell(learner, *(Event("added", product=f"p{a}") for a in range(N)))
    for i, (first, second) in enumerate([(2.0, 1.0), (4.0, None), (0.0, 3.0)]):
        tell(learner, *visit(f"v{i}", p0=first, p1=second))
    mean = 10.0 / 5
    slots = [(6.0 + mean) / 4, (4.0 + mean) / 3, mean]
    assert learner.refresh().base == pytest.approx([sum(slots[j:]) for j in range(3)] + [0.0])


def test_of_forgotten_visits_sums_remain():
    events = story(150)
    alone, all_of_them = (taught(events, exploration=0.0, lam=2.0, sigma=1.0, remember=n) for n in (20, 1000))
    alone.refresh(), all_of_them.refresh()
    few, many = alone.chains, all_of_them.chains
    assert few.visits.count <= 22 < many.visits.count == many.statistics.visits
    assert few.products.gram[:N] == pytest.approx(many.products.gram[:N], abs=1e-9)
    answers = many.visits.arrays().x != 0
    assert few.forgotten[0].sum() + (few.visits.arrays().x != 0).sum() == answers.sum()
    # The targets of old visits are older, so weights are alike but not the same.
    difference = np.abs(few.weight[0] - many.weight[0])
    assert 0.0 < difference.max() < 0.5 * np.abs(many.weight[0]).max()


def test_with_one_slot_forgetting_changes_nothing():
    """The target of a last slot is its reward, whatever the weights are."""
    found = []
    for remember in (5, 1000):
        learner = ShopLearner(
            ShopSettings(
                slots=1, learning={"draws": 2, "history": 4, "remember": remember, "lam": 1.0, "sigma": 1.0}
            )
        )
        tell(learner, *(Event("added", product=f"p{a}") for a in range(N)))
        for i in range(60):
            tell(learner, *visit(f"v{i}", False, **{f"p{i % N}": float(i % 7)}))
            if i % 10 == 9:
                learner.refresh()
        found.append(learner.refresh())
        assert learner.chains.visits.count == (5 if remember == 5 else 60)
    assert found[0].weight[0] == pytest.approx(found[1].weight[0], abs=1e-9)


def test_visits_that_come_without_a_refresh_are_not_all_remembered():
    learner = taught(story(100), every=10**6, remember=10)
    assert learner.visits > 80
    assert learner.chains.visits.count <= 20


@pytest.mark.parametrize("features", [False, True])
def test_an_empty_shop(tmp_path, features):
    learner = ShopLearner(settings(features))
    write_draws(tmp_path / "draws.rlsvi", learner.refresh(), learner.header())
    with pytest.raises(LookupError, match="no product is left"):
        choose(read_draws(tmp_path / "draws.rlsvi").draws, 1, [0.0] * features, [], [])
    save_learner(tmp_path / "learner.rlsvi", learner)
    again = load_learner(tmp_path / "learner.rlsvi", settings(features))
    tell(again, Event("added", product="a"))
    assert choose(again.refresh(), 1, [0.0] * features, [], []).product == 0


def test_a_new_product_is_known_by_its_features():
    learner = ShopLearner(settings(exploration=0.1))
    tell(learner, *(Event("added", product=f"p{a}", features={"price": a / 5}) for a in range(N)))
    for i in range(200):
        tell(learner, *visit(f"v{i}", **{f"p{i % N}": float(i % N)}))
    learner.refresh()
    tell(
        learner,
        Event("added", product="dear", features={"price": 1.0}),
        Event("added", product="cheap", features={"price": -1.0}),
    )
    draws = learner.refresh()
    values = draws.weight[0, 0]
    assert values[N] > values[:3].max()
    assert values[N + 1] < values[:N].min()
    assert choose(draws, 1, [0.0], [], [], np.arange(N + 2) >= N).product == N


def test_a_removed_product_comes_back_with_what_was_learned():
    learner = taught(story(60))
    tell(learner, Event("removed", product="p2"))
    assert not learner.refresh().offered[2]
    shown = learner.refresh().shown[2]
    tell(learner, Event("added", product="p2", features={"price": 0.5}))
    draws = learner.refresh()
    assert draws.offered[2]
    assert draws.shown[2] == shown > 0
    assert draws.z[2].tolist() == [0.5, 0.0]


def test_features_that_change_are_as_if_they_had_always_been_so():
    events = story(60)
    new = {"price": 0.9, "size": -0.9}
    late = taught(events, lam=1.0, sigma=1.0)
    tell(late, Event("added", product="p1", features=new))
    early = taught([e._replace(features=new) if e.product == "p1" and e.kind == "added" else e for e in events])
    for learner in (late, early):
        learner.refresh()
    assert late.chains.products.gram[:N] == pytest.approx(early.chains.products.gram[:N], abs=1e-9)
    assert (late.chains.products.z[:N] == early.chains.products.z[:N]).all()


def test_a_snapshot_continues_bit_for_bit(tmp_path):
    events = story(120)
    half = len(events) // 2 // 40 * 40
    whole, learner = taught(events, remember=30), taught(events[:half], remember=30)
    assert learner.open
    save_learner(tmp_path / "learner.rlsvi", learner)
    again = load_learner(tmp_path / "learner.rlsvi", settings(remember=30))
    assert again.last == events[half - 1].id
    taught(events[half:], learner=again)
    assert {**again.header(), "at": 0} == {**whole.header(), "at": 0}
    assert same(whole.refresh(), again.refresh())


def test_a_snapshot_of_other_settings_or_damaged_is_refused(tmp_path):
    path = tmp_path / "learner.rlsvi"
    save_learner(path, taught(story(40)))
    with pytest.raises(ArchiveError, match="other settings"):
        load_learner(path, settings(history=5))
    load_learner(path, settings(exploration=0.5, remember=10))
    data = path.read_bytes()
    for size in (0, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(ArchiveError):
            load_learner(path, settings())


@pytest.mark.parametrize(
    "damage",
    [
        lambda learner: learner.chains.visits.arrays().product.__setitem__(0, N),
        lambda learner: learner.chains.visits.arrays().first.__setitem__(1, 99),
        lambda learner: learner.chains.visits.arrays().when.__setitem__(0, -5),
        lambda learner: learner.chains.weight.__setitem__((0, 0, 0), np.nan),
        lambda learner: learner.products.update(more=N),
        lambda learner: next(iter(learner.open.values())).product.append(N),
        lambda learner: next(iter(learner.open.values())).customer.append(1.0),
        lambda learner: setattr(learner.chains, "taken", 10**6),
        lambda learner: (learner.chains.visits.drop(learner.visits), setattr(learner.chains, "taken", 0)),
        lambda learner: setattr(learner.chains, "sigma", -1.0),
    ],
)
def test_a_snapshot_that_contradicts_itself_is_refused(tmp_path, damage):
    learner = taught(story(40))
    tell(learner, Event("recommended", visit="open", product="p0", slot=0))
    damage(learner)
    save_learner(tmp_path / "learner.rlsvi", learner)
    with pytest.raises(ArchiveError):
        load_learner(tmp_path / "learner.rlsvi", settings())


@pytest.mark.parametrize("exploration", [1.0, 0.2])
def test_values_are_those_of_the_samples_where_targets_are_rewards(exploration, monkeypatch):
    """Where all can be learned and nothing is earned yet, samples have the deviation of the posterior."""
    monkeypatch.setattr(model, "learnable", lambda products, L_shared, *_: (np.ones(products.L.shape[:2]), 1.0))
    monkeypatch.setattr(model.RewardStatistics, "unearned", 1.0)
    S = 800
    alone = ShopSettings(slots=1, product={"price": SCALED}, learning={"draws": S, "exploration": exploration})
    learner, rng = ShopLearner(alone), np.random.default_rng(0)
    tell(learner, *(Event("added", product=f"p{a}", features={"price": a / N}) for a in range(N)))
    for i in range(60):
        tell(learner, *visit(f"v{i}", False, **{f"p{i % 4}": float(rng.normal(i % 4))}))
    draws = learner.refresh()
    values = draws.base[0] + draws.weight[:, 0]  # nothing is known of customers: u = (1, 0, ..)
    assert draws.value == pytest.approx(values[0])
    # The error of a deviation over S samples is a share 1 / sqrt(2 S) of it.
    assert values[1:].std(axis=0) == pytest.approx(exploration * draws.spread, rel=5 / (2 * S) ** 0.5)
    assert draws.spread[:4].max() < draws.spread[4:].min()  # two were never shown


def samples_with(products, reward):
    """The deviation of the samples for a product that nobody has seen, after 200 answers to the nine before it."""
    alone = ShopSettings(slots=1, learning={"draws": 200, "history": 1, "lam": 0.1, "sigma": 1.0})
    learner, rng = ShopLearner(alone), np.random.default_rng(0)
    tell(learner, *(Event("added", product=f"p{a}") for a in range(products)))
    for i in range(200):
        tell(learner, *visit(f"v{i}", False, **{f"p{i % 9}": reward(rng)}))
    return learner.refresh().weight[1:, 0, 9].std()


@pytest.mark.slow
def test_what_many_products_cannot_teach_in_time_is_not_explored():
    def half(rng):
        return float(rng.random() < 0.5)

    few, many = samples_with(10, half), samples_with(1000, half)
    prior, unearned = 0.1**-0.5, 0.5
    # To come are as many answers as there were, 20 or 0.2 for each product; the prior counts as 0.1 of one.
    assert few == pytest.approx(unearned * prior * (20 / 20.1) ** 0.5, rel=0.2)
    assert many == pytest.approx(unearned * prior * (0.2 / 0.3) ** 0.5, rel=0.2)


def test_where_most_is_earned_little_is_explored():
    """Likes of nine customers in ten leave a tenth to gain; where most sales are small, nearly all is left."""
    liked = samples_with(10, lambda rng: float(rng.random() < 0.9))
    sold = samples_with(10, lambda rng: 10.0 if rng.random() < 0.05 else 0.5)
    assert sold == pytest.approx(0.9 / 0.1 * liked, rel=0.4)


@pytest.mark.parametrize("rewards", [(), (0.0, 0.0), (3.1, 3.1, 3.1), (-2.0, -2.0)])
def test_equal_rewards_do_not_say_what_can_be_earned(rewards):
    statistics = model.RewardStatistics(2, None)
    for reward in rewards:
        visit = model.OpenVisit([], 0.0)
        visit.show(0)
        visit.answer(0, reward, True)
        statistics.add(visit)
    statistics.sums = model.RewardTotals().with_rewards(np.array(rewards))
    assert statistics.unearned == 1.0


@pytest.mark.parametrize(("unit", "origin"), [(1.0, 0.0), (5.0, 0.0), (1.0, 4.0), (1.0, 100.0)])
def test_one_refund_or_a_large_order_does_not_decide_how_much_can_be_earned(unit, origin):
    statistics, rng, log = model.RewardStatistics(3, None), np.random.default_rng(0), model.VisitLog(0)
    for k in range(150):
        visit = model.OpenVisit([], 0.0)
        for slot in range(3):
            visit.show(slot)
            reward = origin + unit * float(rng.random() < 0.7)
            visit.answer(slot, {5: -1000.0, 9: 5000.0}.get(k, reward) if slot == 0 else reward, True)
        statistics.add(visit)
        log.append(visit, str(k))
    statistics.sum_up(log.arrays())
    assert statistics.unearned == pytest.approx(0.3, abs=5 * (0.21 / 450) ** 0.5)
