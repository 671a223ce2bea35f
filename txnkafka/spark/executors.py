"""Checks whether executors can run the package.

A ``Place`` is a plain dictionary, since it is created where this module may not be importable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any

LIBRARIES = ("numpy", "pyarrow", "cramjam", "isal", "xxhash", "lz4", "zstandard")
SAME_BUILD = ("soabi", "machine")

Place = dict[str, Any]


def needed_libraries() -> tuple[str, ...]:
    """Return the libraries that reading needs, if they exist for this Python. An archive of txnkafka does
    not contain them."""
    return tuple(name for name in LIBRARIES if find_spec(name))


def look_for(needed: tuple[str, ...]) -> Callable[[Iterable[int]], Iterator[Place]]:
    """Return the function that executors run. It is an inner function, so that it is pickled by value: this
    module may not be importable in an executor."""

    def look(_: Iterable[int]) -> Iterator[Place]:
        import platform
        import sys
        import sysconfig
        from importlib import import_module

        def failure(module: str) -> str | None:
            try:
                import_module(module)
            except Exception as error:
                return f"{type(error).__name__}: {error}"
            return None

        broken = {name: why for name in needed if (why := failure(name))}
        core = failure("txnkafka._core.scan")
        package = sys.modules.get("txnkafka")
        yield {
            "host": platform.node(),
            "executable": sys.executable,
            "soabi": str(sysconfig.get_config_var("SOABI")),
            "machine": f"{sys.platform} {platform.machine()}",
            "broken": broken,
            "core": core,
            "version": package and package.__version__,
            "path": package and package.__file__,
        }

    return look


def complaints(here: Place, executors: Iterable[Place]) -> Iterator[str]:
    """Yield a line for each fault, with the affected hosts."""
    hosts = defaultdict(set)
    for there in executors:
        if complaint := _complaint(here, there):
            hosts[complaint].add(there["host"])
    for complaint, names in hosts.items():
        yield f"{', '.join(sorted(names))}: {complaint}"


def _complaint(here: Place, there: Place) -> str | None:
    python = there["executable"]
    for fact in SAME_BUILD:
        if there[fact] != here[fact]:
            return (
                f"{python} is built for {there[fact]}, the driver's {here['executable']} for {here[fact]}; "
                "run the driver on a machine like the executors, or install txnkafka on all of them with pip"
            )
    if there["broken"]:
        names = " ".join(there["broken"])
        why = "; ".join(f"{name}: {text}" for name, text in there["broken"].items())
        return (
            f"libraries are missing in {python}: {names}. Install them there ({python} -m pip install "
            f"{names}), or let PYSPARK_PYTHON name an interpreter that has them ({why})"
        )
    if there["core"]:
        return f"{python} cannot load the compiled core: {there['core']}"
    if there["version"] != here["version"]:
        return (
            f"{python} has txnkafka {there['version']} from {there['path']}, the driver {here['version']}; "
            "start a new session, without another archive of txnkafka"
        )
    return None
