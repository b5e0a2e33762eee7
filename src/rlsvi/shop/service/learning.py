"""The process that learns: takes events as they come, and writes new samples for the processes that serve."""

import contextlib
import logging
import os
import signal
import sys
import threading
import time

from rlsvi.core.regression import FactorError
from rlsvi.shop.events import Events, StoreError
from rlsvi.shop.follower import Follower, LearnerReplaced
from rlsvi.shop.service.logs import log_as
from rlsvi.shop.settings import ShopSettings

PAUSE, LONGEST = 0.5, 30.0  # the least seconds between two steps, and the most after steps that failed
SNAPSHOT = 120.0  # seconds between two snapshots
FAILURES = (StoreError, OSError, FactorError)  # of the database, the disk, the numbers: they may pass
log = logging.getLogger("rlsvi.serve")


def learn(settings: ShopSettings, stop: threading.Event, parent: int | None = None) -> None:
    """Learn until `stop` is set, or until the parent has died.

    A step that fails is logged and tried again after longer and longer pauses; the samples stay as they were. What
    fails is noted in the database, so that the service can tell.
    """
    with Events(settings.database, sync=settings.sync) as events:
        try:
            _learn(settings, events, stop, parent)
        except StoreError:  # the database is away, or another learner works
            raise
        except Exception as error:
            with contextlib.suppress(StoreError):
                events.learner_failed(type(error).__name__)
            raise


def _learn(settings: ShopSettings, events: Events, stop: threading.Event, parent: int | None) -> None:
    with Follower(settings, events) as follower:
        log.info("learning", extra={"last": follower.last})
        saved, pause = time.monotonic(), PAUSE
        while not stop.is_set() and (parent is None or os.getppid() == parent):
            begun = time.monotonic()
            try:
                step(follower)
                if time.monotonic() - saved > SNAPSHOT:
                    follower.save()
                    saved = time.monotonic()
                pause = PAUSE
            except LearnerReplaced as error:
                log.error("replaced", extra={"why": str(error)})
                raise
            except FAILURES as error:
                pause = min(2 * pause, LONGEST)
                follower.failed(error)
                why = f"{type(error).__name__}: {error}"
                log.error("a step failed", extra={"why": why, "again_in": pause})
            stop.wait(max(pause, time.monotonic() - begun))  # at most half of the time is spent learning
        follower.stop()
        log.info("ended", extra={"last": follower.last})


def step(follower: Follower) -> None:
    """Take what has happened, and draw new samples if they are due."""
    begun = time.monotonic()
    follower.check()
    follower.close_idle(time.time())
    follower.catch_up()
    if follower.due:
        follower.publish()
        log.info("refreshed", extra={"last": follower.last, "seconds": round(time.monotonic() - begun, 3)})
    follower.note()


def main() -> None:
    """Run as `python -m rlsvi.shop.service.learning SHOP.TOML [PARENT]`."""
    log_as("learner")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    os.nice(10)  # customers come first
    path, *parent = sys.argv[1:]
    learn(ShopSettings.from_toml(path), stop, int(parent[0]) if parent else None)


if __name__ == "__main__":
    main()
