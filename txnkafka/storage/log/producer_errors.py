"""What the table of producers refuses, as errors under Kafka's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.errors import (
    CorruptRecordError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTxnStateError,
    KafkaError,
    OutOfOrderSequenceError,
    ProduceError,
    TransactionCoordinatorFencedError,
)

if TYPE_CHECKING:
    from txnkafka._core.producer_rules import Checked
    from txnkafka.model import TopicPartition

__all__ = ["as_refusal", "refusal"]

_KINDS: dict[int, type[KafkaError]] = {
    kind.code: kind
    for kind in (
        CorruptRecordError,
        InvalidProducerEpochError,
        InvalidRecordError,
        InvalidTxnStateError,
        OutOfOrderSequenceError,
        ProduceError,  # -1: the request itself is wrong
        TransactionCoordinatorFencedError,
    )
}


def refusal(checked: Checked, topic_partition: TopicPartition) -> KafkaError:
    """The error of a batch that must not be written."""
    kind = _KINDS[checked.code]
    if issubclass(kind, CorruptRecordError):
        return as_refusal(kind(checked.text), topic_partition)
    return kind(f"{topic_partition}: {checked.text}")


def as_refusal(error: CorruptRecordError, topic_partition: TopicPartition) -> CorruptRecordError:
    """Let the error of a damaged batch say what it means for an append."""
    error.locate(topic=topic_partition.topic, partition=topic_partition.partition)
    error.remedy = "Nothing of it was appended"
    return error
