"""Sends the package to the executors of a running session, and checks that it works there.

The check covers every executor that answers now. Its faults are raised as one message with hosts and
remedies.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath

from pyspark import SparkContext, SparkFiles
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from txnkafka.env import LocalDataFiles, write_durably
from txnkafka.spark.bundle import ARCHIVE_FRAGMENT, bundle
from txnkafka.spark.configure import register
from txnkafka.spark.executors import Place, complaints, look_for, needed_libraries

LOG = logging.getLogger("txnkafka.spark")
TASKS_PER_CORE = 4
OTHER_PYTHON = "PYTHON_VERSION_MISMATCH"  # Spark itself checks the minor version before it runs anything


def ship(spark: SparkSession) -> None:
    """Send the installed package to the executors, including later ones, and ``register`` it.

    The libraries that it needs are not sent. Raises RuntimeError when an executor cannot run it, because
    libraries are missing, or Python or the platform differ."""
    context = spark.sparkContext
    if not any(uri.endswith(ARCHIVE_FRAGMENT) for uri in context.listArchives):
        packed = bundle()
        path = PurePath(SparkFiles.getRootDirectory()) / packed.name  # deleted with the session
        write_durably(LocalDataFiles(), str(path), packed.content)
        context.addArchive(f"{path}{ARCHIVE_FRAGMENT}")
    look = look_for(needed_libraries())
    (here,) = look([])
    executors = _ask(context, look)
    if wrong := list(complaints(here, executors)):
        raise RuntimeError("\n".join([f"txnkafka {here['version']} cannot run on the executors:", *wrong]))
    hosts = sorted({executor["host"] for executor in executors})
    LOG.info("txnkafka %s runs on %s", here["version"], ", ".join(hosts))
    register(spark)


def _ask(context: SparkContext, look: Callable[[Iterable[int]], Iterator[Place]]) -> list[Place]:
    """Collect the results of all executors, with more tasks than cores, so that each executor gets one."""
    tasks = TASKS_PER_CORE * context.defaultParallelism
    try:
        return context.parallelize(range(tasks), tasks).mapPartitions(look).collect()
    except PySparkException as error:
        if OTHER_PYTHON not in str(error):
            raise
        versions = str(error).partition(f"[{OTHER_PYTHON}] ")[2].partition(", PySpark")[0]
        raise RuntimeError(
            f"{versions}; let PYSPARK_PYTHON name an interpreter of the same minor version on every node"
        ) from None
