"""Ctrl-C is tested, so it has to work, and no test fails for being slow: others may run beside it.

Programs that run in the background, as the processes of `make test`, often have Ctrl-C ignored.

The first file compiles the loops that most others load from disk; those that come beside it need little of them.
Then come long ones, so that none is left to one process in the end.
"""

import signal

from hypothesis import settings

signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

BESIDE = ("claims", "store", "study_statistics", "means", "report", "sweep")
FIRST = ("architecture", *BESIDE, "figures", "statistics", "readme", "value_iteration", "cli_paper", "ring")


def pytest_collection_modifyitems(items):
    rank = {f"test_{name}.py": i for i, name in enumerate(FIRST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(FIRST)))
