"""The command line: progress on stderr, results on stdout, exit code 0 only when it worked."""

from rlsvi.cli.errors import quiet_pipes


def main() -> None:
    """Run the command `rlsvi`."""
    from rlsvi.cli.app import app  # it imports the commands of other packages, which import from here

    with quiet_pipes():
        app(prog_name="rlsvi")
