"""Hands a stopped data directory over to Apache Kafka or ``txnkafka serve``: predicts what the next owner
does with the directory, and corrects the files that this owner trusts."""
