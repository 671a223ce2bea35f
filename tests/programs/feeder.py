"""``Feeder``: writes the input of a program in small steps, while the broker comes and goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from confluent_kafka import KafkaException, Producer

from tests.programs.copied import key_of, value_of

__all__ = ["Feeder", "lines", "records", "transactions"]

STEP = 20  # records
ABORTED_EVERY = 5  # steps
PAUSE = 0.1  # seconds between two steps
SECONDS = 60.0
Write = Callable[[Sequence[int]], None]


class Feeder(threading.Thread):
    """Writes the numbers from 0 on, as far as ``allow`` permits. ``failure`` has ended the thread."""

    def __init__(self, write: Write, records: int) -> None:
        super().__init__(name="feeder", daemon=True)
        self.failure: BaseException | None = None
        self._write, self._records, self._allowed = write, records, 0
        self._changed = threading.Condition()

    def allow(self, records: int) -> None:
        """Let so many records be written in all."""
        with self._changed:
            self._allowed = records
            self._changed.notify()

    def run(self) -> None:
        """Write all records, with a pause after each step."""
        try:
            for first in range(0, self._records, STEP):
                with self._changed:
                    self._changed.wait_for(lambda first=first: first < self._allowed)
                self._write(range(first, min(first + STEP, self._records)))
                time.sleep(PAUSE)
        except BaseException as error:
            self.failure = error


def lines(path: Path) -> Write:
    """Append each record to a file, as a line."""
    path.touch()

    def write(numbers: Sequence[int]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{value_of(number)}\n" for number in numbers)

    return write


def transactions(server: str, topic: str) -> Write:
    """Write each step in a transaction. Some transactions, with negative numbers, are aborted."""
    producer = _producer(server, {"transactional.id": "feeder", "transaction.timeout.ms": 60_000})
    producer.init_transactions(SECONDS)

    def produce(numbers: Sequence[int]) -> None:
        for number in numbers:
            producer.produce(topic, value_of(number), key_of(number))

    def write(numbers: Sequence[int]) -> None:
        while not _is_committed(producer, lambda: produce(numbers)):
            pass
        if numbers[0] // STEP % ABORTED_EVERY == 0:
            producer.begin_transaction()
            produce([-1 - number for number in numbers])
            producer.flush(SECONDS)
            _insist(lambda: producer.abort_transaction(SECONDS))

    return write


def records(server: str, topic: str) -> Write:
    """Write each step without a transaction, each record once."""
    producer = _producer(server, {"enable.idempotence": True, "message.timeout.ms": 0})

    def write(numbers: Sequence[int]) -> None:
        for number in numbers:
            producer.produce(topic, value_of(number), key_of(number))
        if left := producer.flush(SECONDS):
            raise TimeoutError(f"{left} records are not acknowledged")

    return write


def _producer(server: str, configs: Mapping[str, str | int | bool]) -> Producer:
    return Producer(
        {
            "bootstrap.servers": server, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200,
            "metadata.recovery.strategy": "none", "error_cb": lambda _: None, "log_level": 0,
            "partitioner": "murmur2_random",  # that of Java
            **configs,
        }
    )  # fmt: skip


def _is_committed(producer: Producer, produce: Callable[[], None]) -> bool:
    producer.begin_transaction()
    try:
        produce()
        _insist(lambda: producer.commit_transaction(SECONDS))
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        _insist(lambda: producer.abort_transaction(SECONDS))
        return False
    return True


def _insist(call: Callable[[], None]) -> None:
    """Call until it is answered: the broker may be away for some time."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return call()
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
