"""The same input to Kafka's UnifiedLog and to PartitionLog: the same answers, and the same files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.kafka_log import KafkaLog
from tests.conformance.sequences import Sequence
from tests.conformance.twins import Twins

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
    "limited": {"max_message_bytes": 250, "message_timestamp_before_max_ms": 1000, "cleanup_policy": "compact"},
}


@pytest.fixture(scope="module")
def kafka_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaLog]:
    process = KafkaLog(tmp_path_factory.mktemp("kafka-log") / "log")
    yield process
    process.close()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_random_sequences(kafka_log: KafkaLog, tmp_path: Path, kind: str, seed: int) -> None:
    config = SMALL | KINDS[kind]
    twins = Twins(kafka_log, tmp_path, config)
    verify = bool(config["transaction_partition_verification_enable"])
    Sequence(twins, seed, verify=verify).run(400)
