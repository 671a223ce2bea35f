"""Slices that are not released yet while their log changes, and when their files are closed."""

from __future__ import annotations

import gc
import io
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.storage.client import NOW, PARTITION, Log, data
from tests.unit.storage.client import opened as opened_in_memory
from txnkafka._core.scan import scan
from txnkafka.config import LogConfig
from txnkafka.env import LocalDataFiles
from txnkafka.storage.cleaner.compaction import clean
from txnkafka.storage.log.log_read import read
from txnkafka.storage.log.log_slice import LogSlice
from txnkafka.storage.log.truncation import delete_old_segments, delete_records, truncate_to
from txnkafka.storage.recovery.log_loader import Start, open_log

SIZE = len(data(count=2))
ALL = 1 << 20


def filled(log: Log, batches: int = 4) -> Log:
    for _ in range(batches):
        log.plain()
    log.log.flush()
    return log


def slice_of(log: Log, offset: int = 0, max_bytes: int = ALL) -> LogSlice:
    return read(log.log, offset, max_bytes=max_bytes).records


def content(log: Log, offset: int = 0) -> bytes:
    with slice_of(log, offset) as records:
        return bytes(records.read())


def close(log: Log) -> None:
    log.log.close()


def roll(log: Log) -> None:
    log.log.roll(NOW)
    log.plain()
    log.log.flush()


def delete(log: Log) -> None:
    log.log.roll(NOW)
    delete_records(log.log, log.log.high_watermark)
    delete_old_segments(log.log, NOW)
    log.log.local.remove_deleted(NOW + 10_000)


def compact(log: Log) -> None:
    log.log.roll(NOW)
    log.plain()
    log.log.flush()
    clean(log.log, now_ms=NOW + 10_000, dirty_from=0)
    log.log.local.remove_deleted(NOW + 20_000)


def close_idle_files(log: Log) -> None:
    """Close all files, as the limit on open files does."""
    log.log.local.close_files()


def delete_under_a_flush(log: Log) -> None:
    log.log.roll(NOW)
    log.plain()
    flush = log.log.begin_flush()
    delete_records(log.log, log.log.high_watermark)
    delete_old_segments(log.log, NOW)
    log.log.local.remove_deleted(NOW + 10_000)
    flush.run(log.log.files)
    log.log.finish_flush(flush, None)


CHANGES: list[Callable[[Log], None]] = [
    close, roll, delete, compact, close_idle_files, delete_under_a_flush,
]  # fmt: skip


