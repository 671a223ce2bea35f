"""Kafka's own MemoryRecordsBuilder makes the same batches of the same records, and reads the ones made here.

Uncompressed: the same bytes. Compressed: the same header but for length and CRC, the same records when
decompressed, and Kafka reads what was put in.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.maven import kafka_jars
from tests.models.builder import PlainRecord
from tests.models.codecs import decompress
from tests.models.columns import columns_of
from txnkafka._core.encode import empty_batch, encode_batch, end_txn_marker, set_max_timestamp
from txnkafka.record.builder import InputColumns, build_batch
from txnkafka.record.compression import CompressionType

SOURCE = Path(__file__).with_name("java") / "Batches.java"
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
HEADER_SIZE, LENGTH, CRC = 61, slice(8, 12), slice(17, 21)
T0 = 1_700_000_000_000
LEVELS: list[tuple[str, int | None]] = [
    ("gzip", None),
    *(("gzip", level) for level in (-1, 1, 2, 3, 4, 5, 6, 7, 8, 9)),
    ("snappy", None),
    *(("lz4", level) for level in (None, 1, 3, 9, 12, 17)),
    *(("zstd", level) for level in (None, -131072, -5, 1, 3, 9, 19)),
]
CODEC = {codec.label: codec for codec in CompressionType}


class Kafka:
    """Batches.java, asked line by line."""

    def __init__(self) -> None:
        command = ["java", QUIET, "-cp", f"{kafka_jars()}/*", str(SOURCE)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words: object) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(" ".join(map(_word, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        assert not answer.startswith("error"), answer
        return answer

    def build(
        self, records: list[str], compression: str = "none", level: int | None = None, **fields: Any
    ) -> bytes:
        names = {"log_append_time": None, "base_offset": 0, "partition_leader_epoch": -1, "producer_id": -1,
                 "producer_epoch": -1, "base_sequence": -1, "transactional": False, "delete_horizon": None,
                 "last_offset": None}  # fmt: skip
        header = (fields.get(name, default) for name, default in names.items())
        return bytes.fromhex(self.ask("build", compression, level, *header, *records))

    def close(self) -> None:
        self._process.communicate()


def _word(value: object) -> str:
    if isinstance(value, bytes | bytearray):
        return value.hex()
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@pytest.fixture(scope="module")
def java() -> Iterator[Kafka]:
    found = Kafka()
    yield found
    found.close()


def described(records: list[PlainRecord], offsets: list[int]) -> list[str]:
    """As Batches.java takes and gives them."""
    words = []
    for record, offset in zip(records, offsets, strict=True):
        headers = [f"{name.hex()}:{_word(value)}" for name, value in record.headers]
        fields = [str(offset), str(record.timestamp), _word(record.key), _word(record.value)]
        words.append(",".join(fields + headers))
    return words


def made_up(source: random.Random, count: int) -> list[PlainRecord]:
    """Records of all sizes, with nulls and headers."""

    def blob() -> bytes | None:
        size = source.choice([None, 0, 1, 16, 63, 64, 100, 127, 128, 2000, 9000])
        return None if size is None else (b"%06d " % source.randrange(10**6) * (size // 7 + 1))[:size]

    def headers() -> list[tuple[bytes, bytes | None]]:
        names = ["", "name", "grün €", "long" * 40]
        return [(source.choice(names).encode(), blob()) for _ in range(source.choice([0, 0, 0, 1, 3]))]

    times = [-1, 0, T0, T0 + 5, T0 - 100_000, 2**63 - 1]
    return [PlainRecord(blob(), blob(), source.choice(times), headers()) for _ in range(count)]


def header_fields(source: random.Random) -> dict[str, Any]:
    producer = source.random() < 0.5
    return {
        "base_offset": source.choice([0, 1, 2**40]),
        "partition_leader_epoch": source.choice([-1, 0, 7]),
        "producer_id": source.choice([0, 4000, 2**63 - 1]) if producer else -1,
        "producer_epoch": source.choice([0, 7, 2**15 - 1]) if producer else -1,
        "base_sequence": source.choice([0, 9, 2**31 - 1]) if producer else -1,
        "transactional": producer and source.random() < 0.5,
        "log_append_time": source.choice([None, None, T0 + 77]),
        "delete_horizon": source.choice([None, None, None, T0 - 9]),
    }


@pytest.mark.parametrize("seed", range(60))
def test_uncompressed_batches_are_byte_for_byte_kafkas(java: Kafka, seed: int) -> None:
    source = random.Random(seed)
    records = made_up(source, source.choice([1, 2, 5, 70, 300]))
    fields = header_fields(source)
    base_offset = fields["base_offset"]
    steps = source.choice([[1], [1, 2, 900]])
    offsets = [base_offset]
    while len(offsets) < len(records):
        offsets.append(offsets[-1] + source.choice(steps))
    if steps != [1]:
        fields["last_offset"] = offsets[-1] + source.choice([0, 3])
    expected = java.build(described(records, offsets), **fields)
    columns = InputColumns(**columns_of(records, offsets=offsets, typecode=source.choice("iq")))
    assert encode_batch(columns, **fields) == expected
    if steps == [1]:
        assert encode_batch([tuple(each[:4]) for each in records], **fields) == expected


@pytest.mark.parametrize(("compression", "level"), LEVELS)
def test_compressed_batches_are_kafkas_but_for_what_the_library_makes_of_them(
    java: Kafka, compression: str, level: int | None
) -> None:
    source = random.Random(f"{compression} {level}")
    for count in (1, 20, 200):
        records, fields = made_up(source, count), header_fields(source)
        fields["delete_horizon"] = None
        offsets = [fields["base_offset"] + i for i in range(count)]
        tuples = [tuple(each[:4]) for each in records]
        ours = bytes(build_batch(tuples, compression=compression, level=level, **fields))
        theirs = java.build(described(records, offsets), compression, level, **fields)
        assert header_of(ours) == header_of(theirs)
        contents = [decompress(CODEC[compression], batch[HEADER_SIZE:]) for batch in (ours, theirs)]
        assert contents[0] == contents[1]
        appended = fields["log_append_time"]
        stored = [r if appended is None else r._replace(timestamp=appended) for r in records]
        assert java.ask("read", ours) == " ".join(["records", *described(stored, offsets)])


def header_of(batch: bytes) -> list[bytes]:
    """The header without length and CRC, and how the payload is framed."""
    framing = {1: 10, 2: 16, 3: 7, 4: 6}[batch[22] & 7]
    return [batch[: LENGTH.start], batch[LENGTH.stop : CRC.start], batch[CRC.stop : HEADER_SIZE + framing]]


@pytest.mark.parametrize("append_time", [False, True])
@pytest.mark.parametrize("max_timestamp", [-1, 5, T0, 2**63 - 1])
def test_the_timestamp_is_changed_as_kafka_changes_it(
    java: Kafka, append_time: bool, max_timestamp: int
) -> None:
    for seed in range(8):
        source = random.Random(seed)
        batch = encode_batch([tuple(each[:4]) for each in made_up(source, 9)], **header_fields(source))
        expected = java.ask("stamp", batch, append_time, max_timestamp)
        set_max_timestamp(batch, timestamp_type=int(append_time), max_timestamp=max_timestamp)
        assert batch.hex() == expected


@pytest.mark.parametrize("commit", [True, False])
def test_markers_are_kafkas(java: Kafka, commit: bool) -> None:
    for base_offset, timestamp, epoch, leader_epoch, coordinator_epoch in (
        (0, 0, 0, 0, 0),
        (2**62, T0, 7, 2**31 - 1, 2**31 - 1),
        (5, -1, 2**15 - 1, -1, -1),
    ):
        marker = end_txn_marker(
            base_offset=base_offset, timestamp=timestamp, producer_id=4000, producer_epoch=epoch,
            coordinator_epoch=coordinator_epoch, commit=commit, partition_leader_epoch=leader_epoch,
        )  # fmt: skip
        expected = java.ask(
            "marker", base_offset, timestamp, leader_epoch, 4000, epoch, commit, coordinator_epoch
        )
        assert marker.hex() == expected


def test_empty_batches_are_kafkas(java: Kafka) -> None:
    for seed in range(30):
        source = random.Random(seed)
        fields = header_fields(source)
        del fields["delete_horizon"], fields["log_append_time"]
        append_time, control = source.random() < 0.5, fields["transactional"] and source.random() < 0.5
        base_offset = fields["base_offset"]
        last_offset = base_offset + source.choice([0, 4, 2**31 - 1])
        batch = empty_batch(
            last_offset=last_offset,
            max_timestamp=T0,
            timestamp_type=int(append_time),
            control=control,
            **fields,
        )
        del fields["base_offset"]
        expected = java.ask("empty", base_offset, last_offset, T0, append_time, *fields.values(), control)
        assert batch.hex() == expected
