"""Kafka log directories on Spark, filtered and decoded in the executors.

``batches``, ``map_arrow`` and ``scan`` for programs, ``spark.read.format("txnkafka")`` and ``table`` for
DataFrames, ``count`` for how many records there are.
"""

from __future__ import annotations

from txnkafka.spark.jobs import batches, map_arrow, scan
from txnkafka.spark.options import ReadKeywords
from txnkafka.spark.source import TxnKafkaDataSource
from txnkafka.spark.table_jobs import count, table

__all__ = ["ReadKeywords", "TxnKafkaDataSource", "batches", "count", "map_arrow", "scan", "table"]
