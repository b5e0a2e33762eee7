"""What a database says when it fails, in plain English and with a remedy."""

from typing import Any


class StoreError(RuntimeError):
    """The shop's database could not do what was asked; nothing of it was written."""

    reason = ""  # in general words, without names of this shop
    told = "the database does not answer: nothing was stored, ask again"  # to a client, who need not know more


class InDoubt(StoreError):
    """The connection was lost while a transaction was being committed: it may have been written."""

    told = (
        "the connection to the database was lost: the request may have been stored; send it again, which is safe: "
        "nothing counts twice (in a request to recommend, name the slot)"
    )


SQLITE = {  # by the beginning of SQLite's own words, in small letters
    "database or disk is full": "the disk is full: free some space",
    "attempt to write a readonly database": "it is read-only: let this user write the file and its folder",
    "unable to open database file": "it cannot be opened: let this user write the file and its folder",
    "file is not a database": "it is not a SQLite database: name another file",
    "database disk image is malformed": "it is damaged: restore a copy",
    "database is locked": "another program keeps it locked: end that program, or wait for it",
    "disk i/o error": "the disk does not read or write: check it, and that it is not full",
    "no such table": "its tables have been removed: restore a copy",
    "unique constraint failed": "it already has an event of this kind, visit and product",
}
POSTGRES = {  # by SQLSTATE, or the beginning of it
    "53100": "the disk of the server is full: free some space",
    "53300": "the server has too many connections: raise max_connections, or use fewer workers",
    "25006": "the server is read-only: connect to the primary server",
    "23505": "it already has an event of this kind, visit and product",
    "42501": "the user lacks a permission: GRANT it, or make the user the owner of the tables",
    "42P01": "its tables have been removed: restore a copy",
    "55P03": "another process kept its turn to write for too long: look for one that is stopped",
    "57": "the server is shutting down or starting: try again soon",
    "08": "the connection was lost: try again soon",
}
CONNECTING = {  # by words of PostgreSQL, which sends no SQLSTATE before there is a connection
    "does not exist": "the server has no such database or user: use createdb, createuser or another URL",
    "authentication failed": "the server refuses the user or the password: check the URL and PGPASSWORD",
    "pg_hba.conf": "the server refuses this user from this machine: check its file pg_hba.conf",
    "too many clients": "the server has too many connections: raise max_connections, or use fewer workers",
    "": "the server does not answer: check that it runs and the URL, then try again",
}


def explained(error: Any, database: str, what: str) -> StoreError:
    """Return the error that tells what failed on which database, why, and what to do."""
    words = str(error).strip().partition("\n")[0] or type(error).__name__
    reason = _reason(error, words)
    found = StoreError(f"the shop's database {database} could not {what}: {reason} ({words})")
    found.reason = reason
    return found


def _reason(error: Any, words: str) -> str:
    state = getattr(error, "sqlstate", None) or ""
    for start, reason in POSTGRES.items() if state else ():
        if state.startswith(start):
            return reason
    for start, reason in SQLITE.items():
        if words.lower().startswith(start):
            return reason
    if type(error).__module__.startswith("psycopg") and type(error).__name__ == "OperationalError":
        return next(reason for part, reason in CONNECTING.items() if part in words)
    return "see the words of the database"
