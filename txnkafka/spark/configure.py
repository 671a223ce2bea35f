"""What a session needs to know of txnkafka, before it starts and after."""

from __future__ import annotations

from pyspark.sql import SparkSession

from txnkafka.spark.functions import register_functions
from txnkafka.spark.source import TxnKafkaDataSource

__all__ = ["configure", "register"]

# Without the socket every Python task waits some 40 ms; together they move about a fifth more bytes.
BEFORE_THE_SESSION = {
    "spark.buffer.size": str(1 << 20),
    "spark.python.unix.domain.socket.enabled": "true",  # Spark 4.1; older versions do not look at it
}


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Settings that make Python workers quicker; they count for a session that is not there yet."""
    for name, value in BEFORE_THE_SESSION.items():
        builder = builder.config(name, value)
    return builder


def register(spark: SparkSession) -> None:
    """Make ``format("txnkafka")`` and the SQL functions known to a session, and let Spark push filters
    down to Python sources (Spark 4.1)."""
    spark.dataSource.register(TxnKafkaDataSource)
    register_functions(spark)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
