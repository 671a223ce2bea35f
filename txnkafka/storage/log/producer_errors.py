"""Converts refusals of the producer table to Kafka's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import CorruptRecordError, KafkaError, ProduceError, class_of

if TYPE_CHECKING:
    from txnkafka._core.producer_rules import Checked
    from txnkafka.model import TopicPartition


def refusal(checked: Checked, topic_partition: TopicPartition) -> KafkaError:
    """Return the error for a batch that must not be written; a ProduceError if the request is wrong."""
    kind = ProduceError if checked.code == ErrorCode.UNKNOWN_SERVER_ERROR else class_of(checked.code)
    if issubclass(kind, CorruptRecordError):
        return as_refusal(kind(checked.text), topic_partition)
    return kind(f"{topic_partition}: {checked.text}")


def as_refusal(error: CorruptRecordError, topic_partition: TopicPartition) -> CorruptRecordError:
    """Add the partition, and the consequence for the append, to the error of a damaged batch; return the
    error."""
    error.locate(topic=topic_partition.topic, partition=topic_partition.partition)
    error.remedy = "Nothing of it was appended"
    return error
