"""librdkafka copies a topic in transactions with its group's offsets, until there is a line on stdin.

The commands and the journal are those of ``java/clients/EndlessCopyProcess.java``.
"""

from __future__ import annotations

import os
import select
import sys
import time
from typing import Any, NoReturn

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

RECORDS = 20  # of a transaction, at most
SECONDS = 30.0


class Copier:
    """A member of the group, and its producer."""

    def __init__(self, server: str, source: str, target: str, group: str, name: str, start: str) -> None:
        # Without recovery: librdkafka 2.16 otherwise gives up the handle of its only broker when it is away.
        # Its cache keeps it for the group's coordinator, and send_offsets_to_transaction waits on and on.
        common: dict[str, Any] = {
            "metadata.recovery.strategy": "none",
            "bootstrap.servers": server, "log_level": 0, "error_cb": lambda _: None,
            "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200,
        }  # fmt: skip
        self._consumer = Consumer(
            {
                **common, "group.id": group, "isolation.level": "read_committed",
                "enable.auto.commit": False, "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "range", "session.timeout.ms": 2000,
                "heartbeat.interval.ms": 300, "max.poll.interval.ms": 10000,
            }
        )  # fmt: skip
        self._producer = Producer(
            {**common, "transactional.id": name, "transaction.timeout.ms": 4000, "linger.ms": 0}
        )
        self._source, self._target, self._prefix = source, target, f"{name}:{start}"
        self._metadata: object = None
        self._number = 0

    def run(self) -> None:
        """Copy until there is a line on stdin; the third transaction of three is aborted."""
        self._producer.init_transactions(SECONDS)
        self._consumer.subscribe([self._source], on_assign=self._remember)
        while not select.select([sys.stdin], [], [], 0)[0]:
            found = [each for each in self._consumer.consume(RECORDS, 0.2) if each.error() is None]
            if found:
                self._number += 1
                self._transaction(found)
        self._consumer.close()

    def _remember(self, consumer: Consumer, _: list[TopicPartition]) -> None:
        """The member and its generation as they were when it got its partitions. What librdkafka says later
        may be that it is no member any more, and offsets that no member commits fence nobody."""
        self._metadata = consumer.consumer_group_metadata()

    def _transaction(self, messages: list[Message]) -> None:
        copies = [(each.partition(), f"{self._prefix}.{self._number}/{_text(each)}") for each in messages]
        note("begin", *(f"{partition}:{value}" for partition, value in copies))
        try:
            self._producer.begin_transaction()
            for partition, value in copies:
                self._producer.produce(self._target, value, partition=partition)
            after = {each.partition(): each.offset() + 1 for each in messages}
            offsets = [TopicPartition(self._source, *each) for each in after.items()]
            self._producer.send_offsets_to_transaction(offsets, self._metadata, SECONDS)
            if self._number % 3:
                note("decide")
                self._producer.commit_transaction(SECONDS)
                note("committed")
                return
        except KafkaException as error:
            note("error", error.args[0].name())
            if not error.args[0].txn_requires_abort():
                raise
        self._producer.abort_transaction(SECONDS)
        note("aborted")
        self._read_again(messages)

    def _read_again(self, messages: list[Message]) -> None:
        assigned = {each.partition for each in self._consumer.assignment()}
        for each in reversed(messages):  # the first of a partition is the last to be sought
            if each.partition() in assigned:
                self._consumer.seek(TopicPartition(self._source, each.partition(), each.offset()))


def _text(message: Message) -> str:
    return (message.value() or b"").decode()


def note(event: str, *words: str) -> None:
    """Append a line to the journal, which is on stdout, in one write: it may be killed at any time."""
    os.write(1, f"{' '.join((str(time.monotonic_ns()), event, *words))}\n".encode())


def main() -> NoReturn:
    """Arguments: bootstrap servers, topic, target, group, name, number of this start. Ends with status 1
    after an error that only a new producer can mend, without closing anything."""
    try:
        Copier(*sys.argv[1:]).run()
    except KafkaException as error:
        note("ended", error.args[0].name())
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
