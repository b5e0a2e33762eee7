"""Ctrl-C is tested, so it has to work: programs that run in the background often have it ignored."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
