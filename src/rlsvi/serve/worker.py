"""A process that serves: uvicorn on a socket that it shares with the other workers."""

import gc
import itertools
import logging
import os
import signal
import socket
import sys
import threading

import uvicorn
from fastapi import FastAPI

from rlsvi.serve.app import create_app
from rlsvi.serve.logs import log_as
from rlsvi.shop.recommender import Recommender
from rlsvi.shop.settings import ShopSettings

GRACE = 20  # seconds that accepted requests may take when the process ends
WATCHING = 0.2  # seconds between two looks for new samples
LEARNER = 25  # looks for new samples for one at the learner
log = logging.getLogger("rlsvi.serve")


def serve(settings: ShopSettings, listening: socket.socket, parent: int) -> None:
    """Serve until SIGTERM or SIGINT, or until the parent has died."""
    with Recommender(settings, learning=False) as recommender:
        app = create_app(recommender, token=os.environ.get(settings.serve.token_variable) or None)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE,
                timeout_keep_alive=60,
            )
        )
        watcher = threading.Thread(target=_watch, args=(recommender, app, server, parent), daemon=True)
        watcher.start()
        gc.collect()
        gc.freeze()  # what lives as long as the process is not looked at again
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)  # uvicorn takes them, and raises them again in the end
        log.info("serving")
        server.run(sockets=[listening])
        log.info("ended")


def _watch(recommender: Recommender, app: FastAPI, server: uvicorn.Server, parent: int) -> None:
    """Take new samples as they come, look whether the learner works, and end with the parent."""
    waiting, looks = threading.Event(), itertools.count()
    while not server.should_exit:
        try:
            if next(looks) % LEARNER == 0:
                app.state.metrics.learner(recommender.events.learner_at() or 0.0)
            recommender.renew()
            if recommender.sample is not None:
                app.state.metrics.sample(recommender.sample.last, recommender.sample.at)
        except Exception as error:
            log.error("samples not renewed", extra={"why": str(error)})
            waiting.wait(1.0)
        waiting.wait(WATCHING)
        if os.getppid() != parent:
            log.error("the parent has ended")
            server.should_exit = True


def main() -> None:
    """Run as `python -m rlsvi.serve.worker SHOP.TOML DESCRIPTOR PARENT`."""
    log_as("worker")
    path, descriptor, parent = sys.argv[1:]
    serve(ShopSettings.from_toml(path), socket.socket(fileno=int(descriptor)), int(parent))


if __name__ == "__main__":
    main()
