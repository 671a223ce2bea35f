"""Kafka log directories on Spark, filtered and decoded in the executors.

``batches`` and ``map_arrow`` for programs, ``spark.read.format("txnkafka")`` for DataFrames.
"""

from __future__ import annotations

from txnkafka.spark.configure import configure, register
from txnkafka.spark.jobs import batches, map_arrow
from txnkafka.spark.options import ReadKeywords
from txnkafka.spark.ship import ship
from txnkafka.spark.source import TxnKafkaDataSource

__all__ = ["ReadKeywords", "TxnKafkaDataSource", "batches", "configure", "map_arrow", "register", "ship"]
