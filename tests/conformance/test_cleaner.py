"""Compaction by Kafka's Cleaner and by ours: of the same log, the same files are left.

Where they differ (DIVERGENCES.md) is in tests of its own: at the end of each group of segments we keep a
batch, and a marker that alone knows its producer's epoch stays a marker.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.kafka_log import KafkaLog
from tests.conformance.twins import TOPIC_ID, Twins
from tests.models.builder import legacy_entry, legacy_wrapper
from tests.models.fetch_filter import scan_log
from tests.unit.storage.cleaner.compacted import DIRECTORY, NOW, CompactedLog
from txnkafka._core.encode import encode_batch, end_txn_marker
from txnkafka.storage.log.log_validator import AppendOrigin

CONFIG = {
    "segment_bytes": 1 << 20,
    "index_interval_bytes": 200,
    "segment_index_bytes": 100 << 10,
    "retention_ms": -1,
    "cleanup_policy": "compact",
    "delete_retention_ms": 10_000,
    "producer_id_expiration_ms": 86_400_000,
    "transaction_partition_verification_enable": False,
}
KEYS = [b"", b"a", b"b", b"c", bytes(4), b"\0\0\0\1", b"k" * 31, b"k" * 32, b"k" * 33, b"k" * 200]


@pytest.fixture(scope="module")
def kafka_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaLog]:
    process = KafkaLog(tmp_path_factory.mktemp("kafka-log") / "log")
    yield process
    process.close()


class Writers:
    """Producers that write keyed records, in transactions and without."""

    def __init__(self, twins: Twins, seed: int) -> None:
        self._twins = twins
        self._rng = random.Random(seed)
        self._sequences: dict[int, int] = {}
        self._open: set[int] = set()

    def write(self, batches: int) -> None:
        """Take so many steps, and make everything visible."""
        for _ in range(batches):
            luck = self._rng.random()
            if luck < 0.3 and self._open:
                self.end(self._rng.choice(sorted(self._open)), commit=self._rng.random() < 0.5)
            elif luck < 0.35:
                self.end(self._rng.randrange(4), commit=True)
            elif luck < 0.45:
                self.roll()
            elif luck < 0.5:
                self._twins.wait(700)
            else:
                self.data(self._rng.randrange(-1, 5))
        self._twins.advance_high_watermark(self._twins.ours.log_end_offset)

    def roll(self) -> None:
        """Roll a segment that ends with a record which stays: an emptied last batch is kept by ours only."""
        end = self._twins.ours.log_end_offset
        self._twins.append(bytes(encode_batch([(b"unique %d" % end, b"v", self._twins.now_ms)])))
        self._twins.roll()

    def data(self, producer_id: int) -> None:
        """A batch of up to four records; producers 0 to 3 have transactions, 4 has none, -1 is nobody."""
        rng, now = self._rng, self._twins.now_ms
        records = [
            (
                rng.choice(KEYS), rng.choice((None, b"", rng.randbytes(rng.randrange(60)))),
                now - rng.choice((0, 0, 3, 5000)), [("h", b"v"), ("", None)] if rng.random() < 0.1 else [],
            )
            for _ in range(rng.choice((1, 2, 2, 4)))
        ]  # fmt: skip
        sequence = self._sequences.get(producer_id, 0)
        self._sequences[producer_id] = sequence + len(records)
        batch = encode_batch(
            records,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
            transactional=0 <= producer_id < 4,
        )
        self._open |= {producer_id} & set(range(4))
        assert self._twins.append(bytes(batch)).code == 0

    def end(self, producer_id: int, *, commit: bool) -> None:
        """A marker, also where no transaction is open."""
        marker = end_txn_marker(
            base_offset=0, timestamp=self._twins.now_ms, producer_id=producer_id, producer_epoch=0,
            coordinator_epoch=3, commit=commit,
        )  # fmt: skip
        self._open.discard(producer_id)
        self._twins.append(marker, origin=AppendOrigin.COORDINATOR, transaction_version=1)


@pytest.mark.parametrize("append_time", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_the_same_files_are_left(
    kafka_log: KafkaLog, tmp_path: Path, seed: int, *, append_time: bool
) -> None:
    times = {"message_timestamp_type": "LogAppendTime" if append_time else "CreateTime"}
    twins = Twins(kafka_log, tmp_path, CONFIG | times)
    writers = Writers(twins, seed)
    dirty_from = 0
    for _ in range(4):
        writers.write(60)
        dirty_from = twins.clean(dirty_from)
        twins.wait(4000)
    for wait in (0, 11_000, 11_000):
        twins.wait(wait)
        twins.clean()
    twins.restart()
    writers.write(20)
    twins.clean()
    twins.close()


def cleaned_by_kafka(kafka_log: KafkaLog, log: CompactedLog, directory: Path, *, passes: int) -> bytes:
    """What Kafka's cleaner leaves of our files, all segments behind each other."""
    target = directory / "t-0"
    target.mkdir()
    log.log.flush()
    for entry in log.files.list(DIRECTORY):
        (target / entry.name).write_bytes(log.files.read(log.files.join(DIRECTORY, entry.name), 1 << 30))
    config = CONFIG | {"segment_bytes": log.config.segment_bytes, "delete_retention_ms": 1000}
    names = {f"config.{name.replace('_', '.')}": value for name, value in config.items()}
    names["config.internal.segment.bytes"] = names.pop("config.segment.bytes")
    opened = kafka_log.ask(
        "open", directory=target, now=NOW, clean=False, recovery_point=0, log_start=0, topic_id=TOPIC_ID,
        **names,
    )  # fmt: skip
    assert opened["code"] == 0, opened
    kafka_log.ask("high_watermark", offset=log.log.log_end_offset)
    for number in range(passes):
        answer = kafka_log.ask("clean", dirty=0, memory=1 << 20, now=NOW + 1000 * number)
        assert answer["code"] == 0, answer
    kafka_log.ask("close")
    return b"".join(path.read_bytes() for path in sorted(target.glob("*.log")))


