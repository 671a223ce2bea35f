"""Kafka log directories on Spark, filtered and decoded in the executors.

``batches``, ``map_arrow`` and ``scan`` for programs, ``spark.read.format("txnkafka")`` and ``table`` for
DataFrames, ``count`` for how many records there are.
"""

from __future__ import annotations

from txnkafka.spark.configure import configure, register
from txnkafka.spark.jobs import batches, map_arrow, scan
from txnkafka.spark.options import ReadKeywords
from txnkafka.spark.ship import ship
from txnkafka.spark.source import TxnKafkaDataSource
from txnkafka.spark.table_jobs import count, table

__all__ = [
    "ReadKeywords",
    "TxnKafkaDataSource",
    "batches",
    "configure",
    "count",
    "map_arrow",
    "register",
    "scan",
    "ship",
    "table",
]
