"""``spark.readStream.format("txnkafka")``: offsets, limits and plans of a stream."""
