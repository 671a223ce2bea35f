"""Reads Kafka log directories on Spark; filtering and decoding happen in the executors.

``batches``, ``map_arrow`` and ``scan`` are for programs, ``spark.read.format("txnkafka")`` and ``table`` for
DataFrames, ``count`` for the number of records.
"""

from __future__ import annotations

from txnkafka.spark.configure import configure, register
from txnkafka.spark.jobs import batches, map_arrow, scan
from txnkafka.spark.log_jobs import Verified, copy, transactions, verify
from txnkafka.spark.options import ReadKeywords
from txnkafka.spark.ship import ship
from txnkafka.spark.sink.vacuum import vacuum
from txnkafka.spark.sink.write_batch import write_batch
from txnkafka.spark.source import TxnKafkaDataSource
from txnkafka.spark.table_jobs import count, table

__all__ = [
    "ReadKeywords",
    "TxnKafkaDataSource",
    "Verified",
    "batches",
    "configure",
    "copy",
    "count",
    "map_arrow",
    "register",
    "scan",
    "ship",
    "table",
    "transactions",
    "vacuum",
    "verify",
    "write_batch",
]
