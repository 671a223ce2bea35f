"""The same input to Kafka's UnifiedLog and to PartitionLog: the same answers, and the same files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.kafka_log import KafkaLog
from tests.conformance.sequences import Sequence
from tests.conformance.twins import START_MS, Twins
from txnkafka._core.encode import encode_batch
from txnkafka.storage.log.truncation import truncate_to

SHARED_MEMORY = Path("/dev/shm")
SEEDS, STEPS = 14, 300
SMALL = {
    "segment_bytes": 2000,
    "index_interval_bytes": 150,
    "segment_index_bytes": 10 << 10,
    "segment_ms": 3_600_000,
    "retention_ms": -1,
    "producer_id_expiration_ms": 86_400_000,
    "transaction_partition_verification_enable": False,
}
KINDS = {
    "small": {},
    "verified": {"transaction_partition_verification_enable": True},
    "by-time": {"segment_bytes": 1 << 20, "segment_ms": 3000, "retention_ms": 9000},
    "by-size": {"retention_bytes": 9000},
    "full-indexes": {"segment_bytes": 1 << 20, "segment_index_bytes": 48, "index_interval_bytes": 60},
    "append-time": {"message_timestamp_type": "LogAppendTime", "segment_ms": 3000},
    "uncompressed": {"compression_type": "uncompressed"},
    "preallocated": {"preallocate": True},
    "forgetful": {"producer_id_expiration_ms": 8000},
    "strict-times": {"message_timestamp_before_max_ms": 1000, "max_message_bytes": 250},
    "compacted": {"cleanup_policy": "compact", "max_compaction_lag_ms": 3000},
}
WITHOUT_CRASHES = {
    # Kafka's recovery fails where the index of a segment has room for no more entries
    "full-indexes",
    # Kafka's recovery loads a snapshot for each segment, and with it forgets who is idle now
    "forgetful",
}


@pytest.fixture(scope="module")
def kafka_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaLog]:
    process = KafkaLog(tmp_path_factory.mktemp("kafka-log") / "log")
    yield process
    process.close()


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a thing: nothing here is about the disk, and Kafka syncs a lot."""
    if not SHARED_MEMORY.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as found:
        yield Path(found)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", KINDS)
def test_random_sequences(kafka_log: KafkaLog, directory: Path, kind: str, seed: int) -> None:
    config = SMALL | KINDS[kind]
    twins = Twins(kafka_log, directory, config)
    verify = bool(config["transaction_partition_verification_enable"])
    Sequence(twins, seed, verify=verify, crashes=kind not in WITHOUT_CRASHES).run(STEPS)


def test_offsets_that_an_index_cannot_hold(kafka_log: KafkaLog, directory: Path) -> None:
    """A segment ends where its last offset is 2^31 - 1 above its base, and the index says so."""
    base_offset = 2**31 - 5
    log = encode_batch([(b"k", b"v", START_MS)], base_offset=base_offset, partition_leader_epoch=0)
    twins = Twins(kafka_log, directory, SMALL, log=bytes(log))
    assert twins.theirs["end"] == base_offset + 1
    for count in (3, 2, 1):
        twins.append(bytes(encode_batch([(b"k", b"v", START_MS)] * count)))
    assert twins.theirs["bases"] == [0, base_offset + 4]
    twins.close()


def test_a_cut_inside_a_batch(kafka_log: KafkaLog, directory: Path) -> None:
    """Kafka goes on where it was told to, and leaves a gap; ours where the batch began."""
    twins = Twins(kafka_log, directory, SMALL)
    for _ in range(2):
        twins.append(bytes(encode_batch([(b"k", b"v", START_MS)] * 3)))
    assert kafka_log.ask("truncate", offset=4)["end"] == 4
    assert truncate_to(twins.ours, 4, now_ms=START_MS)
    assert twins.ours.log_end_offset == 3
    kafka_log.ask("abandon")


def test_a_duplicate_from_before_the_restart(kafka_log: KafkaLog, directory: Path) -> None:
    """A snapshot has the last batch of a producer; ours finds the others in the log."""
    twins = Twins(kafka_log, directory, SMALL)
    fields = {"producer_id": 7, "producer_epoch": 0}
    batches = [bytes(encode_batch([(b"k", b"v", START_MS)], base_sequence=n, **fields)) for n in range(3)]
    for batch in batches:
        twins.append(batch)
    assert twins.append(batches[0]).first_offset == 0
    twins.restart()
    assert twins.append(batches[2]).first_offset == 2
    assert twins.append(batches[0]).code == 45  # Kafka's answer; Twins has looked at ours
    twins.close()


def test_abandon_is_what_a_crash_leaves(kafka_log: KafkaLog, directory: Path) -> None:
    """Kafka's process goes on: closing the files must neither cut the reserved space nor write."""
    twins = Twins(kafka_log, directory, SMALL)
    for sequence in range(20):
        producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}
        twins.append(bytes(encode_batch([(b"k", b"v", START_MS)], **producer)))

    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (directory / "theirs").rglob("*.*")}

    before = files()
    kafka_log.ask("abandon")
    assert files() == before
    assert before[f"{0:020}.index"].endswith(bytes(100))  # reserved


def test_retention_at_its_limits(kafka_log: KafkaLog, directory: Path) -> None:
    """A segment goes when it is older than retention.ms, and when what is left has retention.bytes."""
    batch = bytes(encode_batch([(b"k", b"v", START_MS)]))
    twins = Twins(kafka_log, directory, SMALL | {"retention_ms": 1000, "retention_bytes": 2 * len(batch)})
    for _ in range(3):
        twins.append(batch)
        twins.roll()
    twins.advance_high_watermark(3)
    deleted = []
    for ms in (0, 1000, 1):
        twins.wait(ms)
        twins.retain()
        deleted.append(twins.theirs["deleted"])
    assert deleted == [1, 0, 2]
    twins.close()


def test_the_first_of_equal_timestamps_counts(kafka_log: KafkaLog, directory: Path) -> None:
    """In the time index, also after a cut has taken the last entry away."""
    twins = Twins(kafka_log, directory, SMALL | {"index_interval_bytes": 1000})
    for later in (0, 0, 0, 5):
        twins.append(bytes(encode_batch([(b"k", b"v", START_MS + later)])))
    twins.truncate(3)
    twins.roll()
    twins.close()
