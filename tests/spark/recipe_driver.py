"""A program that follows a recipe of docs/spark.md: python recipe_driver.py CHECKOUT RESULT LOGS RECIPE."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

CHECKOUT, RESULT, LOGS, RECIPE = sys.argv[1:]
sys.path.insert(0, CHECKOUT)

from pyspark.sql import SparkSession  # noqa: E402

import txnkafka.spark  # noqa: E402
from tests.spark.cluster import session  # noqa: E402
from tests.spark.conftest import SPARK  # noqa: E402
from txnkafka.spark.functions import decode_record_batches  # noqa: E402


def prepare(spark: SparkSession) -> None:
    if RECIPE == "ship":
        txnkafka.spark.ship(spark)
        txnkafka.spark.ship(spark)  # a second call changes nothing
    elif RECIPE == "archives":
        txnkafka.spark.register(spark)


def look(_: Iterator[int]) -> Iterator[tuple[str, str]]:
    """Return where the package is imported from; runs in the executors."""
    import sys

    import txnkafka

    yield sys.executable, txnkafka.__file__


def run(spark: SparkSession) -> dict[str, object]:
    prepare(spark)
    found = {
        "places": sorted(set(spark.sparkContext.parallelize(range(8), 8).mapPartitions(look).collect())),
        "batches": txnkafka.spark.batches(spark, LOGS).map(lambda batch: batch.num_rows).sum(),
        "source": spark.read.format("txnkafka").load(LOGS).count(),
    }
    if SPARK < (4, 1):
        return found  # without the functions
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    content = files.option("pathGlobFilter", "*.log").load(LOGS)
    if RECIPE == "pip":  # the functions are not registered for SQL
        records = content.select(decode_record_batches("content").alias("records"))
    else:
        records = content.selectExpr("txnkafka_decode_record_batches(content) as records")
    return {**found, "decoded": records.selectExpr("sum(size(records))").first()[0]}  # type: ignore[index]


spark = session()
try:
    Path(RESULT).write_text(json.dumps(run(spark)))
except RuntimeError as error:
    Path(RESULT).write_text(json.dumps({"error": str(error)}))
finally:
    spark.stop()
