"""Lets Spark find ``format("txnkafka")`` by itself: it imports every top-level module named ``pyspark_*`` and
registers its ``DefaultSource``."""

from __future__ import annotations

from txnkafka.spark.source import TxnKafkaDataSource as DefaultSource

__all__ = ["DefaultSource"]