@pytest.fixture(params=["memory", "disk"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    configs = {"cleanup_policy": "compact,delete", "file_delete_delay_ms": 1000, "index_interval_bytes": 100}
    if request.param == "memory":
        return filled(Log(**configs))
    directory = tmp_path / "t-0"
    directory.mkdir()
    config = LogConfig(**configs)  # type: ignore[arg-type]
    return filled(
        Log(open_log(LocalDataFiles(), str(directory), PARTITION, config, Start(), now_ms=NOW).log)
    )


@pytest.mark.parametrize("change", CHANGES)
def test_a_slice_reads_the_same_after_changes_of_its_segment(
    log: Log, change: Callable[[Log], None]
) -> None:
    """The file is closed when the slice is released, not before."""
    before, records = content(log), slice_of(log)
    file = log.log.active.file("log")
    change(log)
    assert not records.is_truncated
    assert bytes(records.read()) == before
    records.release()
    log.log.local.close_files()
    with pytest.raises(OSError, match=r"Bad file descriptor|not open"):
        file.read_into(memoryview(bytearray(1)), 0)


def test_two_slices_share_a_file(log: Log) -> None:
    first, second = slice_of(log), slice_of(log, 2)
    log.log.local.close_files()
    first.release()
    assert bytes(second.read()) == content(log, 2)
    second.release()


def test_a_slice_ends_where_its_log_is_truncated(log: Log) -> None:
    """The slice does not have batches that are appended there later, although they are in the same file."""
    before, records, kept = content(log), slice_of(log), slice_of(log, max_bytes=2 * SIZE)
    truncate_to(log.log, 4, now_ms=NOW)
    log.plain(3)
    log.log.flush()
    assert records.is_truncated
    assert bytes(records.read()) == before[: 2 * SIZE]
    assert records.read_into(memoryview(bytearray(SIZE)), 2 * SIZE) == 0
    assert not kept.is_truncated
    assert bytes(kept.read()) == before[: 2 * SIZE]
    with slice_of(log) as fresh:
        assert not fresh.is_truncated
        assert [each.base_offset for each in scan(fresh.read())] == [0, 2, 4]
    records.release()
    kept.release()


def test_a_read_under_a_truncation_gives_nothing_of_what_comes_after() -> None:
    """The log is truncated and appended to between the system call and the return of the read."""
    log = filled(Log())
    records = slice_of(log)
    held = records._held
    assert held is not None
    original = held.file

    class Slow:
        def read_into(self, buffer: memoryview, position: int) -> int:
            truncate_to(log.log, 2, now_ms=NOW)
            log.plain(9)
            return original.read_into(buffer, position)

        def close(self) -> None:
            original.close()

    held.file = Slow()  # type: ignore[assignment]
    assert len(records.read()) == SIZE
    records.release()


def test_parts_of_a_slice() -> None:
    log = filled(Log())
    with slice_of(log, 2, 2 * SIZE) as records:
        assert (records.base_offset, records.position, records.size) == (0, SIZE, 2 * SIZE)
        assert len(records) == records.size
        whole, part = records.read(), memoryview(bytearray(ALL))
        for start in (0, 7, SIZE, 2 * SIZE - 1):
            assert records.read_into(part, start) == 2 * SIZE - start
            assert part[: 2 * SIZE - start] == whole[start:]
        assert records.read_into(part[:10], 5) == 10
        assert part[:10] == whole[5:15]
        assert records.read_into(part, 2 * SIZE) == records.read_into(part, 10**6) == 0


def test_a_slice_is_released_once() -> None:
    log = filled(Log())
    first, second = slice_of(log), slice_of(log)
    log.log.local.close_files()
    first.release()
    first.release()
    assert len(second.read()) == 4 * SIZE
    second.release()
    for attempt in (first.read, first.fileno):
        with pytest.raises(ValueError, match="position 0"):
            attempt()


def test_a_leaked_slice_warns_and_is_released() -> None:
    log = filled(Log())
    file = log.log.active.file("log")
    with pytest.warns(ResourceWarning, match=f"{4 * SIZE} bytes at position 0 of segment 0 was never"):
        slice_of(log)
    gc.collect()
    log.log.local.close_files()
    with pytest.raises(OSError, match="not open"):
        file.size()


def test_an_empty_slice_has_no_file() -> None:
    log = filled(Log())
    records = slice_of(log, 8)
    assert (records.base_offset, records.position, records.size) == (0, 4 * SIZE, 0)
    assert records.read_into(memoryview(bytearray(9))) == 0
    assert len(records.read()) == 0
    with pytest.raises(ValueError, match="has no file"):
        records.fileno()


def test_slices_that_threads_release_close_their_file_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(Log())
    file = log.log.active.file("log")
    closed: list[int] = []
    monkeypatch.setattr(file, "close", lambda: closed.append(1))
    slices = [slice_of(log) for _ in range(400)]
    start = threading.Barrier(8)

    def release(mine: list[LogSlice]) -> None:
        start.wait()
        for each in mine:
            each.release()

    threads = [threading.Thread(target=release, args=(slices[i::8],)) for i in range(8)]
    for thread in threads:
        thread.start()
    log.log.local.close_files()
    for thread in threads:
        thread.join()
    assert closed == [1]


def test_a_file_in_memory_has_no_descriptor() -> None:
    with slice_of(filled(Log())) as records, pytest.raises(io.UnsupportedOperation):
        records.fileno()


@pytest.mark.parametrize("log", ["disk"], indirect=True)
def test_a_slice_is_sent_without_a_copy(log: Log) -> None:
    near, far = socket.socketpair()
    with near, far, slice_of(log, 2, 2 * SIZE) as records:
        close_idle_files(log)
        assert os.sendfile(near.fileno(), records.fileno(), records.position, records.size) == 2 * SIZE
        assert far.recv(ALL) == records.read()


def test_a_log_is_opened_again_while_a_slice_of_it_is_not_released() -> None:
    log = filled(Log())
    records = slice_of(log)
    before = bytes(records.read())
    log.log.close()
    again = opened_in_memory(log.log.files, Start(True, log.log.recovery_point, 0))
    with read(again, 0, max_bytes=ALL).records as other:
        assert bytes(other.read()) == bytes(records.read()) == before
    records.release()
