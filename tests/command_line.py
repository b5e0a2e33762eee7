"""The command `rlsvi`, called in this process."""

import json

from typer.testing import CliRunner

from rlsvi.cli.app import app


def run(*arguments):
    """Call it; what it wrote, and its exit code."""
    return CliRunner().invoke(app, [str(a) for a in arguments])


def strict_json(text):
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)
