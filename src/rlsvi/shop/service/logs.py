"""Logs as lines of JSON on stderr."""

import json
import logging
import os
import sys
from types import TracebackType

PLAIN = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}


class JSONLines(logging.Formatter):
    """One JSON object a line: when, how grave, which process, what, and more fields that the caller gives."""

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

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role


def log_as(role: str, level: int = logging.INFO) -> None:
    """Send the logs of this process to stderr, as those of a "worker", "learner" or "parent".

    Warnings, and an error that ends the process, are lines of JSON too.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONLines(role))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.captureWarnings(True)
    sys.excepthook = _ended_by
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = name != "uvicorn.access"
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


def _ended_by(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    why = f"{kind.__name__}: {error}"
    logging.getLogger("rlsvi.serve").critical("failed", exc_info=(kind, error, trace), extra={"why": why})
