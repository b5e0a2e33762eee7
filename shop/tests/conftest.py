"""The databases of the shop's tests: SQLite and, where it is installed, PostgreSQL."""

import json
import logging
import sys

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
def logged(monkeypatch, capsys):
    """A function that returns what a process has logged since `log_as`, whose changes are undone."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    yield lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    logging.captureWarnings(False)


@pytest.fixture
def shop(tmp_path):
    with new_shop(tmp_path) as shop:
        yield shop
