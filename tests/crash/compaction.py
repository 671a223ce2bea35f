"""Compaction with power cuts. While nothing is appended, these may not change: the last committed value of
each key, the log end, the state of producers."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable

from tests.crash.explore import Promises
from tests.crash.partition_promises import CONFIG, NOW, Partition, opened
from tests.models.fetch_filter import AbortedTxn, fetch, scan_log
from tests.unit.storage.reads import read
from txnkafka.broker.log_manager import LogManager
from txnkafka.env import Clock, DataFiles
from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["check_compactions", "compactions"]

_CONFIG = dataclasses.replace(
    CONFIG, cleanup_policy="compact", min_cleanable_dirty_ratio=0, delete_retention_ms=10, segment_bytes=700
)


def compactions(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Runs two rounds of transactions and cleaning, with several groups of several segments."""
    directory = opened(files, _CONFIG)
    partition = Partition(directory, Promises())
    for number in range(2):
        promises.attempt(("write", number))
        _write(partition, number)
        directory.flush()
        partition.log.check_usable()
        promises.acknowledge(("written", number, _state(directory)))
        directory.clean(NOW + 20 * number)
        directory.maintain(NOW)
    directory.close()


def _write(partition: Partition, number: int) -> None:
    for producer_id in (1, 2, 100):
        key = b"%d" % (number if producer_id == 100 else producer_id)
        partition.append(f"{number} first", producer_id, transactional=producer_id < 100, key=key)
    partition.log.roll(NOW)
    partition.append(f"{number} second", 1, transactional=True, key=b"2")
    partition.end(1, commit=True)
    partition.end(2, commit=False)
    partition.log.roll(NOW)
    partition.append(f"{number} last")
    partition.append(f"{number} aborted last", 2, transactional=True)
    partition.end(2, commit=False)
    partition.log.roll(NOW)


def check_compactions(files: DataFiles, promises: Promises) -> None:
    """Raises AssertionError when one of these has changed."""
    directory = opened(files, _CONFIG)
    assert not directory.data.refused, directory.data.refused
    found = _state(directory)
    if len(promises.attempted) == len(promises.acknowledged) > 0:
        assert ("written", len(promises.acknowledged) - 1, found) == promises.acknowledged[-1]
    directory.close()
    again = opened(files, _CONFIG)
    assert not again.data.repairs, again.data.repairs
    assert _state(again) == found
    again.close()


def _state(directory: LogManager) -> Hashable:
    return tuple(
        (key, log.log_end_offset, frozenset(_view(log).items()), frozenset(_producers(log)))
        for key, log in sorted(directory.logs.items())
    )


def _producers(log: PartitionLog) -> list[tuple[int, ...]]:
    return [
        (each.producer_id, each.producer_epoch, each.last_sequence, each.last_offset)
        for each in log.producers.entries()
    ]


def _view(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    view: dict[bytes | None, bytes | None] = {}
    offset = log.log_start_offset
    while offset < log.last_stable_offset:
        answer = read(log, offset, max_bytes=1 << 20)
        data = bytes(answer.records)
        headers = scan_log(data)[0]
        assert headers, f"{log.topic_partition} has no batch at {offset}: a segment is missing"
        aborted = [AbortedTxn(*each[1:]) for each in answer.aborted_transactions or []]
        for record in fetch(data, headers, offset, log.last_stable_offset, aborted):
            view[record.key] = record.value
        assert headers[-1].last_offset >= offset, "reading does not advance"
        offset = headers[-1].last_offset + 1
    return view
