"""Streams files of numbers into a data directory: python sink_driver.py CHECKOUT FOLDER MASTER [OPTION=TEXT].

Each file is a batch, and its even numbers go to another topic than the odd ones. A value is a number and the
id of this process, so that the rows of two attempts differ. FOLDER has the directories ``in``, ``data``,
``checkpoint`` and ``faults``. The program may be killed, and started again.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

CHECKOUT, FOLDER, MASTER, *OPTIONS = sys.argv[1:]
sys.path.insert(0, CHECKOUT)
os.environ["PYTHONPATH"] = CHECKOUT  # workers import the faults
os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession  # noqa: E402

from tests.spark.conftest import SETTINGS  # noqa: E402
from tests.spark.sink_faults import DRIVER, FaultySource  # noqa: E402
from txnkafka.spark import configure  # noqa: E402

ROOT = Path(FOLDER)
ROWS = (
    f"concat(value, ' {os.getpid()}') as value",
    "value as key",
    "if(cast(value as int) % 2 = 0, 'even', 'odd') as topic",
)


def session() -> SparkSession:
    builder = configure(SparkSession.builder.master(MASTER).appName("sink"))
    for name, value in {**SETTINGS, "spark.local.dir": str(ROOT / "spark")}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main() -> None:
    (ROOT / "faults").mkdir(exist_ok=True)
    (ROOT / "faults" / DRIVER).write_text(str(os.getpid()))
    spark = session()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(FaultySource)
    options = {"path": str(ROOT / "data"), **dict(each.split("=", 1) for each in OPTIONS)}
    options = {name: text for name, text in options.items() if text}
    stream = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1).text(str(ROOT / "in"))
    rows = stream.repartition(2).selectExpr(*ROWS)
    writer = rows.writeStream.format("faulty").options(**options, faults=str(ROOT / "faults"))
    query = writer.option("checkpointLocation", str(ROOT / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    spark.stop()


main()
