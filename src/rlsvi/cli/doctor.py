"""`rlsvi doctor`: what is installed, and whether it works."""

import json
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer

from rlsvi.cli.errors import report_errors
from rlsvi.cli.names import AGENTS, agents_of_packages, load_entry_point, package_of

PACKAGES = ("numpy", "numba", "scipy", "polars", "gymnasium", "ray", "torch", "numba-cuda")


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """Check the installation: show versions, cores and card, and whether everything compiles and learns.

    The doctor compiles a function, lets two small agents learn, and looks at the folder in which compiled code is
    kept and at the graphics card. The first time this takes up to a minute. If something is broken, it says what
    to do about it, and the exit code is 1. If you report a bug, please include what it prints.

    Example: rlsvi doctor
    """
    with report_errors(lambda: "not everything was checked"):
        about = machine()
        if not as_json:
            print("\n".join(f"{name:<16} {value}" for name, value in about.items()), end="\n\n", flush=True)
        found = {}
        for name, (check, remedy) in CHECKS.items():
            found[name] = checked(check, remedy)
            if not as_json:
                print(f"{name:<16} {found[name]['result']}", flush=True)
        broken = [name for name, each in found.items() if not each["works"]]
        if as_json:
            print(json.dumps({**about, "checks": found}, indent=1))
        else:
            print(f"\nbroken: {', '.join(broken)}" if broken else "\neverything works")
        if broken:
            raise typer.Exit(1)


def machine() -> dict[str, str]:
    """The versions of Python and of packages, and the machine that this runs on."""
    import rlsvi
    from rlsvi.core.machine import cores, memory

    return {
        "rlsvi": f"{rlsvi.__version__} in {Path(rlsvi.__file__).parent}",
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "cores": str(cores()),
        "memory": f"{memory() / 2**30:.0f} GiB",
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


# ---- The checks: each returns a few words on what works, or raises an error -------------------------------------


def checked(check: Callable[[], str], remedy: str) -> dict[str, Any]:
    """Whether a check found something to work, and in words what it found, or what to do."""
    try:
        return {"works": True, "result": f"OK: {check()}"}
    except (Exception, SystemExit) as error:  # whatever it is, this is what the doctor is asked about
        return {"works": False, "result": f"BROKEN: {type(error).__name__}: {error!s:.500}\n  remedy: {remedy}"}


def compiler() -> str:
    """Compile a function that no cache holds, and call it."""
    import numba

    begun = time.perf_counter()
    if numba.njit(lambda n: n * (n + 1) // 2)(10) != 55:
        raise RuntimeError("a compiled function gives a wrong result")
    return f"Numba compiles ({time.perf_counter() - begun:.1f} s)"


def cache() -> str:
    """Write a file to the folder of compiled code."""
    from rlsvi.core.random import bits

    folder = getattr(getattr(bits, "_cache", None), "cache_path", None)
    if folder is None:
        raise RuntimeError("compiled code is not kept, so that every start compiles anew")
    Path(folder).mkdir(parents=True, exist_ok=True)
    probe = Path(folder) / f"doctor-{uuid4().hex}.tmp"
    probe.write_bytes(b"")
    probe.unlink()
    return f"compiled code is kept in {folder}"


def compiled_loop() -> str:
    """Let an agent learn in the compiled loop and step by step, which must give the same bits."""
    import numpy as np

    from rlsvi import RLSVI, problems
    from rlsvi.envs import FiniteMDPEnv
    from rlsvi.simulate import simulate

    begun, problem = time.perf_counter(), problems.chain(4)
    fused, stepped = RLSVI(seed=0), RLSVI(seed=0)
    simulate(fused, problem, 20)
    stepped.learn(FiniteMDPEnv(problem.mdp), episodes=20, progress=False)
    if not np.array_equal(fused._plan(True).theta, stepped._plan(True).theta):
        raise RuntimeError("the compiled loop and single steps give different values")
    return f"RLSVI learned the chain, compiled and step by step alike ({time.perf_counter() - begun:.1f} s)"


def default_agent() -> str:
    """Let the default agent learn in an environment of Gymnasium."""
    import gymnasium

    import rlsvi

    begun, env = time.perf_counter(), gymnasium.make("CartPole-v1")
    agent = rlsvi.agent_for(env, seed=0).learn(env, episodes=3, progress=False)
    action, _ = agent.predict(env.reset(seed=0)[0])
    if not env.action_space.contains(action):
        raise RuntimeError(f"the agent chose {action!r}, which is no action of CartPole-v1")
    return f"it learned CartPole-v1 for {agent.episodes} episodes ({time.perf_counter() - begun:.1f} s)"


def environments() -> str:
    """Make an environment of this library by its id."""
    import gymnasium

    gymnasium.make("rlsvi/DeepSea-v0").close()
    return 'gymnasium.make("rlsvi/DeepSea-v0")'


def card() -> str:
    """Let an agent learn on the graphics card, if there is one."""
    import rlsvi
    from rlsvi.core.card import NoCard, cuda

    try:
        name = str(cuda().get_current_device().name)
    except NoCard as error:
        return f"none, and none is needed ({error})"
    agents, begun = {"RLSVI": rlsvi.RLSVI()}, time.perf_counter()
    rlsvi.compare(agents, rlsvi.problems.chain(4), 5, 2, device="cuda", progress=False)
    return f"{name}, on which RLSVI learned the chain ({time.perf_counter() - begun:.1f} s)"


def other_agents() -> str:
    """Import the agents that other packages offer."""
    offered = agents_of_packages()
    for entry in offered:
        if entry.name in AGENTS:
            raise ValueError(f"{entry.name} of {package_of(entry)} is hidden by an agent of this library")
        load_entry_point(entry.name, "rlsvi.agents")
    return ", ".join(f"{entry.name} ({entry.value})" for entry in offered) or "no other package offers one"


CHECKS: dict[str, tuple[Callable[[], str], str]] = {
    "compiler": (compiler, "install Numba again: pip install --force-reinstall numba llvmlite"),
    "compiled code": (cache, "set NUMBA_CACHE_DIR to a folder that you can write to"),
    "compiled loop": (compiled_loop, "remove the folder of compiled code, and run `rlsvi doctor` again"),
    "default agent": (default_agent, "install NumPy and SciPy again: pip install --force-reinstall numpy scipy"),
    "environments": (environments, 'install Gymnasium again: pip install "gymnasium>=1.0,<2"'),
    "card": (card, "update the driver and numba-cuda, or leave the card out: CUDA_VISIBLE_DEVICES= rlsvi .."),
    "other agents": (
        other_agents,
        "update or remove the package that offers it, or write module:name instead",
    ),
}
