"""What an append is answered with by Kafka's log and by ours, and where both may differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from txnkafka.model import ProducerStateEntry

__all__ = ["Answer", "answer_of", "repeats_ended"]

TRANSACTIONAL = 0x10


class Answer(NamedTuple):
    """Offsets are -1 when it was refused."""

    code: int
    first_offset: int = -1
    last_offset: int = -1
    log_append_time: int = -1


def answer_of(found: Mapping[str, Any]) -> Answer:
    """That of ``KafkaLog``."""
    if found["code"]:
        return Answer(found["code"])
    return Answer(0, found["first"], found["last"], found["time"])


def repeats_ended(attributes: int, producer: ProducerStateEntry | None, offset: int) -> bool:
    """Whether a batch would repeat the one at ``offset``, which is not in its producer's open transaction: a
    duplicate for Kafka, and refused by ours."""
    if not attributes & TRANSACTIONAL or producer is None:
        return False
    return not 0 <= producer.current_txn_first_offset <= offset
