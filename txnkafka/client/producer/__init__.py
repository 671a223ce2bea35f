"""The producer: records in batches, once each, in transactions."""

from txnkafka._core.record_list import RecordFuture
from txnkafka.client.producer.producer import Producer
from txnkafka.client.producer.producer_config import ProducerConfig
from txnkafka.client.producer.record_metadata import BatchMetadata, RecordMetadata
from txnkafka.client.producer.sent_batches import SentBatches

__all__ = ["BatchMetadata", "Producer", "ProducerConfig", "RecordFuture", "RecordMetadata", "SentBatches"]
