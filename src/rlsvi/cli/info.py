"""`rlsvi info`: what a report of a fault should say about the machine and the installation."""

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from rlsvi.cli.errors import report_errors

PACKAGES = ("rlsvi", "numpy", "numba", "scipy", "polars", "gymnasium", "ray", "torch", "numba-cuda")


def info(as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """Show versions, cores, the graphics card and where compiled code is kept, for reports of faults."""
    with report_errors(lambda: "not all was shown"):
        from rlsvi.core.card import NoCard, cuda
        from rlsvi.core.machine import cores, memory
        from rlsvi.core.random import bits

        try:
            card = str(cuda().get_current_device().name)
        except NoCard as error:
            card = f"none ({error})"
        cache = getattr(getattr(bits, "_cache", None), "cache_path", None)
        found = {
            "python": platform.python_version(),
            **{name: _version(name) for name in PACKAGES},
            "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
            "cores": str(cores()),
            "memory": f"{memory() / 2**30:.0f} GiB",
            "card": card,
            "compiled code": "not kept" if cache is None else str(cache),
        }
        if as_json:
            print(json.dumps(found, indent=1))
        else:
            print("\n".join(f"{name:<14} {value}" for name, value in found.items()))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
