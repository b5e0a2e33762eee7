"""The process that learns: takes events as they come, and writes new samples for the processes that serve."""

import logging
import os
import signal
import sys
import threading
import time

from rlsvi.serve.logs import log_as
from rlsvi.shop.events import StoreError
from rlsvi.shop.follower import Follower
from rlsvi.shop.settings import ShopSettings

PAUSE = 0.5  # the least seconds between two refreshes
SNAPSHOT = 120.0  # seconds between two snapshots
log = logging.getLogger("rlsvi.serve")


def learn(settings: ShopSettings, stop: threading.Event, parent: int | None = None) -> None:
    """Learn until `stop` is set, or until the parent has died."""
    with Follower(settings) as follower:
        log.info("learning", extra={"last": follower.last})
        follower.publish()
        saved = time.monotonic()
        while not stop.is_set() and (parent is None or os.getppid() == parent):
            begun = time.monotonic()
            try:
                follower.close_idle(time.time())
                if follower.catch_up():
                    follower.publish()
                    log.info("refreshed", extra={"last": follower.last, "seconds": time.monotonic() - begun})
                if time.monotonic() - saved > SNAPSHOT:
                    follower.save()
                    saved = time.monotonic()
            except StoreError as error:
                log.error("the database does not answer", extra={"why": str(error)})
            stop.wait(max(PAUSE, time.monotonic() - begun))  # at most half of the time is spent learning
        follower.save()
        log.info("ended", extra={"last": follower.last})


def main() -> None:
    """Run as `python -m rlsvi.serve.learning SHOP.TOML [PARENT]`."""
    log_as("learner")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    os.nice(10)  # customers come first
    path, *parent = sys.argv[1:]
    learn(ShopSettings.from_toml(path), stop, int(parent[0]) if parent else None)


if __name__ == "__main__":
    main()
