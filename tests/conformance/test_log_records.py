"""Kafka's own classes write the same bytes for the records of its logs, and read what is written here.

All types and versions that the tables know, over random values of one seed.
"""

from __future__ import annotations

import json
import random
import subprocess
from base64 import b64decode
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.conformance.kafka_log import OPTIONS, compiled
from tests.unit.wire.kafka_classes import MESSAGE, METADATA, messages, snake_keys
from tests.unit.wire.make_kafka_samples import Chooser
from txnkafka.model import TopicPartition
from txnkafka.wire.reader import UNKNOWN_TAGGED_FIELDS, read_message
from txnkafka.wire.records import (
    GroupOffset,
    LogRecord,
    TransactionMetadata,
    TransactionState,
    encode_metadata,
    encode_offset_commit_key,
    encode_offset_commit_value,
    encode_transaction_key,
    encode_transaction_value,
    group_log,
    metadata,
    transaction_log,
)
from txnkafka.wire.records.log_record import encode_key, encode_value
from txnkafka.wire.schema import BYTES, Array, Message, Struct, Type, in_versions
from txnkafka.wire.writer import write_message

SEED = 20260
SAMPLES = (
    25  # of each type and version; the first have neither tagged fields nor elements, nulls are frequent
)
TYPED_SAMPLES = 300
NO_TOPIC_ID = "A" * 22


