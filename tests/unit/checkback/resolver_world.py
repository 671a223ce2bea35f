"""A broker in this process with a resolver, and clients that write and read its records directly."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from txnkafka import Broker, ConsumerRecord, RecordFuture, RecordMetadata, TopicPartition
from txnkafka.checkback.half_topics import CHECK_TOPIC, HALF_TOPIC, PARKED_TOPIC, half_partition
from txnkafka.checkback.resolver import OwnerStatus, Resolver
from txnkafka.record.builder import RecordBatchBuilder
from txnkafka.wire.records.check_records import (
    AskRecord,
    ParkedRecord,
    ask_record_of,
    decode_ask_log,
    decode_parked_log,
    parked_record_of,
)
from txnkafka.wire.records.half_records import (
    AskedRecord,
    DecidedBy,
    DecideRecord,
    HalfBatch,
    HalfLogRecord,
    HalfRecord,
    Outcome,
    decode_half_log,
    half_record_of,
)

GROUP = "orders-group"
PARTITIONS = 2
FAST = {"transaction_timeout": 50, "transaction_check_interval": 50, "half_partitions": PARTITIONS}
SLOW = {"half_partitions": PARTITIONS}  # no check within a test
_PATIENCE_S = 20.0


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    """Wait until a condition holds; return its value."""
    until = time.monotonic() + _PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < until, f"{what} did not come"
        time.sleep(0.002)
    return found


class HalfWorld:
    """Topic ``t`` has two partitions. ``checks`` and ``parked`` read the internal topics from their
    beginning."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.admin = broker.admin()
        self.admin.create_topic("t", partitions=2)
        self._producer = broker.producer(linger_ms=0, max_request_size=8 << 20)
        self._builder = RecordBatchBuilder("none")
        self._nonces = count(1)
        self._reader = broker.consumer("t")
        self._values: list[bytes] = []
        self._checks: Any = None
        self._asked: list[AskRecord] = []

    @contextmanager
    def resolver(self, settings: dict[str, Any] | None = None) -> Iterator[Resolver]:
        """Run a resolver, and wait until it owns all partitions."""
        with Resolver(SLOW if settings is None else settings, transport=self.broker._transport) as resolver:
            wait_for(lambda: is_ready(resolver), "the resolver")
            yield resolver

    def half(self, name: str, *targets: tuple[str, int], value: bytes | None = None, **fields: Any) -> int:
        """Append a half with one record for each target; return its offset."""
        return self.append(self._half(name, *targets, value=value, **fields))

    def half_later(self, name: str) -> None:
        """Append a half without waiting for it."""
        self._send(self._half(name))

    def _half(
        self, name: str, *targets: tuple[str, int], value: bytes | None = None, **fields: Any
    ) -> HalfRecord:
        now_ms = time.time_ns() // 1_000_000
        content = name.encode() if value is None else value
        batches = tuple(
            HalfBatch(topic, number, bytes(self._builder.build([(b"k", content, now_ms, [])])))
            for topic, number in targets or (("t", 0),)
        )
        return HalfRecord(name, next(self._nonces), GROUP, now_ms, batches, **fields)

    def decide(self, name: str, outcome: Outcome = Outcome.COMMIT, by: DecidedBy = DecidedBy.PRODUCER) -> int:
        """Append a decision."""
        return self.append(DecideRecord(name, next(self._nonces), GROUP, outcome, by, 1))

    def asked(self, name: str, asks: int) -> int:
        """Append that a listener got a check."""
        return self.append(AskedRecord(name, asks, time.time_ns() // 1_000_000, "test"))

    def append(self, record: HalfLogRecord) -> int:
        """Append a record to its partition; return its offset."""
        return self._send(record).result().offset

    def _send(self, record: HalfLogRecord) -> RecordFuture[RecordMetadata]:
        key, value = record.encode()
        number = half_partition(record.transaction_id, PARTITIONS)
        return self._producer.send(HALF_TOPIC, value, key, partition=number)

    def values(self) -> list[bytes]:
        """Return the values that became visible in topic ``t`` until now."""
        while found := self._reader.poll(20):
            self._values += [each.value for each in found]
        return list(self._values)

    def wait_visible(self, *names: str) -> None:
        """Wait until exactly these halves are visible."""
        wanted = sorted(name.encode() for name in names)
        wait_for(lambda: sorted(self.values()) == wanted, f"visible halves: {wanted}")

    def checks(self) -> list[AskRecord]:
        """Return the checks until now."""
        if self._checks is None:
            self._checks = self.broker.consumer(CHECK_TOPIC)
        while found := self._checks.poll(20):
            self._asked += [ask_of(each) for each in found]
        return list(self._asked)

    def parked(self) -> dict[str, ParkedRecord | None]:
        """Return the last record of each id in ``__txn_check_max``."""
        rows = self._read(PARKED_TOPIC)
        records = [decode_parked_log(each.key, each.value) for each in rows]
        return {(each.key or {})["transaction_id"]: parked_record_of(each) for each in records}

    def log(self) -> list[HalfLogRecord]:
        """Return the committed records of ``__txn_half``."""
        found = [half_record_of(decode_half_log(each.key, each.value)) for each in self._read(HALF_TOPIC)]
        return [each for each in found if each is not None]

    def end_of(self, topic: str, number: int = 0) -> int:
        """Return the end offset of a partition."""
        with self.broker.consumer(isolation_level="read_uncommitted") as consumer:
            place = TopicPartition(topic, number)
            return consumer.end_offsets([place])[place]

    def _read(self, topic: str) -> list[ConsumerRecord]:
        with self.broker.consumer(topic) as consumer:
            rows: list[ConsumerRecord] = []
            ends = consumer.end_offsets(consumer.assignment())
            while any(consumer.position(place) < end for place, end in ends.items()):
                rows += consumer.poll(20)
            return rows


def ask_of(record: ConsumerRecord) -> AskRecord:
    """Return the check of a record."""
    found = ask_record_of(decode_ask_log(record.key, record.value))
    assert found is not None
    return found


def is_ready(resolver: Resolver, partitions: int = PARTITIONS) -> bool:
    """Return whether a resolver owns all partitions."""
    owned = resolver.status()
    return len(owned) == partitions and all(each.is_live for each in owned)


def total(resolver: Resolver) -> OwnerStatus:
    """Return the sums over all partitions."""
    rows = resolver.status()
    sums = [sum(numbers) for numbers in zip(*(each[2:] for each in rows), strict=True)] or [0] * 6
    return OwnerStatus(-1, all(each.is_live for each in rows), *sums)
