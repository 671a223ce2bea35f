"""The package to the executors of a running session, and a look at whether it can work there.

The check asks every executor that answers now. What it says is one message: what is where, what to do.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import PurePath
from typing import Any

from pyspark import SparkContext, SparkFiles
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from txnkafka.env import write_file
from txnkafka.spark.bundle import ARCHIVE_FRAGMENT, bundle
from txnkafka.spark.configure import register

__all__ = ["needed_libraries", "ship"]

LOG = logging.getLogger("txnkafka.spark")
LIBRARIES = ("numpy", "pyarrow", "cramjam", "isal", "xxhash", "lz4", "zstandard")
SAME_BUILD = ("soabi", "machine")
TASKS_PER_CORE = 4

Place = dict[str, Any]


def ship(spark: SparkSession) -> None:
    """Send the package as it is installed here to the executors, also to those that come later, and
    ``register`` it.

    The libraries that it needs are not sent. Raises RuntimeError when an executor cannot run it: when
    libraries are missing there, or Python or the platform are others than here.
    """
    context = spark.sparkContext
    if not any(uri.endswith(ARCHIVE_FRAGMENT) for uri in context.listArchives):
        packed = bundle()
        path = PurePath(SparkFiles.getRootDirectory()) / packed.name  # goes away with the session
        write_file(str(path), packed.content)
        context.addArchive(f"{path}{ARCHIVE_FRAGMENT}")
    look = _look(needed_libraries())
    (here,) = look([])
    executors = _ask(context, look)
    if complaints := list(_complaints(here, executors)):
        raise RuntimeError(
            "\n".join([f"txnkafka {here['version']} cannot run on the executors:", *complaints])
        )
    LOG.info(
        "txnkafka %s runs on %s", here["version"], ", ".join(sorted({each["host"] for each in executors}))
    )
    register(spark)


def needed_libraries() -> tuple[str, ...]:
    """What reading imports, as far as it exists for this Python. An archive of txnkafka does not bring it."""
    return tuple(name for name in LIBRARIES if find_spec(name))


def _ask(context: SparkContext, look: Callable[[Iterable[int]], Iterator[Place]]) -> list[Place]:
    """What the executors find; more tasks than cores, so that each of them gets one."""
    tasks = TASKS_PER_CORE * context.defaultParallelism
    try:
        return context.parallelize(range(tasks), tasks).mapPartitions(look).collect()
    except PySparkException as error:
        if "PYTHON_VERSION_MISMATCH" not in str(error):
            raise
        lines = [line for line in str(error).splitlines() if "PYTHON_VERSION_MISMATCH" in line]
        raise RuntimeError(
            f"the executors run another Python than the driver: {lines[0].strip()}; "
            "let PYSPARK_PYTHON name an interpreter of the same minor version on every node"
        ) from None


def _look(needed: tuple[str, ...]) -> Callable[[Iterable[int]], Iterator[Place]]:
    """The function that executors run. An inner one, because it travels by value: where it runs, this module
    may not be importable."""

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


def _complaints(here: Place, executors: Iterable[Place]) -> Iterator[str]:
    """A line for each thing that is wrong, with the hosts where it is."""
    hosts = defaultdict(set)
    for there in executors:
        if complaint := _complaint(here, there):
            hosts[complaint].add(there["host"])
    for complaint, names in hosts.items():
        yield f"{', '.join(sorted(names))}: {complaint}"


def _complaint(here: Place, there: Place) -> str | None:
    python = there["executable"]
    for each in SAME_BUILD:
        if there[each] != here[each]:
            return (
                f"{python} is built for {there[each]}, the driver's {here['executable']} for {here[each]}; "
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
