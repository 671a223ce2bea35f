"""Runs the query of ``sink_runs.py`` in a process that may be killed, and started again:
python sink_driver.py CHECKOUT FOLDER MASTER [OPTION=TEXT].
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
from tests.spark.sink_faults import DRIVER  # noqa: E402
from tests.spark.sink_runs import stream  # noqa: E402
from txnkafka.spark import configure  # noqa: E402


def session(folder: Path) -> SparkSession:
    """Start a session whose files are in the folder."""
    builder = configure(SparkSession.builder.master(MASTER).appName("sink"))
    for name, value in {**SETTINGS, "spark.local.dir": str(folder / "spark")}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


root = Path(FOLDER)
(root / "faults").mkdir(exist_ok=True)
(root / "faults" / DRIVER).write_text(str(os.getpid()))
spark = session(root)
spark.sparkContext.setLogLevel("ERROR")
stream(spark, root, **dict(each.split("=", 1) for each in OPTIONS))
spark.stop()
