"""The processes of a service: the parent holds the socket, and starts the workers and the learner, also again."""

import contextlib
import json
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
from typing import Any

from prometheus_client.multiprocess import mark_process_dead

from rlsvi_shop.catalogue import missing_products, products_of_file
from rlsvi_shop.events import Events, StoreError
from rlsvi_shop.requests import check_names
from rlsvi_shop.service.metrics import FOLDER
from rlsvi_shop.settings import ShopSettings

FIRST_PAUSE, LONGEST_PAUSE = 0.3, 10.0  # seconds before a process is started again
STEADY = 5.0  # seconds after which a process counts as well
GRACE = 30.0  # seconds until a process that was told to end is killed
MINUTE = 60.0  # seconds
SHOWN_A_MINUTE = 10  # warnings of a kind that are written to the log
YIELDING = 10  # by how much the learner is nicer than the workers: it uses what they leave of the processor
PLAIN = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}
log = logging.getLogger("rlsvi_shop")


def run(path: Path, settings: ShopSettings, workers: int, learner: bool, stop: threading.Event) -> None:
    """Serve a shop until `stop` is set. Requests that were accepted are answered first."""
    listening = bound_socket(settings.serve.host, settings.serve.port)
    host, port = listening.getsockname()[:2]
    numbers = tempfile.mkdtemp(prefix="rlsvi-metrics-")
    os.environ[FOLDER] = numbers  # for `mark_process_dead`
    module, place = [sys.executable, "-m", "rlsvi_shop.service.processes"], [str(path), str(os.getpid())]
    children: list[Child] = []
    try:
        if learner:
            children.append(Child("learner", [*module, "learner", *place]))
        descriptor = listening.fileno()
        for _ in range(workers):
            children.append(Child("worker", [*module, "worker", *place, str(descriptor)], descriptor))
        log.info("listening", extra={"url": url_of(host, port), "workers": workers})
        while not stop.wait(0.1):
            for child in children:
                if (number := child.look()) and child.role == "learner":
                    threading.Thread(target=_note_killed, args=(settings, number), daemon=True).start()
    finally:
        listening.close()
        _end(children)
        shutil.rmtree(numbers, ignore_errors=True)
        log.info("ended")


class Child:
    """A process that is started again when it ends; it inherits a descriptor if one is given."""

    def __init__(self, role: str, command: list[str], descriptor: int | None = None) -> None:
        self.role, self._command = role, command
        self._descriptors = () if descriptor is None else (descriptor,)
        self._pause, self._again = FIRST_PAUSE, 0.0
        self.start()

    def start(self) -> None:
        """Start the process."""
        one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._started = time.monotonic()
        # In a session of its own: Ctrl-C reaches the parent alone, which ends its children in order.
        self.process: subprocess.Popen[bytes] | None = subprocess.Popen(
            self._command, env={**os.environ, **one_thread}, pass_fds=self._descriptors, start_new_session=True
        )
        log.info("started", extra={"role": self.role, "child": self.process.pid})

    def look(self) -> int:
        """Start the process again if it has ended and the pause is over; return the signal that killed it."""
        now = time.monotonic()
        if self.process is None:
            if now >= self._again:
                self.start()
        elif (code := self.process.poll()) is not None:
            self._pause = FIRST_PAUSE if now - self._started >= STEADY else min(2 * self._pause, LONGEST_PAUSE)
            self._again = now + self._pause
            log.error("ended", extra={"role": self.role, "child": self.process.pid, "code": code})
            mark_process_dead(self.process.pid)  # type: ignore[no-untyped-call]
            self.process = None
            return max(0, -code)
        return 0