class Kafka:
    """LogRecords.java, asked line by line."""

    def __init__(self) -> None:
        command = ["java", *OPTIONS, "-cp", compiled(), "LogRecords"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def ask(self, *words: object) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("\t".join(map(_word, words)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the Java process ended at {words}"
        return line.rstrip("\n")

    def close(self) -> None:
        self._process.communicate()


def _word(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return json.dumps(value) if isinstance(value, dict) else str(value)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    found = Kafka()
    yield found
    found.close()


class Table(NamedTuple):
    """A message in one version; ``kind`` is what stands in front of its fields."""

    kafka_class: str
    message: Message
    version: int
    kind: str

    def samples(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Random objects: as Kafka's JSON, and as fields."""
        for i in range(SAMPLES):
            chooser = Chooser(f"{SEED} {self.kafka_class} {self.version} {i}", i % 5)
            chosen = chooser.fields(self.message.fields, self.version)
            yield chosen, values_of(Struct(self.message.fields), snake_keys(chosen))

    def written(self, fields: dict[str, Any]) -> bytes:
        if self.kind == "key":
            return encode_key(self.message, key_type(self.kafka_class), fields)
        if self.kind == "value":
            return encode_value(self.message, self.version, fields)
        (api_key,) = (number for number, each in metadata.RECORDS.items() if each is self.message)
        return encode_metadata(
            LogRecord(self.message.name, api_key, value_version=self.version, value=fields)
        )


def values_of(kind: Type, value: Any) -> Any:
    """Kafka's JSON has bytes in base64."""
    if value is None:
        return None
    if isinstance(kind, Array):
        return [values_of(kind.element, part) for part in value]
    if isinstance(kind, Struct):
        return {
            field.name: values_of(field.type, value[field.name])
            for field in kind.fields
            if field.name in value
        }
    return b64decode(value) if kind is BYTES else value


def tables() -> Iterator[Table]:
    for kafka_class, message in messages().items():
        if kafka_class.startswith(MESSAGE):
            continue  # control records and what clients tell each other: only read
        kind = (
            "frame" if kafka_class.startswith(METADATA) else "key" if kafka_class.endswith("Key") else "value"
        )
        for version in range(20):
            if in_versions(version, message.versions):
                yield Table(kafka_class, message, version, kind)


def key_type(kafka_class: str) -> int:
    """The type of the record whose key has this class."""
    value = messages()[kafka_class.removesuffix("Key") + "Value"]
    kinds = [*group_log.TYPES.items(), *transaction_log.TYPES.items()]
    (number,) = (number for number, kind in kinds if kind.value is value)
    return number


TABLES = list(tables())
FLEXIBLE = [table for table in TABLES if in_versions(table.version, table.message.flexible)]


def name_of(table: Table) -> str:
    return f"{table.kafka_class.rpartition('.')[2]}-{table.version}"


@pytest.mark.parametrize("table", TABLES, ids=name_of)
def test_kafka_writes_the_same_bytes(kafka: Kafka, table: Table) -> None:
    for chosen, fields in table.samples():
        expected = kafka.ask(table.kind, table.kafka_class, table.version, chosen)
        assert table.written(fields).hex() == expected


@pytest.mark.parametrize("table", FLEXIBLE, ids=name_of)
def test_kafka_keeps_tagged_fields_of_a_later_version_as_we_do(kafka: Kafka, table: Table) -> None:
    for _, fields in table.samples():
        fields[UNKNOWN_TAGGED_FIELDS] = [(99, b"abc"), (100_000, b""), (2**31 - 2, b"x" * 200)]
        data = write_message(table.message, table.version, fields)
        assert kafka.ask("again", table.kafka_class, table.version, data) == data.hex()
        read, _ = read_message(table.message, table.version, data)
        assert write_message(table.message, table.version, read) == data


# What the coordinators write


def states(version: int) -> Iterator[TransactionMetadata]:
    """Random states as coordinators have them, with partitions of one topic."""
    chosen = random.Random(SEED)
    for i in range(TYPED_SAMPLES):
        state = TransactionState(i % len(TransactionState))
        numbers = sorted({chosen.randrange(5000) for _ in range(chosen.randrange(4))})
        yield TransactionMetadata(
            transactional_id=chosen.choice(("", "a", "\u00fcn\u00efcode-\u2603", "x" * 300)),
            producer_id=chosen.getrandbits(chosen.choice((7, 62))),
            previous_producer_id=chosen.choice((-1, 5, 2**40)),
            next_producer_id=chosen.choice((-1, 6, 2**63 - 1)),
            producer_epoch=chosen.randrange(-1, 32767),
            next_producer_epoch=-1,  # 4.3.1 has a field for it, and does not write it
            transaction_timeout_ms=chosen.getrandbits(31),
            state=state,
            topic_partitions=frozenset(TopicPartition("topic", number) for number in numbers if state),
            last_update_timestamp=chosen.getrandbits(42),
            start_timestamp=chosen.choice((-1, chosen.getrandbits(42))),
            client_transaction_version=chosen.randrange(3) if version else 0,
        )


@pytest.mark.parametrize("version", [0, 1])
def test_kafkas_transaction_coordinator_writes_and_reads_the_same(kafka: Kafka, version: int) -> None:
    for state in states(version):
        key, value = encode_transaction_key(state.transactional_id), encode_transaction_value(state, version)
        numbers = [partition.partition for partition in sorted(state.topic_partitions)]
        told = {
            "id": state.transactional_id,
            "producer_id": state.producer_id,
            "previous_producer_id": state.previous_producer_id,
            "producer_epoch": state.producer_epoch,
            "timeout": state.transaction_timeout_ms,
            "state": int(state.state),
            "started": state.start_timestamp,
            "updated": state.last_update_timestamp,
            "client_version": state.client_transaction_version,
        }
        newer = {"next_producer_id": state.next_producer_id, "version": version, "topic": "topic"}
        written = kafka.ask("transaction", {**told, **newer, "partitions": numbers}).split("\t")
        if len(numbers) < 2:  # Kafka has them in the order of a hash set
            assert written == [key.hex(), value.hex()]
        else:
            assert [len(part) for part in written] == [2 * len(key), 2 * len(value)]
        if version == 0:
            told["previous_producer_id"] = -1
        partitions = " ".join(sorted(map(str, state.topic_partitions)))
        assert json.loads(kafka.ask("loaded", key, value)) == {**told, "partitions": partitions}


def test_kafka_loads_a_state_with_a_last_epoch(kafka: Kafka) -> None:
    """The tagged field that 4.3.1 does not have."""
    for state in states(1):
        key = encode_transaction_key(state.transactional_id)
        known, newer = (
            encode_transaction_value(state._replace(last_producer_epoch=epoch), 1) for epoch in (-1, 32766)
        )
        assert len(newer) == len(known) + 4
        assert kafka.ask("loaded", key, newer) == kafka.ask("loaded", key, known)


def test_kafkas_group_coordinator_writes_the_same_offsets(kafka: Kafka) -> None:
    chosen = random.Random(SEED)
    for _ in range(TYPED_SAMPLES):
        committed = GroupOffset(
            group=chosen.choice(("", "g", "\u00fcn\u00efcode-\u2603")),
            topic=chosen.choice(("t", "x" * 249)),
            partition=chosen.getrandbits(31),
            offset=chosen.getrandbits(chosen.choice((3, 63))),
            leader_epoch=chosen.choice((-1, 0, 2**31 - 1)),
            metadata=chosen.choice(("", "m", "\u2603" * 1000)),
            commit_timestamp=chosen.getrandbits(42),
            expire_timestamp=chosen.choice((-1, -1, 0, 2**42)),
            topic_id=chosen.choice((None, "AAAAAAAAAAEAAAAAAAAAAg")),
        )
        key = encode_offset_commit_key(committed.group, committed.topic, committed.partition)
        told = {
            "group": committed.group,
            "topic": committed.topic,
            "partition": committed.partition,
            "offset": committed.offset,
            "leader_epoch": committed.leader_epoch,
            "metadata": committed.metadata,
            "committed": committed.commit_timestamp,
            "expires": committed.expire_timestamp,
            "topic_id": committed.topic_id or NO_TOPIC_ID,
        }
        assert kafka.ask("offset", told).split("\t") == [
            key.hex(),
            encode_offset_commit_value(committed).hex(),
        ]
