"""The databases of the shop's tests: SQLite and, where it is installed, PostgreSQL."""

import pytest
from postgres_server import postgres, postgres_url  # noqa: F401
from serving import new_shop

from rlsvi_shop import Events


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request, tmp_path):
    """The URL of an empty database, of each kind in turn."""
    return (
        f"sqlite:///{tmp_path}/shop.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    )


@pytest.fixture
def events(url):
    with Events(url) as opened:
        yield opened


@pytest.fixture
def shop(tmp_path):
    with new_shop(tmp_path) as shop:
        yield shop
