"""Writes an invoice for each committed order: python invoices.py ORDERS INVOICES CHECKPOINT."""

import sys

from pyspark.sql import SparkSession

orders, invoices, checkpoint = sys.argv[1:]
spark = SparkSession.builder.appName("invoices").getOrCreate()
query = (
    spark.readStream.format("txnkafka")  # read_committed
    .option("subscribe", "orders")
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", 12)
    .load(orders)
    .selectExpr(
        "key",
        "cast(cast(value as string) as int) as net",
        "concat(topic, '-', partition, '@', offset) as source",
    )
    .selectExpr("key", "concat(net * 1.19, ' EUR for ', source) as value")
    .writeStream.format("txnkafka")  # each micro-batch is one transaction
    .option("path", invoices)
    .option("topic", "invoices")
    .option("checkpointLocation", checkpoint)
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
