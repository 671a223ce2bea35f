"""Hands a stopped data directory over, to Apache Kafka or to ``txnkafka serve``: says what the next owner
will do with it, and makes it what that owner may believe."""
