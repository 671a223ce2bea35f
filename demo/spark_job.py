"""The Spark half of the demo: the programs that are shown are the programs that run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["BY_HAND", "IN_SQL", "by_hand", "in_sql", "quiet_session"]

BY_HAND = """\
from txnkafka.spark import batches

def count(batch):               # an Arrow record batch, in an executor
    return batch["partition"][0].as_py(), batch.num_rows

found = batches(spark, path, topic="payments", isolation_level=level)
result = dict(found.map(count).reduceByKey(int.__add__).collect())
"""
IN_SQL = """\
(spark.read.format("txnkafka")  # read_committed unless told otherwise
    .option("subscribe", "payments")
    .load(path)
    .createOrReplaceTempView("payments"))
result = spark.sql(\"\"\"
    select partition, count(*) as records, max(offset) as last_offset
    from payments group by partition order by partition\"\"\")
"""
SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def quiet_session(root: Path) -> Iterator[SparkSession]:
    """A local session on two cores, whose workers run this Python and see the checkout at ``root``.

    What Spark itself has to say goes into a file.
    """
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(root)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    log = root / "build" / "demo-spark.log"
    builder = SparkSession.builder.master("local[2]").appName("txnkafka demo")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    try:
        with errors_into(log):
            spark = builder.getOrCreate()
    except Exception as error:
        raise SystemExit(f"Spark did not start ({error}); {log} has what it said") from error
    try:
        yield spark
    finally:
        spark.stop()


def by_hand(spark: SparkSession, path: str) -> dict[str, dict[int, int]]:
    """Records of each partition, by isolation level."""
    levels = ("read_committed", "read_uncommitted")
    return {level: _run(BY_HAND, spark=spark, path=path, level=level) for level in levels}


def in_sql(spark: SparkSession, path: str) -> str:
    """The table that Spark prints."""
    table: str = _run(IN_SQL, spark=spark, path=path)._show_string()
    return table.rstrip()


def _run(program: str, **names: Any) -> Any:
    exec(program, names)
    return names["result"]


@contextmanager
def errors_into(path: Path) -> Iterator[None]:
    """Processes that start meanwhile write their stderr into ``path`` for as long as they live."""
    path.parent.mkdir(exist_ok=True)
    kept = os.dup(2)
    with path.open("wb") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
