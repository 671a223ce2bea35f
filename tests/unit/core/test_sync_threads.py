"""Files that are synced together, in threads without the interpreter's lock."""

from __future__ import annotations

import errno
import os
import select
import time
from pathlib import Path

import pytest

from txnkafka._core.sync_threads import SyncThreads


def synced(syncs: SyncThreads, descriptors: list[int]) -> list[int]:
    syncs.begin(descriptors)
    assert select.select([syncs], [], [], 20)[0]
    errors = syncs.finish()
    assert errors is not None
    return [0 if error is None else error.errno or 0 for error in errors]


@pytest.mark.parametrize("count", [1, 2, 50])
def test_each_file_has_its_own_error(tmp_path: Path, count: int) -> None:
    files = [(tmp_path / str(number)).open("wb") for number in range(count)]
    readable, writable = os.pipe()
    syncs = SyncThreads()
    for turn in range(3):
        for file in files:
            file.write(b"%d" % turn)
            file.flush()
        good = [file.fileno() for file in files]
        assert synced(syncs, good) == [0] * count
        assert synced(syncs, [*good, 1 << 20, writable]) == [*[0] * count, errno.EBADF, errno.EINVAL]
    syncs.close()
    for file in files:
        file.close()
    os.close(readable)
    os.close(writable)


def test_one_group_at_a_time(tmp_path: Path) -> None:
    syncs = SyncThreads()
    assert syncs.finish() is None
    with pytest.raises(ValueError, match="no file"):
        syncs.begin([])
    with (tmp_path / "a").open("wb") as file:
        syncs.begin([file.fileno()])
        with pytest.raises(ValueError, match="under way"):
            syncs.begin([file.fileno()])
        assert select.select([syncs], [], [], 20)[0]
        assert syncs.finish() == [None]
        assert syncs.finish() is None
        assert synced(syncs, [file.fileno()]) == [0]


def test_the_threads_end_with_their_owner(tmp_path: Path) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 0

    before = count()
    for _ in range(20):
        with (tmp_path / "a").open("wb") as file:
            syncs = SyncThreads()
            syncs.begin([file.fileno()])
            syncs.close()
            syncs.close()
            del syncs
        SyncThreads()
    deadline = time.monotonic() + 20
    while count() != before and time.monotonic() < deadline:
        time.sleep(0.01)  # a thread that is joined may be listed for a moment
    assert count() == before
