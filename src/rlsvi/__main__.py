"""`python -m rlsvi` is the command `rlsvi`."""

from rlsvi.cli import main

main()
