"""What the measurements of a shop begin with."""

from benchmarks.shop_service import prefill, write_settings

from rlsvi_shop import Events, ShopSettings
from rlsvi_shop.model.learner import ShopLearner


def test_past_visits_are_ones_that_a_learner_learns_from(tmp_path):
    port = write_settings(tmp_path, slots=3, products=7)
    settings = ShopSettings.from_toml(tmp_path / "shop.toml")
    assert (settings.serve.port, settings.slots) == (port, 3)
    prefill(tmp_path, visits=25, products=7, slots=3)
    learner = ShopLearner(settings)
    with Events(settings.database) as events:
        for event in events.since(0, 10_000):
            learner.take(event)
        assert events.last() == 7 + 25 * 6
    assert (learner.visits, learner.ignored, len(learner.open)) == (25, 0, 0)
