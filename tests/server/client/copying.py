"""A program to kill: it fills the topic ``in`` of an embedded broker with numbers, and copies them to ``out``
with one transaction for each poll.

Its lines: ``open``, ``sent N`` when the number N is acknowledged, ``copied N`` when all numbers up to N are
committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from threading import Thread

from txnkafka import Broker, TopicPartition, UnknownTopicOrPartitionError

IN = TopicPartition("in", 0)
PARTITIONS = 2  # of out


def fill(broker: Broker, say: Callable[[str], None]) -> None:
    """Send the numbers that follow the log, a few at a time."""
    with broker.producer(linger_ms=0) as producer, broker.consumer() as reader:
        number = reader.end_offsets([IN])[IN]
        while True:
            sent = [producer.send("in", b"%d" % (number + i), partition=0) for i in range(5)]
            for future in sent:
                say(f"sent {future.result().offset}")
            number += len(sent)


def copy(broker: Broker, say: Callable[[str], None]) -> None:
    """Copy, with the offsets of the group in the same transaction."""
    producer = broker.producer(transactional_id="copier")
    producer.init_transactions()  # aborts an open transaction, whose offsets the consumer would wait for
    # a static member takes the place of its killed predecessor at once (KIP-345)
    membership = {"group_id": "copier", "group_instance_id": "copier", "enable_auto_commit": False}
    consumer = broker.consumer("in", **membership)
    while True:
        records = consumer.poll(1000, max_records=4)
        if not records:
            continue
        with producer.transaction():
            for record in records:
                assert record.value is not None
                producer.send("out", record.value, partition=int(record.value) % PARTITIONS)
            producer.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())
        say(f"copied {records[-1].offset}")


def main(directory: str, output: Connection) -> None:
    """Run until the process is killed, with stderr in a file beside the directory."""
    os.dup2(os.open(f"{directory}.stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)

    def say(line: str) -> None:
        os.write(output.fileno(), f"{line}\n".encode())  # whole: two threads write

    settings = {"transaction.state.log.num.partitions": 1, "offsets.topic.num.partitions": 1}
    with Broker.open(directory, **settings) as broker:
        with broker.admin() as admin:
            try:
                admin.describe_topics(["in"])
            except UnknownTopicOrPartitionError:
                admin.create_topic("in", partitions=1)
                admin.create_topic("out", partitions=PARTITIONS)
        say("open")
        Thread(target=fill, args=(broker, say), daemon=True).start()
        copy(broker, say)
