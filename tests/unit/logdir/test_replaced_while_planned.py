"""A closed segment is replaced between the listing of its directory and the scan of its headers, as by the
cleaner of a running broker. That is no damage: the next plan reads the log as it is then."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.logdir.logs import batch, partition, write_log
from txnkafka.errors import CorruptRecordError, FileChangedError
from txnkafka.logdir import LogDir, PartitionView
from txnkafka.logdir.survey import transactions_between
from txnkafka.spark.read import damage_fails_the_job

LATER = {
    "to a batch boundary": [batch(0)],
    "in the middle of a batch": [batch(0), batch(2)[:-1]],
    "to nothing": [],
    "by a joined segment": [batch(0), batch(2, 1), batch(4), batch(6)],
}
PASSES: dict[str, Callable[[PartitionView], object]] = {
    "plan": PartitionView.plan,
    "records": lambda view: list(view.records(on_corrupt="skip")),
    "start time": lambda view: list(view.records(start_time=1004, on_corrupt="skip")),
    "transactions": lambda view: list(transactions_between(view.segments, 0, 6)),
}


def listed(root: Path, io: str) -> PartitionView:
    view = partition(root, {0: [batch(0), batch(2)], 4: [batch(4)]}, io=io)
    assert len(view.files.segments) == 2
    return view


@pytest.mark.parametrize("io", ["mmap", "pread"])
@pytest.mark.parametrize("how", PASSES)
@pytest.mark.parametrize("change", LATER)
def test_a_closed_segment_that_was_replaced(tmp_path: Path, change: str, how: str, io: str) -> None:
    view = listed(tmp_path, io)
    write_log(tmp_path, "t-0", {0: LATER[change]})
    with pytest.raises(FileChangedError, match="when its directory was listed: it became") as caught:
        PASSES[how](view)
    assert caught.value.offset is None
    assert caught.value.file.endswith(f"{0:020}.log")
    assert "retry" in str(caught.value)


@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_a_closed_segment_that_was_torn_before_is_damaged(tmp_path: Path, io: str) -> None:
    view = partition(tmp_path, {0: [batch(0), batch(2)[:-1]], 4: [batch(4)]}, io=io)
    with pytest.raises(CorruptRecordError, match="the segment is damaged from here on") as caught:
        list(view.records())
    assert caught.value.offset == 2
    assert [record.offset for record in view.records(on_corrupt="skip")] == [0, 1, 4, 5]


@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_the_last_segment_may_grow_and_may_be_truncated(tmp_path: Path, io: str) -> None:
    """The first by its leader, the second by a follower: the log ends with what is left of the listing."""
    view = listed(tmp_path, io)
    write_log(tmp_path, "t-0", {4: [batch(4), batch(6)]})
    assert [record.offset for record in view.records()] == list(range(6))
    view = LogDir(str(tmp_path), io=io).partition("t", 0)
    assert view.files.segments[1].size == len(batch(4) + batch(6))
    os.truncate(tmp_path / "t-0" / f"{4:020}.log", len(batch(4)))
    assert [record.offset for record in view.records()] == list(range(6))


def test_no_other_advice_is_given(tmp_path: Path) -> None:
    view = listed(tmp_path, "pread")
    write_log(tmp_path, "t-0", {0: [batch(0)]})
    with pytest.raises(FileChangedError) as caught, damage_fails_the_job():
        view.plan()
    assert "failOnDataLoss" not in str(caught.value)