def batches(data: bytes) -> list[bytes]:
    return [data[each.position : each.position + each.size] for each in scan_log(data)[0]]


def test_of_several_groups_only_the_last_batches_differ(kafka_log: KafkaLog, tmp_path: Path) -> None:
    log = CompactedLog(segment_bytes=700)
    rng = random.Random(5)
    for number in range(60):
        if rng.random() < 0.3:
            log.end(rng.randrange(3), commit=rng.random() < 0.5)
        else:
            log.data(rng.randrange(-1, 3), (rng.choice(KEYS), b"%d" % number), (rng.choice(KEYS), b"x" * 20))
    for producer_id in range(3):
        log.end(producer_id, commit=False)
    log.roll()
    theirs = batches(cleaned_by_kafka(kafka_log, log, tmp_path, passes=1))
    log.clean()
    more = [batch for batch in batches(log.content()) if batch not in theirs]
    assert [batch for batch in batches(log.content()) if batch in theirs] == theirs
    ends = {segment.base_offset - 1 for segment in log.log.segments[1:]}
    assert more
    for batch in more:
        (header,) = scan_log(batch)[0]
        assert header.count == 0
        assert header.last_offset in ends


def test_only_a_marker_that_alone_knows_an_epoch_differs(kafka_log: KafkaLog, tmp_path: Path) -> None:
    """Kafka empties it, and forgets the epoch when the log is replayed."""
    log = CompactedLog()
    log.commit(1, (b"a", b"1"))
    log.data(1, (b"a", b"2"))
    log.end(1, commit=True, epoch=1, version=2)
    log.data(-1, (b"a", b"3"))
    log.roll()
    theirs = cleaned_by_kafka(kafka_log, log, tmp_path, passes=4)
    for _ in range(4):
        log.clean()
        log.now += 1000
    pairs = list(zip(scan_log(theirs)[0], scan_log(log.content())[0], strict=True))
    assert [(each.base_offset, each.count) for each, _ in pairs] == [(3, 0), (4, 1)]
    assert [(each.base_offset, each.count) for _, each in pairs] == [(3, 1), (4, 1)]


def test_magic_0_and_1_become_the_same(kafka_log: KafkaLog, tmp_path: Path) -> None:
    """But for compressed ones, whose bytes are a matter of the libraries."""
    log = CompactedLog()
    inner = [legacy_entry(number, b"key", b"%d" % number, timestamp=NOW + number) for number in range(3)]
    log.put(
        legacy_entry(0, b"a", b"1", magic=0),
        legacy_entry(1, b"b", b"1", timestamp=NOW + 7, attributes=8),
        legacy_entry(2, b"a", None, timestamp=NOW + 5),
        legacy_entry(3, None, b"keyless", magic=0),
        legacy_entry(4, b"old", b"1", magic=0),
        legacy_wrapper(inner, 7, codec=1),
    )
    log.data(-1, (b"b", b"2"), (b"c", b"2"))
    log.roll()
    theirs = cleaned_by_kafka(kafka_log, log, tmp_path, passes=1)
    log.clean()
    ours = log.content()
    headers = [scan_log(each)[0] for each in (theirs, ours)]
    assert [each.last_offset for each in headers[1]] == [2, 4, 7, 9]
    for their, our in zip(*headers, strict=True):
        if our.attributes & 7:
            alike = {"size": 0, "crc": 0, "position": 0}
            assert our._replace(**alike) == their._replace(**alike)
        else:
            pairs = ((theirs, their), (ours, our))
            assert len({data[each.position : each.position + each.size] for data, each in pairs}) == 1
