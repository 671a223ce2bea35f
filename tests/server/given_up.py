"""A message that librdkafka gives up although the broker has written it, and the one that gets its sequence.

`abort_transaction` purges messages that wait for a retry (`rd_kafka_toppar_purge_queues`), and gives their
sequence numbers to the next messages of the partition.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.server.answer_eater import AnswerEater

__all__ = ["BEFORE", "Told", "write_after_giving_up"]

SECONDS = 60.0
BEFORE, GIVEN_UP, AFTER = b"before", b"given up", b"after"
QUIET: dict[str, Any] = {"log_level": 0, "error_cb": lambda _: None}


class Told(NamedTuple):
    """What the producer was told of AFTER, and what a read_committed consumer gets then."""

    offset: int | None
    is_committed: bool
    seen: list[bytes | None]


def write_after_giving_up(eater: AnswerEater, topic: str) -> Told:
    """Commit BEFORE, abort while the broker has GIVEN_UP and the client does not know, and commit AFTER. The
    topic has one partition; the eater has started."""
    reconnect = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100}
    producer = Producer(
        {"bootstrap.servers": eater.address, "transactional.id": topic, "linger.ms": 0, **reconnect, **QUIET}
    )
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(topic, BEFORE)
    producer.commit_transaction(SECONDS)
    producer.begin_transaction()
    eater.arm()
    producer.produce(topic, GIVEN_UP)
    assert eater.eaten.wait(SECONDS)
    threading.Timer(0.3, eater.let_pass).start()  # when the message is purged
    producer.abort_transaction(SECONDS)
    producer.begin_transaction()
    offsets: list[int] = []
    producer.produce(topic, AFTER, on_delivery=lambda error, done: error or offsets.append(done.offset()))
    try:
        producer.commit_transaction(SECONDS)
    except KafkaException:
        is_committed = False
    else:
        is_committed = True
    seen = committed(eater.address, topic)
    return Told(offsets[0] if offsets else None, is_committed, seen)


def committed(server: str, topic: str) -> list[bytes | None]:
    """The values that a read_committed consumer gets."""
    settings = {"bootstrap.servers": server, "group.id": "none", "enable.partition.eof": True, **QUIET}
    consumer, found = Consumer(settings), list[bytes | None]()
    consumer.assign([TopicPartition(topic, 0, 0)])
    while (message := consumer.poll(SECONDS)) is not None and message.error() is None:
        found.append(message.value())
    consumer.close()
    return found
