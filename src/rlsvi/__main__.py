"""`python -m rlsvi` is the command `rlsvi`."""

from rlsvi.cli import app

app(prog_name="rlsvi")
