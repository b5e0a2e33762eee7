"""Ctrl-C is tested, so it has to work, and no test fails for being slow: others may run beside it.

Programs that run in the background, as the processes of `make test`, often have Ctrl-C ignored.
"""

import signal

from hypothesis import settings

signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
