"""Open transactions whose first records are deleted, without a snapshot that has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.logdir.logs import batch, marker, write_log
from txnkafka import LogDir
from txnkafka.logdir import PartitionView


def opened(offset: int) -> bytes:
    return batch(offset, 10, transactional=True, producer_id=7, producer_epoch=0)


def trimmed(folder: Path, log: list[bytes], log_start: int) -> PartitionView:
    write_log(folder, "t-0", {0: log})
    (folder / "log-start-offset-checkpoint").write_text(f"0\n1\nt 0 {log_start}\n")
    return LogDir(str(folder)).partition("t", 0)


@pytest.mark.parametrize(("log_start", "stable"), [(3, 0), (10, 10), (13, 10), (20, 20), (25, 20)])
def test_open_over_the_log_start(tmp_path: Path, log_start: int, stable: int) -> None:
    """The last stable offset is the first offset of the batch that contains the log start, as in the
    broker."""
    view = trimmed(tmp_path, [opened(0), opened(10), batch(20, 10), opened(30)], log_start)
    assert view.last_stable_offset == stable
    (found,) = view.open_transactions
    assert (found.producer_id, found.first_offset) == (7, log_start)
    assert list(view.records()) == []


def test_a_transaction_that_ended_after_the_log_start(tmp_path: Path) -> None:
    view = trimmed(tmp_path, [opened(0), opened(10), marker(20, "commit", 7), batch(21)], 13)
    assert (view.last_stable_offset, view.open_transactions) == (23, [])
    assert [record.offset for record in view.records()] == [*range(13, 20), 21, 22]
