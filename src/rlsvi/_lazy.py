"""Exports of a package that are loaded on first use, so that importing the package is cheap.

A package writes its exports as ordinary imports under `if TYPE_CHECKING`, which type checkers and editors read,
and below them `__getattr__, __dir__, __all__ = lazy_exports(__name__)`.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def exports_of(package: str) -> dict[str, str]:
    """Return the names that the `__init__.py` of a package imports, and their modules. Nothing is imported."""
    path = Path(__file__).parent.joinpath(*package.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    homes: dict[str, str] = {}
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "rlsvi":
            for name in (alias.name for alias in node.names):
                homes |= exports_of(str(node.module)) if name == "*" else {name: str(node.module)}
    return {name: home for name, home in homes.items() if home != "rlsvi._lazy"}


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package."""
    homes = exports_of(package)

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        value = import_module(f"{home}.{name}") if home == package else getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)  # where it is found next time
        return value

    names = sorted(homes)
    return load, lambda: [*names, "__version__"] if package == "rlsvi" else names, names
