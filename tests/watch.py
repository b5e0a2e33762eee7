"""Programs that tests start, and what is left of them: all their processes carry a mark in the environment."""

import os
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import rlsvi

HERE = Path(__file__).parent
ROOTS = os.pathsep.join([str(HERE), str(Path(rlsvi.__file__).parents[1])])
MARK = "RLSVI_TEST_MARK"
PATIENCE = 300.0  # seconds: only what hangs takes longer, on a machine that is busy too


@contextmanager
def started(*arguments, **environment):
    """A Python program in a process group of its own; in the end it must be over."""
    variables = {**os.environ, "PYTHONPATH": ROOTS, MARK: uuid.uuid4().hex, **environment}
    command = [sys.executable, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=variables, start_new_session=True, **pipes)
    process.mark = variables[MARK]
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        for pid in marked(process.mark):
            os.kill(pid, 9)


def python(code, *arguments, fails=False, **environment):
    """Run code in a new Python; stdout, or with `fails` stderr."""
    with started("-c", code, *arguments, **environment) as process:
        out, err = process.communicate(timeout=PATIENCE)
        assert bool(process.returncode) == fails, err
    return err if fails else out


def until(condition, seconds=PATIENCE, process=None):
    """Wait for something to be true, while `process` runs; whether it came."""
    end = time.monotonic() + seconds
    while not (come := condition()) and time.monotonic() < end:
        if process is not None and process.poll() is not None:
            return bool(condition())
        time.sleep(0.005)
    return bool(come)


def marked(mark):
    """Processes that carry the mark; zombies carry nothing."""
    return [pid for pid in _pids() if f"{MARK}={mark}".encode() in _read(f"/proc/{pid}/environ").split(b"\0")]


def listening(pids):
    """Local addresses, in the kernel's hexadecimal, at which processes accept connections over the network."""
    sockets = {}
    for family in ("tcp", "tcp6"):
        for line in _read(f"/proc/net/{family}").decode().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":
                sockets[f"socket:[{words[9]}]"] = words[1].partition(":")[0]
    return [sockets[name] for pid in pids for name in _descriptors(pid) if name in sockets]


def _pids():
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _read(path):
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _descriptors(pid):
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            yield os.readlink(f"/proc/{pid}/fd/{number}")
        except OSError:
            continue
