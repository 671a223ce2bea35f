"""Every log that a broker wrote, compacted: magic 0 and 1, all codecs, transactions, logs that were cleaned
before.

A log is rolled first, so that all decided data is compacted, except above an open transaction.
"""

from __future__ import annotations

import pytest

from tests.golden.consumer import consume
from tests.golden.directories import ANSWERED, Directory
from txnkafka.config import LogConfig
from txnkafka.env import LocalFileSystem
from txnkafka.env.overlay import OverlayFiles
from txnkafka.storage.cleaner.compaction import clean
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.log.partition_log import PartitionLog

CONFIG = LogConfig(cleanup_policy="compact", delete_retention_ms=1000, segment_bytes=20_000)


def state(log: PartitionLog) -> object:
    """Return the last committed record of each key except tombstones, and the state of producers that must
    stay."""
    records, error = consume(log, "read_committed")
    assert error is None
    view = {record["key"]: record for record in records if record["key"] is not None}
    # a record of magic 0 has no timestamp type; in magic 2 it must have one
    kept = {key: each | {"timestamp_type": ""} for key, each in view.items() if each["value"] is not None}
    producers = {
        (entry.producer_id, entry.producer_epoch, entry.last_sequence, entry.current_txn_first_offset)
        for entry in log.producers.entries()
    }
    return kept, producers, log.log_end_offset, log.last_stable_offset


@pytest.mark.parametrize("directory", ANSWERED, ids=str)
def test_a_brokers_log_is_compacted(directory: Directory) -> None:
    now_ms = directory.case.recorded_at_ms
    files = OverlayFiles(LocalFileSystem())
    found = DataDirectory(files, directory.path, lambda _: CONFIG, now_ms=now_ms)
    log = found.logs[directory.partition]
    log.roll(now_ms)
    before = state(log)
    for passed_ms in (0, 0, 1000):
        stats = clean(log, now_ms=now_ms + passed_ms, dirty_from=0)
        assert state(log) == before
    assert stats.end_offset <= log.last_stable_offset
    found.close()
    again = DataDirectory(files, directory.path, lambda _: CONFIG, now_ms=now_ms)
    assert (again.repairs, again.refused) == ([], {})
    assert state(again.logs[directory.partition]) == before
