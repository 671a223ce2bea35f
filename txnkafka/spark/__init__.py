"""Kafka log directories on Spark, filtered and decoded in the executors.

``batches``, ``map_arrow`` and ``scan`` for programs, ``spark.read.format("txnkafka")`` for DataFrames.
"""

from __future__ import annotations

from txnkafka.spark.jobs import batches, map_arrow, scan
from txnkafka.spark.options import ReadKeywords
from txnkafka.spark.source import TxnKafkaDataSource

__all__ = ["ReadKeywords", "TxnKafkaDataSource", "batches", "map_arrow", "scan"]
