"""Clients of Kafka brokers: producer, consumer, admin, over a socket or in process."""
