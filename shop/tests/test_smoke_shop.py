"""A little of the shop, on whatever versions are installed: `make wheel` and `make smoke-lowest` run it."""

import subprocess
import sys

import pytest

import rlsvi_shop
from rlsvi_shop.service.app import create_app

COMMANDS = ("serve", "learn-shop", "judge-shop", "simulate-shop", "export-events", "import-events")


@pytest.fixture
def settings(tmp_path):
    return rlsvi_shop.ShopSettings(database=f"sqlite:///{tmp_path / 'shop.db'}", slots=2)


def test_every_public_name_can_be_had():
    assert all(getattr(rlsvi_shop, name) is not None for name in rlsvi_shop.__all__)


def test_a_shop_recommends_takes_answers_and_learns(settings):
    with rlsvi_shop.Recommender(settings) as shop:
        shop.add_all({"tea": None, "coffee": None, "cocoa": None})
        first = shop.recommend("visit")
        shop.feedback("visit", first, 1.0)
        assert shop.recommend("visit") in {"tea", "coffee", "cocoa"} - {first}
        shop.close("visit")
    with rlsvi_shop.Recommender(settings) as again:
        assert again.products == ["tea", "coffee", "cocoa"]
    events = rlsvi_shop.Events(settings.database)
    assert rlsvi_shop.events_frame(events).height > 4
    events.close()


def test_the_service_describes_its_requests(settings):
    with rlsvi_shop.Recommender(settings) as shop:
        assert "/recommend" in str(create_app(shop).openapi()["paths"])


def test_its_commands_are_there():
    done = subprocess.run([sys.executable, "-m", "rlsvi", "--help"], capture_output=True, text=True, check=True)
    assert {*COMMANDS} <= {*done.stdout.split()}
