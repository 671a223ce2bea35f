"""What a plan keeps for the next one, and changes of the log that make it unusable."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest

from tests.models.builder import Batch, PlainRecord
from tests.unit.logdir.logs import batch, marker, write_log
from txnkafka._core.scan import BatchIndex
from txnkafka.logdir import (
    CannotResumeError,
    LogDir,
    PartitionView,
    PlanCheckpoint,
    ReadRequest,
    ResumablePlan,
    resumable_plan,
)
from txnkafka.model import IsolationLevel
from txnkafka.storage.formats import segment_reader

UNCOMMITTED = ReadRequest(isolation_level=IsolationLevel.READ_UNCOMMITTED)


def data(base_offset: int, producer_id: int, count: int = 2) -> bytes:
    return batch(base_offset, count, transactional=True, producer_id=producer_id, producer_epoch=0)


def plan(
    root: Path, checkpoint: PlanCheckpoint | None = None, request: ReadRequest | None = None
) -> ResumablePlan:
    source = LogDir(str(root)).partition("t", 0).source
    return resumable_plan(PartitionView(source, checkpoint), request)


def offsets(found: ResumablePlan) -> list[tuple[int, int]]:
    return [(unit.start_offset, unit.end_offset) for unit in found.units]


def log_file(root: Path, base_offset: int) -> Path:
    return root / "t-0" / f"{base_offset:020}.log"


def test_a_checkpoint_is_a_small_value(tmp_path: Path) -> None:
    """The size depends on the open transactions, not on completed ones; the completed ones here follow the
    oldest open one."""
    sizes = {}
    for is_open in (1, 50):
        for ended in (1, 2000):
            root = tmp_path / f"{is_open}-{ended}"
            batches = [data(i, i + 1, 1) for i in range(is_open)]
            for i in range(ended):
                at = is_open + 2 * i
                batches += [data(at, 10_000 + i, 1), marker(at + 1, "abort", 10_000 + i)]
            write_log(root, "t-0", {0: batches})
            found = plan(root)
            assert found.last_stable_offset == 0
            checkpoint = pickle.loads(pickle.dumps(found.checkpoint))
            assert checkpoint == found.checkpoint
            sizes[is_open, ended] = len(pickle.dumps(checkpoint))
    assert sizes[1, 2000] < sizes[1, 1] + 50
    assert sizes[50, 2000] < sizes[50, 1] + 50
    assert sizes[50, 1] < 20_000


def test_only_what_was_appended_is_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scanned = 0
    scan = segment_reader.scan

    def counting(content: memoryview, *, position: int = 0) -> BatchIndex:
        nonlocal scanned
        index = scan(content, position=position)
        scanned += len(index)
        return index

    monkeypatch.setattr(segment_reader, "scan", counting)
    hanging = [batch(0), data(2, 1), *(batch(2 * i) for i in range(2, 1000))]
    write_log(tmp_path, "t-0", {0: hanging})
    first = plan(tmp_path)
    assert (offsets(first), first.last_stable_offset) == ([(0, 2)], 2)
    scanned = 0
    write_log(tmp_path, "t-0", {0: [*hanging, batch(2000)]})
    again = plan(tmp_path, first.checkpoint)
    assert (offsets(again), again.last_stable_offset) == ([], 2)
    assert 1 <= scanned <= 4
    write_log(tmp_path, "t-0", {0: [*hanging, batch(2000), marker(2002, "commit", 1)]})
    ended = plan(tmp_path, again.checkpoint)
    assert (ended.units[0].start_offset, ended.units[-1].end_offset) == (2, 2003)
    scanned = 0
    write_log(tmp_path, "t-0", {0: [*hanging, batch(2000), marker(2002, "commit", 1), batch(2003)]})
    assert offsets(plan(tmp_path, ended.checkpoint)) == [(2003, 2005)]
    assert 1 <= scanned <= 6


LOG = {0: [batch(0), data(2, 1)], 4: [batch(4), marker(6, "abort", 1)], 7: [batch(7), data(9, 2)]}


def test_an_aborted_transaction_that_began_before_the_cut(tmp_path: Path) -> None:
    """A read_uncommitted reader stops between the records of the transaction, and a read_committed one
    continues."""
    write_log(tmp_path, "t-0", {0: [batch(0), data(2, 1)]})
    first = plan(tmp_path, request=UNCOMMITTED)
    assert (offsets(first), first.last_stable_offset) == ([(0, 4)], 2)
    write_log(tmp_path, "t-0", {0: [batch(0), data(2, 1), data(4, 1), marker(6, "abort", 1)]})
    rest = plan(tmp_path, first.checkpoint)
    assert [(each.first_offset, each.last_offset, each.records) for each in rest.transactions] == [(2, 6, 4)]
    (unit,) = rest.units
    assert [tuple(each) for each in unit.hidden] == [(1, 2, 6)]


def test_segments_that_were_planned_may_be_deleted(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", LOG)
    found = plan(tmp_path)
    assert found.last_stable_offset == 9
    log_file(tmp_path, 0).unlink()
    log_file(tmp_path, 4).unlink()
    write_log(tmp_path, "t-0", {7: [*LOG[7], marker(11, "commit", 2)]})
    assert offsets(plan(tmp_path, found.checkpoint)) == [(9, 12)]


def truncate(root: Path) -> None:
    path = log_file(root, 7)
    path.write_bytes(path.read_bytes()[:-10])


def truncate_and_append(root: Path) -> None:
    write_log(root, "t-0", {7: [batch(7), batch(9), batch(11)]})


def append_to_another_log(root: Path) -> None:
    """The bytes differ in one key only."""
    records = [PlainRecord(b"x", b"9", 1009), PlainRecord(b"k", b"10", 1010)]
    other = Batch(records=records, base_offset=9, transactional=True, producer_id=2, producer_epoch=0)
    write_log(root, "t-0", {7: [batch(7), other.encode(), batch(11)]})


def lose_and_append_the_same(root: Path) -> None:
    """The same batches are appended again, by the leader of the next start."""
    last = data(9, 2)
    write_log(root, "t-0", {7: [*LOG[7][:-1], last[:12] + b"\0\0\0\1" + last[16:]]})


def truncate_segments(root: Path) -> None:
    log_file(root, 7).unlink()


def compact_into_one(root: Path) -> None:
    for base_offset in (0, 7):
        log_file(root, base_offset).unlink()
    write_log(root, "t-0", {4: [batch(4), batch(7), data(9, 2)]})


def compact_in_place(root: Path) -> None:
    write_log(root, "t-0", {7: [batch(8, 1), data(9, 2)]})


def delete_what_was_not_planned(root: Path) -> None:
    for base_offset in (0, 4, 7):
        log_file(root, base_offset).unlink()
    write_log(root, "t-0", {11: [batch(11)]})


def delete_records(root: Path) -> None:
    (root / "log-start-offset-checkpoint").write_text("0\n1\nt 0 10\n")


def lose_everything(root: Path) -> None:
    shutil.rmtree(root / "t-0")
    (root / "t-0").mkdir()
    write_log(root, "u-0", {0: [batch(0)]})


@pytest.mark.parametrize(
    "change",
    [
        truncate,
        truncate_and_append,
        append_to_another_log,
        lose_and_append_the_same,
        truncate_segments,
        compact_into_one,
        compact_in_place,
        delete_what_was_not_planned,
        delete_records,
        lose_everything,
    ],
)
def test_a_log_that_was_changed_is_refused(tmp_path: Path, change: object) -> None:
    write_log(tmp_path, "t-0", LOG)
    found = plan(tmp_path)
    assert callable(change)
    change(tmp_path)
    with pytest.raises(CannotResumeError):
        plan(tmp_path, found.checkpoint)
    plan(tmp_path)  # it can be planned from the beginning


def test_a_batch_below_the_point_is_refused(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0), batch(20)]})  # the second one is damaged: its offset was 2
    found = plan(tmp_path)
    write_log(tmp_path, "t-0", {0: [batch(0), batch(20), batch(4), batch(6)]})
    with pytest.raises(CannotResumeError, match="has a batch below offset 22"):
        plan(tmp_path, found.checkpoint)


@pytest.mark.parametrize(
    ("segments", "following"),
    [({0: [batch(0), batch(0, 1)]}, 3), ({0: [], 5: [batch(0, 1)]}, 6)],
    ids=["behind a batch", "alone"],
)
def test_damage_behind_the_end_is_not_passed_over(
    tmp_path: Path, segments: dict[int, list[bytes]], following: int
) -> None:
    """The last batch has too low an offset, and may have any offset from the end on: the next plan must
    report that."""
    write_log(tmp_path, "t-0", segments)
    found = plan(tmp_path)
    assert not any(each.wanted for unit in found.units for each in unit.damage)
    write_log(tmp_path, "t-0", segments | {following: [batch(following)]})
    assert any(each.wanted for unit in plan(tmp_path).units for each in unit.damage)
    with pytest.raises(CannotResumeError):
        plan(tmp_path, found.checkpoint)


def test_the_beginning_of_an_open_transaction_may_not_go(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [data(0, 1)], 2: [data(2, 1)]})
    found = plan(tmp_path, request=UNCOMMITTED)
    log_file(tmp_path, 0).unlink()
    with pytest.raises(CannotResumeError, match="the beginning of an open transaction was deleted"):
        plan(tmp_path, found.checkpoint)


@pytest.mark.parametrize(("second", "stable"), [(batch(2), 8), (data(2, 1), 2)], ids=["planned", "open"])
def test_a_crc_that_was_never_checked_is_checked(tmp_path: Path, second: bytes, stable: int) -> None:
    """The log was read without checking after a clean stop; a recovery would truncate it."""
    bad = bytearray(batch(4))
    bad[-1] ^= 1
    clean = tmp_path / ".kafka_cleanshutdown"
    write_log(tmp_path, "t-0", {0: [batch(0), second, bytes(bad), batch(6)]})
    clean.write_bytes(b'{"version":0,"brokerEpoch":1}')
    found = plan(tmp_path)
    assert found.last_stable_offset == stable
    clean.unlink()
    with pytest.raises(CannotResumeError, match="ended at offset 8 when it was planned, now at 4"):
        plan(tmp_path, found.checkpoint)
    assert plan(tmp_path).last_stable_offset == min(stable, 4)


def test_a_start_beside_a_checkpoint(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", LOG)
    found = plan(tmp_path)
    with pytest.raises(ValueError, match="begins there: the request must not have a start"):
        plan(tmp_path, found.checkpoint, ReadRequest(start_offset=0))


def test_a_transaction_that_was_open_over_the_log_start_all_the_time(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [data(0, 1, 10)]})
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 5\n")
    found = plan(tmp_path)
    assert (found.last_stable_offset, found.units) == (0, [])
    write_log(tmp_path, "t-0", {0: [data(0, 1, 10), marker(10, "commit", 1), batch(11)]})
    rest = plan(tmp_path, found.checkpoint)
    assert (rest.last_stable_offset, offsets(rest)) == (13, [(5, 13)])
    assert rest.units == plan(tmp_path).units


def test_a_log_that_changes_before_its_checkpoint_is_made(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", LOG)
    view = PartitionView(LogDir(str(tmp_path), io="pread").partition("t", 0).source)
    assert view.last_stable_offset == 9
    view.close()
    compact_in_place(tmp_path)
    with pytest.raises(CannotResumeError, match="while it was planned"):
        view._plan_checkpoint(9, None)
