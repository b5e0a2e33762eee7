"""`python -m rlsvi` is the command `rlsvi`."""

from rlsvi.cli.app import main

main()
