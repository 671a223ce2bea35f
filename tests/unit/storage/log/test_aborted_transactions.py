"""How much of a log a read looks through for aborted transactions after a start, and that it misses none."""

from __future__ import annotations

import pytest

from tests.unit.storage.client import NOW, Log
from tests.unit.storage.reads import read
from txnkafka._core.producer_table import ProducerTable
from txnkafka.storage.log.transactions import transactions_of
from txnkafka.testing.memory_files import MemoryFile


def spread(count: int = 20, *, begins_in: int = 0, ends_in: int, commit: bool = False) -> Log:
    """Return a log of ``count`` segments, opened again, with 40 plain records in each. A transaction of
    producer 7 begins in segment number ``begins_in``; its end marker is in number ``ends_in``."""
    log = Log()
    for number in range(count):
        if number:
            log.log.roll(NOW)
        for _ in range(20):
            log.plain()
        if number == begins_in:
            log.transactional(7, 0)
        if number == ends_in:
            log.end(7, commit=commit)
    log.log.flush()
    log.restart()
    return log


def without(log: Log, suffix: str) -> Log:
    """Remove the files with that suffix, and open the log again."""
    log.log.close()
    for name in log.names():
        if name.endswith(suffix):
            log.log.files.remove(f"{log.log.directory}/{name}")
    log.restart()
    return log


def producers(log: Log, offset: int) -> list[int]:
    return [each.producer_id for each in read(log.log, offset, max_bytes=1).aborted_transactions or ()]


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of bytes of each read from a file."""
    sizes: list[int] = []
    read_into = MemoryFile.read_into

    def counted(file: MemoryFile, buffer: memoryview, position: int) -> int:
        sizes.append(read_into(file, buffer, position))
        return sizes[-1]

    monkeypatch.setattr(MemoryFile, "read_into", counted)
    return sizes


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("ends_in", [0, 1, 5])
def test_a_read_looks_no_farther_than_its_transactions_go(
    bytes_read: list[int], ends_in: int, commit: bool
) -> None:
    """Up to the first segment at whose base no transaction of the range was open, which its snapshot says. Of
    the others only the index files are read, once: Kafka has none where nothing was aborted."""
    log = spread(ends_in=ends_in, commit=commit)
    size = log.log.segments[0].size
    for offset, found in ((40, [] if commit else [7]), (0, [])):
        bytes_read.clear()
        assert producers(log, offset) == found
        assert sum(bytes_read) < (ends_in + 3) * size
        bytes_read.clear()
        assert producers(log, offset) == found
        assert sum(bytes_read) < 2 * size  # what finds the batch of the offset


@pytest.mark.parametrize("begins_in", [0, 1])
def test_a_snapshot_that_is_missing_or_damaged_proves_nothing(begins_in: int) -> None:
    """Nor does an older one, in which the transaction has not begun."""
    log = without(spread(begins_in=begins_in, ends_in=3), ".txnindex")
    if not begins_in:
        log.log.files.open_to_write(log.log.snapshots.path(log.bases[1])).write(8, [b"?"])
    for base in log.bases[2:4]:
        log.log.snapshots.remove(base)
    assert producers(log, log.bases[begins_in] + 40) == [7]


def test_a_snapshot_that_has_vanished_proves_nothing() -> None:
    log = spread(ends_in=3, commit=True)
    for base in log.bases[1:]:
        log.log.files.remove(log.log.snapshots.path(base))
    assert producers(log, 40) == []


def test_a_snapshot_that_knows_no_transactions_does_not_outdo_an_index() -> None:
    """Kafka writes empty ones where it finds none after a clean stop; the index files are right."""
    log = spread(4, ends_in=3)
    for base in log.bases[1:]:
        log.log.snapshots.write(base, ProducerTable().snapshot())
    log.restart()
    assert producers(log, 40) == [7]


@pytest.mark.parametrize("suffix", ["", ".txnindex"])
def test_an_abort_behind_what_was_looked_at(suffix: str) -> None:
    """The active segment's index was read, not its log, when a marker is appended; then the log is cut."""
    log = Log()
    log.transactional(7, 0)
    log.log.roll(NOW)
    log.plain()
    log.transactional(8, 0)
    log.end(8, commit=False)
    log.end(7, commit=False)
    log.log.roll(NOW)
    log.transactional(9, 0)
    log.end(9, commit=False)
    log.transactional(9, 2)
    log.log.flush()
    log.restart()
    if suffix:
        log = without(log, suffix)
    assert producers(log, 0) == [7]
    assert producers(log, 4) == [7, 8]
    log.end(9, commit=False)
    log.log.flush()
    assert producers(log, 11) == [9]
    assert [len(transactions_of(log.log, each).entries) for each in log.log.segments] == [0, 2, 2]


def test_a_damaged_index_is_rebuilt_wherever_it_is() -> None:
    log = spread(4, ends_in=0, commit=True)
    begin = log.log.log_end_offset
    log.transactional(8, 0)
    log.end(8, commit=False)
    log.log.flush()
    log.restart()
    path = log.log.active.path("txnindex")
    log.log.files.open_to_write(path).truncate(20)
    assert producers(log, 20) == []
    assert [step.what for step in log.log.repairs] == [path]
    log.restart()
    assert producers(log, begin) == [8]
