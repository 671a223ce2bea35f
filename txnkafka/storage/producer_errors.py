"""What the table of producers refuses, as errors under Kafka's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.errors import (
    CorruptRecordError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    OutOfOrderSequenceError,
    ProduceError,
    TransactionCoordinatorFencedError,
)

if TYPE_CHECKING:
    from txnkafka._core.producer_rules import Checked
    from txnkafka.model import TopicPartition

__all__ = ["refusal"]

_KINDS: dict[int, type[KafkaError]] = {
    kind.code: kind
    for kind in (
        CorruptRecordError,
        InvalidProducerEpochError,
        InvalidTxnStateError,
        OutOfOrderSequenceError,
        TransactionCoordinatorFencedError,
    )
}


def refusal(checked: Checked, topic_partition: TopicPartition) -> KafkaError:
    """The error of a batch that must not be written."""
    return _KINDS.get(checked.code, ProduceError)(f"{topic_partition}: {checked.text}")
