"""The same input to Kafka's UnifiedLog and to PartitionLog: the same answers, and the same files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.kafka_log import KafkaLog
from tests.conformance.sequences import Sequence
from tests.conformance.twins import Twins

SHARED_MEMORY = Path("/dev/shm")
STEPS = 300
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
    "by-time": {"segment_bytes": 1 << 20, "segment_ms": 3000, "retention_ms": 60_000},
    "by-size": {"retention_bytes": 9000},
    "full-indexes": {"segment_bytes": 1 << 20, "segment_index_bytes": 48, "index_interval_bytes": 0},
    "append-time": {"message_timestamp_type": "LogAppendTime", "segment_ms": 3000},
    "uncompressed": {"compression_type": "uncompressed"},
    "preallocated": {"preallocate": True},
    "forgetful": {"producer_id_expiration_ms": 8000},
    "strict-times": {"message_timestamp_before_max_ms": 1000, "max_message_bytes": 250},
    "compacted": {"cleanup_policy": "compact", "max_compaction_lag_ms": 3000},
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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_random_sequences(kafka_log: KafkaLog, directory: Path, kind: str, seed: int) -> None:
    config = SMALL | KINDS[kind]
    twins = Twins(kafka_log, directory, config)
    verify = bool(config["transaction_partition_verification_enable"])
    # Kafka cannot recover a segment whose index was full: it has room for no more entries than before
    Sequence(twins, seed, verify=verify, crashes=kind != "full-indexes").run(STEPS)
