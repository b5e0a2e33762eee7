"""A real PostgreSQL server for tests, from the packages of the system, on a socket in a temporary folder.

Tests use it by the fixtures `postgres` and `postgres_url`. Where no server is installed, they are skipped.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest

FAST = {"fsync": "off", "shared_buffers": "16MB", "max_connections": "40", "listen_addresses": ""}


def binaries():
    """The folder of initdb and postgres of the newest version, None if there is none."""
    on_path = shutil.which("initdb")
    found = [Path(on_path).resolve().parent] if on_path else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -float(path.parent.name))
    return next((path for path in found if (path / "initdb").exists() and (path / "postgres").exists()), None)


def unprivileged():
    """Arguments of subprocess that make a process of root run as another user: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return {}
    users = {user.pw_name: user for user in pwd.getpwall()}
    user = users.get("postgres", users.get("nobody"))
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class LocalServer:
    """A server that can be stopped, killed and started again."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="pg"))  # the path of a socket must be short
        self.user = unprivileged()
        self.process = None
        if self.user:
            os.chown(self.folder, self.user["user"], self.user["group"])
        command = [
            binaries() / "initdb",
            "-D",
            self.folder / "data",
            "-U",
            "shop",
            "-A",
            "trust",
            "-N",
            "-E",
            "UTF8",
        ]
        subprocess.run(
            [*command, "--no-locale"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL, **self.user
        )

    def url(self):
        return f"postgresql+psycopg://shop:secret@/postgres?host={self.folder}"

    def start(self):
        """Start the server, and wait until it answers. What a killed one left behind may take a moment to end."""
        options = [part for name, value in FAST.items() for part in ("-c", f"{name}={value}")]
        command = [binaries() / "postgres", "-D", self.folder / "data", "-k", self.folder, *options]
        for _ in range(600):
            if self.process is None or self.process.poll() is not None:
                with open(self.folder / "log", "ab") as log:
                    self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, **self.user)
            with contextlib.suppress(Exception), self.connection():
                return self
            time.sleep(0.1)
        raise RuntimeError((self.folder / "log").read_text())

    def connection(self):
        import psycopg

        return psycopg.connect(host=str(self.folder), user="shop", dbname="postgres", autocommit=True)

    def stop(self, how=signal.SIGINT):
        """End the server: SIGINT closes it properly, at once; SIGKILL is a crash."""
        if self.process is not None:
            serving = self._serving() if how == signal.SIGKILL else []
            self.process.send_signal(how)
            self.process.wait(60)
            for pid in serving:  # they outlive a killed server by a moment, in which they would answer
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, how)

    def _serving(self):
        """The processes that serve a connection."""
        with self.connection() as connection:
            return [
                pid for (pid,) in connection.execute("SELECT pid FROM pg_stat_activity WHERE datid IS NOT NULL")
            ]

    def remove(self):
        self.stop(signal.SIGQUIT)  # without writing to disk what is removed anyway
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_url(self):
        """The URL of a new schema, which is as good as a database and takes less time."""
        name = f"shop_{uuid.uuid4().hex[:12]}"
        with self.connection() as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return self.url() + f"&options=-csearch_path%3D{name}"


@pytest.fixture(scope="session")
def postgres():
    """The server, for all tests of a process."""
    pytest.importorskip("psycopg", reason='needs pip install "./shop[postgres]"')
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed: on Debian, apt-get install postgresql")
    server = LocalServer()
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture
def postgres_url(postgres):
    """The URL of a place without tables."""
    return postgres.new_url()
