"""Compaction by Kafka's Cleaner and by ours: of the same log, the same files are left.

Everything fits into one group of segments here, for at the end of each group we keep a batch that Kafka does
not keep, and markers are of transaction version 1, for a marker that alone knows an epoch is kept, too
(DIVERGENCES.md).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.kafka_log import KafkaLog
from tests.conformance.twins import Twins
from txnkafka._core.encode import encode_batch, end_txn_marker
from txnkafka.storage.append import AppendOrigin

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
                self._twins.roll()
            elif luck < 0.5:
                self._twins.wait(700)
            else:
                self.data(self._rng.randrange(-1, 5))
        self._twins.advance_high_watermark(self._twins.ours.log_end_offset)

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
