"""One check-back producer and a consumer, or a transactional producer, driven by a pipe like ``Bench.java``.

    python -m bench.checkback_program BOOTSTRAP ID

Commands, one a line: ``send``, ``send-visible``, ``transact`` or ``two-phase``, then a prefix, the first
number and the count of values of 100 bytes; the answer has the seconds of each. ``wait`` waits until all
messages of this process are visible. The local transaction of a message commits at once.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import cached_property

from bench.confluent import TOPIC
from txnkafka import Consumer, Producer
from txnkafka.checkback import (
    LocalTransactionState,
    Message,
    MessageExt,
    TransactionListener,
    TransactionMQProducer,
)


class CommitAtOnce(TransactionListener):
    """The local transaction takes no time."""

    def execute_local_transaction(self, msg: MessageExt, arg: object) -> LocalTransactionState:
        """Commit."""
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, msg: MessageExt) -> LocalTransactionState:
        """Commit."""
        return LocalTransactionState.COMMIT_MESSAGE


class Program:
    """The clients of one server, each opened by its first use; ``name`` makes transactional ids unique."""

    def __init__(self, servers: str, name: str) -> None:
        self._servers, self._name = servers, name
        self._sent: list[str] = []

    @cached_property
    def _checked(self) -> TransactionMQProducer:
        return TransactionMQProducer("bench", self._servers, transaction_listener=CommitAtOnce()).start()

    @cached_property
    def _reader(self) -> Consumer:
        """At the end of the topic."""
        reader = Consumer(bootstrap_servers=self._servers, topics=[TOPIC], auto_offset_reset="latest")
        for partition in reader.assignment():
            reader.position(partition)
        return reader

    @cached_property
    def _transactional(self) -> Producer:
        producer = Producer(bootstrap_servers=self._servers, transactional_id=self._name, linger_ms=0)
        producer.init_transactions()
        return producer

    @cached_property
    def _two_phase(self) -> Producer:
        producer = Producer(
            bootstrap_servers=self._servers,
            transactional_id=self._name,
            linger_ms=0,
            transaction_two_phase_commit_enable=True,
        )
        producer.init_transactions()
        return producer

    def send(self, value: bytes) -> None:
        """Return when the decision is sent."""
        result = self._checked.send_message_in_transaction(Message(TOPIC, value))
        self._sent.append(str(result.transaction_id))

    def send_visible(self, value: bytes) -> None:
        """Return when a consumer has got the message."""
        reader = self._reader
        self.send(value)
        while not reader.poll(1_000):
            pass

    def transact(self, value: bytes) -> None:
        """Commit a transaction."""
        with self._transactional.transaction():
            self._transactional.send(TOPIC, value, partition=0)

    def two_phase(self, value: bytes) -> None:
        """Prepare a transaction, and complete it."""
        producer = self._two_phase
        producer.begin_transaction()
        producer.send(TOPIC, value, partition=0)
        producer.complete_transaction(producer.prepare_transaction())

    def wait(self) -> None:
        """Return when all messages are visible."""
        for sent in self._sent:
            self._checked.wait_until_done(sent)
        self._sent.clear()


def timed(work: Callable[[bytes], None], prefix: str, first: int, count: int) -> list[float]:
    """The seconds of each value."""
    found = []
    for number in range(first, first + count):
        value = b"%s%099d" % (prefix.encode(), number)
        begin = time.perf_counter()
        work(value)
        found.append(time.perf_counter() - begin)
    return found


def main() -> None:
    """Answer until the end of the input."""
    program = Program(*sys.argv[1:])
    for line in sys.stdin:
        verb, *words = line.split()
        if verb == "wait":
            program.wait()
            found: list[float] = []
        else:
            prefix, first, count = words
            work = getattr(program, verb.replace("-", "_"))
            found = timed(work, prefix, int(first), int(count))
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