def _end(children: list[Child]) -> None:
    """End the workers and then the learner, which takes what they have stored last: after a time by force."""
    for role in ("worker", "learner"):
        some = [child.process for child in children if child.role == role and child.process is not None]
        for process in some:
            process.send_signal(signal.SIGTERM)
        limit = time.monotonic() + GRACE
        for process in some:
            try:
                process.wait(max(0.1, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.error("killed", extra={"role": role, "child": process.pid})
                process.kill()
                process.wait()


def _note_killed(settings: ShopSettings, number: int) -> None:
    """Note in the database that a signal has killed the learner, which could not do so: perhaps memory ran out."""
    with contextlib.suppress(StoreError), Events(settings.database) as events:
        events.note_failure(f"killed by signal {number}")


def load_products(settings: ShopSettings) -> None:
    """Open the database, and add what its catalogue lacks of the products in the file of the settings, if any."""
    with Events(settings.database, sync=settings.sync) as events:
        found = products_of_file(settings)
        with events.writing() as writer:
            catalogue = writer.catalogue()
            check_names(catalogue, settings.ids)
            new = missing_products(found, catalogue)
            writer.append(new)
    if found:
        log.info("products", extra={"file": settings.serve.products, "products": len(found), "added": len(new)})


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or raise an error that says why there is none."""
    six = ":" in host
    family, both = socket.AF_INET6 if six else socket.AF_INET, six and socket.has_dualstack_ipv6()
    try:
        found = socket.create_server((host, port), family=family, backlog=1024, dualstack_ipv6=both)
    except (OSError, OverflowError) as error:
        raise OSError(f"cannot listen on {url_of(host, port).removeprefix('http://')}: {error}") from None
    found.set_inheritable(True)
    return found


def url_of(host: str, port: int) -> str:
    """Return the URL of a service; an address of IPv6 is in brackets there."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def stop_on_signal() -> threading.Event:
    """Return an event that SIGTERM and Ctrl-C set."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def yield_to_others() -> None:
    """Let this process use what others leave of the processor.

    Linux may share the processor between sessions first (see sched(7), the autogroup feature): there, the priority
    of a process counts only within its session, and the session has a priority of its own.
    """
    os.nice(YIELDING)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(f"{YIELDING}")


# ---- logs as lines of JSON on stderr ------------------------------------------------------------------------


class Repetitions(logging.Filter):
    """Lets a few warnings and errors of a kind pass in a minute; the next one says how many were left out.

    A kind is an event with a status. Clients could fill a disk otherwise.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[Any, tuple[float, int]] = {}  # since when, and how many

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written."""
        if record.levelno < logging.WARNING:
            return True
        kind = record.msg, getattr(record, "status", None)
        since, count = self._kinds.get(kind, (record.created, 0))
        if record.created - since >= MINUTE:
            if count > SHOWN_A_MINUTE:
                record.left_out = count - SHOWN_A_MINUTE
            since, count = record.created, 0
        self._kinds[kind] = since, count + 1
        return count < SHOWN_A_MINUTE


class JSONLines(logging.Formatter):
    """One JSON object a line: when, how grave, which process, what, and more fields that the caller gives."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "process": f"{self._role} {os.getpid()}",
            "event": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in PLAIN},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_as(role: str, level: int = logging.INFO) -> None:
    """Send the logs of this process to stderr, as those of a "worker", "learner" or "parent".

    Warnings, and an error that ends the process, are lines of JSON too.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONLines(role))
    handler.addFilter(Repetitions())
    logging.basicConfig(handlers=[handler], level=level, force=True)
    logging.captureWarnings(True)
    sys.excepthook = lambda kind, error, trace: log.critical(
        "failed", exc_info=(kind, error, trace), extra={"why": f"{kind.__name__}: {error}"}
    )
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = name != "uvicorn.access"
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


def main() -> None:
    """Be a child, as `python -m rlsvi_shop.service.processes ROLE SHOP.TOML PARENT [DESCRIPTOR]`.

    Only a worker imports the web server.
    """
    role, path, parent, *descriptor = sys.argv[1:]
    log_as(role)
    if role == "worker":
        from rlsvi_shop.service.worker import serve

        serve(ShopSettings.from_toml(path), socket.socket(fileno=int(descriptor[0])), int(parent))
    else:
        stop = stop_on_signal()
        from rlsvi_shop.follower import learn

        yield_to_others()  # once it is loaded
        learn(ShopSettings.from_toml(path), stop, int(parent))


if __name__ == "__main__":
    main()
