"""Threads that write transactions and one that reads them, while the server comes and goes."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.server.client_commands import Client, ClientError, Transactional
from tests.server.transaction_history import Outcome, Transaction

__all__ = ["Reader", "Writer", "Writing"]

SECONDS = 60.0
RECONNECT = {"reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 200}


class Writing(NamedTuple):
    """A client and the settings of its producers."""

    client: Client
    configs: Mapping[str, object] = {}


class Writer(threading.Thread):
    """Transactions of one producer, one after the other. What the client was told is in ``transactions``,
    the errors that it got in ``errors``; ``failure`` is what has ended the thread."""

    def __init__(self, name: str, writing: Writing, server: str, topic: str, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.transactions: list[Transaction] = []
        self.errors: Counter[str] = Counter()
        self.failure: BaseException | None = None
        self._writing, self._server, self._topic = writing, server, topic
        self._rng = random.Random(f"{name} {seed}")
        self._producer: Transactional | None = None
        self._instances = self._records = 0
        self._is_ending = threading.Event()

    def run(self) -> None:
        """Write until ``end``."""
        try:
            while not self._is_ending.is_set():
                self._try_transaction()
        except BaseException as error:
            self.failure = error

    def end(self) -> None:
        """Finish the transaction under way, and leave none open. The server is there again."""
        self._is_ending.set()
        self.join(2 * SECONDS)
        if self.failure is not None:
            raise self.failure
        if self.is_alive():
            raise TimeoutError(f"{self.name} does not end; errors so far: {dict(self.errors)}")
        deadline = time.monotonic() + SECONDS
        while not self._is_opened():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} gets no producer id: {dict(self.errors)}")

    def counts(self) -> dict[str, int]:
        """How many transactions had which outcome."""
        found = Counter(transaction.outcome.value for transaction in self.transactions)
        return {outcome.value: found[outcome.value] for outcome in Outcome}

    def _is_opened(self) -> bool:
        """A new instance takes over, which ends what the one before has left open."""
        try:
            self._open()
        except ClientError as error:
            self._note(error)
            return False
        self._close()
        return True

    def _try_transaction(self) -> None:
        try:
            producer = self._producer or self._open()
            self._transaction(producer)
        except ClientError as error:
            self._note(error)
            self._recover()

    def _transaction(self, producer: Transactional) -> None:
        rng, first = self._rng, self._records
        self._records += rng.randint(1, 12)
        records = [(rng.randrange(3), f"{self.name}:{number}") for number in range(first, self._records)]
        transaction = Transaction(records)
        producer.begin()
        self.transactions.append(transaction)
        size = rng.choice((0, 0, 100, 5000))
        producer.send_to(self._topic, records, size=size, wait=rng.random() < 0.5)
        if rng.random() < 0.3:
            producer.abort()
            return
        transaction.outcome = Outcome.UNKNOWN
        producer.commit()
        transaction.outcome = Outcome.COMMITTED

    def _recover(self) -> None:
        """Abort, or start again as a new instance: what cannot be aborted, and what may be committed."""
        producer = self._producer
        if producer is None:
            return
        if self.transactions and self.transactions[-1].outcome is not Outcome.UNKNOWN:
            try:
                producer.abort()
            except ClientError as error:
                self._note(error)
            else:
                return
        self._close()

    def _open(self) -> Transactional:
        self._instances += 1
        instance = f"{self.name}-{self._instances}"
        client, configs = self._writing
        producer = Transactional(client, self._server, self.name, instance, **RECONNECT, **configs)
        try:
            producer.init()
        except ClientError:
            # Not aborted: confluent-kafka 2.16 would never free it, and it would fence its successor.
            producer.close()
            raise
        self._producer = producer
        return producer

    def _close(self) -> None:
        assert self._producer is not None
        self._producer.close()
        self._producer = None

    def _note(self, error: ClientError) -> None:
        self.errors[error.name] += 1


class Reader(threading.Thread):
    """One consumer of librdkafka from the first record to the last: ``records`` are offsets and values by
    partition, ``times`` when it got them, in seconds of the monotonic clock. A consumer that is put back, or
    has lost its place, is a failure."""

    def __init__(
        self, server: str, topic: str, partitions: int, isolation_level: str = "read_committed"
    ) -> None:
        super().__init__(name="reader", daemon=True)
        self.records: dict[int, list[tuple[int, str]]] = {number: [] for number in range(partitions)}
        self.times: dict[int, list[float]] = {number: [] for number in range(partitions)}
        self.failures: list[str] = []
        self._assigned = [TopicPartition(topic, number, 0) for number in range(partitions)]
        self._ends: dict[int, int] = {}
        self._is_ending = threading.Event()
        self._settings: dict[str, Any] = {
            "bootstrap.servers": server, "group.id": "none", "isolation.level": isolation_level,
            "enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "error",
            "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "log_level": 0,
            "error_cb": lambda _: None,
        }  # fmt: skip

    def run(self) -> None:
        """Read until ``end``."""
        consumer = Consumer(self._settings)
        consumer.assign(self._assigned)
        while not self._is_ending.is_set():
            message = consumer.poll(0.2)
            if message is None:
                continue
            error, partition = message.error(), message.partition()
            if error is None:
                value = (message.value() or b"").decode().rstrip(".")
                self.records[partition].append((message.offset(), value))
                self.times[partition].append(time.monotonic())
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ends[partition] = message.offset()
            else:
                self.failures.append(error.str())
        consumer.close()

    def end(self) -> None:
        """Read what is there, and stop. The server is there again, and no transaction is open."""
        consumer, deadline = Consumer(self._settings), time.monotonic() + SECONDS
        wanted = {each.partition: consumer.get_watermark_offsets(each, SECONDS)[1] for each in self._assigned}
        consumer.close()
        while self._ends != wanted:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the consumer is at {self._ends}, the log ends at {wanted}")
            time.sleep(0.02)
        self.close()

    def close(self) -> None:
        """Stop, wherever it is."""
        self._is_ending.set()
        self.join(SECONDS)
