"""Runs one stream of docs/pipelines.md: python pipeline_driver.py CHECKOUT HEADING SERVER FOLDER JARS CRASH.

``CRASH`` is empty, or ``before`` or ``after``: the process and its JVM die at the third commit.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

CHECKOUT, HEADING, SERVER, FOLDER, JARS, CRASH = sys.argv[1:]
sys.path.insert(0, CHECKOUT)

import confluent_kafka  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

from tests.spark.conftest import SETTINGS  # noqa: E402

PAGE = (Path(CHECKOUT) / "docs" / "pipelines.md").read_text(encoding="utf-8")
CRASHES_AT = 3


class DyingProducer(confluent_kafka.Producer):  # type: ignore[misc]
    """A producer whose process dies before or after a commit."""

    commits = 0

    def commit_transaction(self, *arguments: Any) -> None:
        """Commit, or die."""
        self.commits += 1
        if CRASH == "before" and self.commits == CRASHES_AT:
            self.flush()  # the records are in the log
            os.killpg(0, signal.SIGKILL)
        super().commit_transaction(*arguments)
        if CRASH == "after" and self.commits == CRASHES_AT:
            os.killpg(0, signal.SIGKILL)


def block(heading: str) -> str:
    """Return the block of Python under a heading, with the places of this test."""
    pattern = rf"^## {re.escape(heading)}\n.*?^```python\n(.*?)^```"
    (source,) = re.findall(pattern, PAGE, re.DOTALL | re.MULTILINE)
    text = str(source).replace("127.0.0.1:9092", SERVER).replace("/data/", f"{FOLDER}/")
    return text.replace("1_000_000", "120").replace(".trigger(", '.queryName("q").trigger(')


builder = SparkSession.builder.master("local[2]").config("spark.jars", JARS)
for name, value in SETTINGS.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
confluent_kafka.Producer = DyingProducer
names: dict[str, Any] = {"spark": spark}
source, sink = block("Stream to files").split("query = (", 1)
exec(source, names)
exec(f"query = ({sink}" if HEADING == "Stream to files" else block(HEADING), names)
spark.stop()
