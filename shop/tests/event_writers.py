"""Processes that write events, for tests: python event_writers.py URL ROLE NAME."""

import sys
import time

from rlsvi_shop.events import Event, Events


def count(events, name):
    """Number the events of one visit that all processes share: none may be missing or there twice."""
    for i in range(40):
        with events.writing() as writer:
            many = len(writer.visits(["shared"])["shared"])
            numbers = writer.append(
                [Event("recommended", "shared", str(many)), Event("answered", f"{name}-{i}", "p", reward=1.0)]
            )
        print(*numbers, flush=True)


def hang(events, name):
    """Stop in the middle of a transaction."""
    with events.writing() as writer:
        writer.append([Event("recommended", name, str(i)) for i in range(500)])
        print("appended", flush=True)
        time.sleep(600)


def learn(events, name):
    """Be the learner."""
    with events.learner_lock():
        print("learning", flush=True)
        time.sleep(600)


if __name__ == "__main__":
    url, role, name = sys.argv[1:]
    with Events(url) as opened:
        {"count": count, "hang": hang, "learn": learn}[role](opened, name)
