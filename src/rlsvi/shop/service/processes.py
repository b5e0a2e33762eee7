"""The parent: it holds the socket, starts the workers and the learner, and starts again those that died."""

import contextlib
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from rlsvi.shop.catalogue import lacking
from rlsvi.shop.clicks import products_of_file
from rlsvi.shop.events import Events, StoreError
from rlsvi.shop.ids import check_names
from rlsvi.shop.service.hosts import url_of
from rlsvi.shop.service.metrics import FOLDER, forget
from rlsvi.shop.settings import ShopSettings

FIRST, LONGEST = 0.3, 10.0  # seconds of the pause before a process is started again: the first, and the longest
STEADY = 5.0  # seconds after which a process counts as well
GRACE = 30.0  # seconds until a process that was told to end is killed
log = logging.getLogger("rlsvi.serve")


class Child:
    """A process that is started again when it ends."""

    def __init__(self, role: str, command: list[str], environment: dict[str, str], descriptor: int | None) -> None:
        self.role, self._command, self._environment = role, command, environment
        self._descriptors = () if descriptor is None else (descriptor,)
        self._pause, self._again = FIRST, 0.0
        self.start()

    def start(self) -> None:
        """Start the process."""
        self._started = time.monotonic()
        # In a session of its own: Ctrl-C reaches the parent alone, which ends its children in order.
        self.process: subprocess.Popen[bytes] | None = subprocess.Popen(
            self._command, env=self._environment, pass_fds=self._descriptors, start_new_session=True
        )
        log.info("started", extra={"role": self.role, "child": self.process.pid})

    def look(self) -> int:
        """Start the process again if it has ended and the pause is over; return the signal that killed it."""
        now = time.monotonic()
        if self.process is None:
            if now >= self._again:
                self.start()
        elif self.process.poll() is not None:
            self._pause = FIRST if now - self._started >= STEADY else min(2 * self._pause, LONGEST)
            self._again = now + self._pause
            log.error(
                "ended", extra={"role": self.role, "child": self.process.pid, "code": self.process.returncode}
            )
            forget(self.process.pid)
            code, self.process = self.process.returncode, None
            return max(0, -code)
        return 0

    def end(self) -> None:
        """End the process: politely, and after a time by force."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float) -> None:
        """Wait until the process has ended, or kill it."""
        if self.process is None:
            return
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            log.error("killed", extra={"role": self.role, "child": self.process.pid})
            self.process.kill()
            self.process.wait()


def load_products(settings: ShopSettings) -> None:
    """Open the database, and add what its catalogue lacks of the products in the file of the settings, if any."""
    with Events(settings.database, sync=settings.sync) as events:
        found = products_of_file(settings)
        with events.writing() as writer:
            catalogue = writer.catalogue()
            check_names(catalogue, settings.ids)
            new = lacking(found, catalogue)
            writer.append(new)
    if found:
        log.info("products", extra={"file": settings.serve.products, "products": len(found), "added": len(new)})


def run(path: Path, settings: ShopSettings, workers: int, learner: bool, stop: threading.Event) -> None:
    """Serve a shop until `stop` is set. Requests that were accepted are answered first."""
    listening = bound(settings.serve.host, settings.serve.port)
    host, port = listening.getsockname()[:2]
    numbers = tempfile.mkdtemp(prefix="rlsvi-metrics-")
    os.environ[FOLDER] = numbers  # for `forget`
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    parent, descriptor = str(os.getpid()), listening.fileno()
    module = [sys.executable, "-m"]
    children: list[Child] = []
    try:
        if learner:
            command = [*module, "rlsvi.shop.service.learning", str(path), parent]
            children.append(Child("learner", command, environment, None))
        for _ in range(workers):
            command = [*module, "rlsvi.shop.service.worker", str(path), str(descriptor), parent]
            children.append(Child("worker", command, environment, descriptor))
        log.info("listening", extra={"url": url_of(host, port), "workers": workers})
        while not stop.wait(0.1):
            for child in children:
                if (number := child.look()) and child.role == "learner":
                    threading.Thread(target=_note_killed, args=(settings, number), daemon=True).start()
    finally:
        listening.close()
        end(children)
        shutil.rmtree(numbers, ignore_errors=True)
        log.info("ended")


def _note_killed(settings: ShopSettings, number: int) -> None:
    """Note in the database that a signal has killed the learner, which could not do so: perhaps memory ran out."""
    with contextlib.suppress(StoreError), Events(settings.database) as events:
        events.learner_failed(f"killed by signal {number}")


def end(children: list[Child]) -> None:
    """End the workers and then the learner, which takes what they have stored last."""
    for role in ("worker", "learner"):
        some = [child for child in children if child.role == role]
        for child in some:
            child.end()
        limit = time.monotonic() + GRACE
        for child in some:
            child.wait(max(0.1, limit - time.monotonic()))


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or raise an error that says why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(1024)
    except (OSError, OverflowError) as error:
        found.close()
        raise OSError(f"cannot listen on {url_of(host, port).removeprefix('http://')}: {error}") from None
    found.set_inheritable(True)
    return found
