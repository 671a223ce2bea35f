"""The integration tests that client libraries ship, run on `txnkafka serve` and on Apache Kafka."""
