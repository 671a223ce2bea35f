"""Transactions over segments: outcomes, missing segments, contradictions, and hidden ranges."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.logdir.logs import batch, marker, partition
from txnkafka import LogDir
from txnkafka.config import LogConfig
from txnkafka.env import LocalDataFiles, LocalFileSystem
from txnkafka.errors import CorruptRecordError, LogDirError
from txnkafka.logdir import PartitionView, header_pass, open_unit, read_unit
from txnkafka.logdir.survey import survey
from txnkafka.logdir.verify.report import verify_partition
from txnkafka.record.chunk import ChunkDecoder
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.formats import segment_reader
from txnkafka.storage.recovery.log_loader import Repair


def data(base_offset: int, producer_id: int, epoch: int = 0) -> bytes:
    return batch(base_offset, transactional=True, producer_id=producer_id, producer_epoch=epoch)


def offsets(view: PartitionView, **options: object) -> list[int]:
    return [record.offset for record in view.records(**options)]  # type: ignore[arg-type]


def test_the_marker_may_stand_segments_later(tmp_path: Path) -> None:
    segments = {
        0: [data(0, 1), data(2, 2)],
        4: [batch(4)],
        6: [marker(6, "abort", 1), marker(7, "commit", 2), batch(8)],
    }
    view = partition(tmp_path, segments)
    assert offsets(view) == [2, 3, 4, 5, 8, 9]
    assert offsets(view, end_offset=4) == [2, 3]
    assert offsets(view, isolation_level="read_uncommitted") == [0, 1, 2, 3, 4, 5, 8, 9]
    assert [(each.producer_id, each.outcome) for each in view.transactions()] == [
        (1, "aborted"),
        (2, "committed"),
    ]
    assert [each.first_offset for each in view.aborted_transactions(3, 4)] == [0]
    assert view.aborted_transactions(7, 9) == []


def test_reading_from_the_middle_of_an_aborted_transaction(tmp_path: Path) -> None:
    view = partition(tmp_path, {0: [data(0, 1), data(2, 1), batch(4), marker(6, "abort", 1), batch(7)]})
    for start in range(9):
        assert offsets(view, start_offset=start) == [offset for offset in (4, 5, 7, 8) if offset >= start]


def test_an_open_transaction_holds_the_log(tmp_path: Path) -> None:
    view = partition(tmp_path, {0: [batch(0), data(2, 1), batch(4)], 6: [batch(6)]})
    assert (view.last_stable_offset, view.log_end_offset) == (2, 8)
    assert offsets(view) == [0, 1]
    assert [(each.producer_id, each.first_offset, each.records) for each in view.open_transactions] == [
        (1, 2, 2)
    ]


def test_a_missing_segment_leaves_transactions_undecided(tmp_path: Path) -> None:
    """A marker of the next epoch does not say which transaction it ends either: with transaction version 1 a
    producer has that epoch after InitProducerId."""
    segments = {
        0: [batch(0), data(2, 1), data(4, 2, 5)],
        10: [marker(10, "commit", 1), marker(11, "commit", 2, 6), batch(12)],
    }
    view = partition(tmp_path, segments)
    findings: list = []
    units = view.plan(findings=findings)
    assert units
    assert offsets(view) == [0, 1, 12, 13]
    assert sorted((finding.code, Path(finding.file).stem) for finding in findings) == [
        ("missing-segment", f"{10:020}"),
        ("undecided-transaction", f"{0:020}"),
        ("undecided-transaction", f"{0:020}"),
    ]
    assert offsets(view, isolation_level="read_uncommitted") == [0, 1, 2, 3, 4, 5, 12, 13]


@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_behind_a_missing_segment_markers_decide_again(tmp_path: Path, outcome: str) -> None:
    """Whether the transaction in front went on or ended in the gap: what is behind has this end."""
    view = partition(tmp_path, {0: [data(0, 1)], 10: [data(10, 1), marker(12, outcome, 1), batch(13)]})
    seen = [10, 11, 13, 14] if outcome == "commit" else [13, 14]
    assert offsets(view) == seen
    assert offsets(view, start_offset=10) == seen
    findings: list = []
    view.plan(findings=findings)
    assert [finding.code for finding in findings] == ["missing-segment", "undecided-transaction"]
    assert [(each.first_offset, each.last_offset) for each in view.transactions()] == [(0, 1), (10, 12)]


def _flipped(content: bytes, position: int, mask: int) -> bytes:
    return content[:position] + bytes([content[position] ^ mask]) + content[position + 1 :]


LOST_MARKERS = {
    "checksum": (-1, 1),
    "control bit": (22, 0x20),
    "magic": (16, 2),
    "offset": (0, 0x40),
    "producer": (50, 2),
}


@pytest.mark.parametrize("damage", LOST_MARKERS)
@pytest.mark.parametrize(("lost", "next_one"), [("abort", "commit"), ("commit", "abort")])
def test_a_damaged_marker_does_not_leave_its_transaction_to_the_next_one(
    tmp_path: Path, damage: str, lost: str, next_one: str
) -> None:
    position, mask = LOST_MARKERS[damage]
    content = marker(4, lost, 1)
    broken = _flipped(content, position % len(content), mask)
    log = [data(0, 1), data(2, 3), broken, data(5, 1), marker(7, next_one, 1), marker(8, "commit", 3)]
    view = partition(tmp_path, {0: [*log, batch(9)], 11: [batch(11)]})
    behind = [5, 6] if next_one == "commit" else []
    found = offsets(view, on_corrupt="skip")
    # the magic byte is not covered by the checksum, and all of that marker is known
    known = {"abort": [2, 3], "commit": [0, 1, 2, 3]}[lost] if damage == "magic" else []
    assert found == [*known, *behind, 9, 10, 11, 12]
    outcomes = [each.outcome for each in view.transactions() if each.producer_id == 1]
    last = {"commit": "committed", "abort": "aborted"}
    assert outcomes == [last[lost] if damage == "magic" else "undecided", last[next_one]]


def test_gaps_of_a_compacted_log_are_no_hole(tmp_path: Path) -> None:
    segments = {0: [batch(0), batch(5), data(7, 1)], 20: [marker(20, "commit", 1), batch(21)]}
    view = partition(tmp_path, segments)
    assert offsets(view) == [0, 1, 5, 6, 7, 8, 21, 22]


EMPTIED: list = [
    {0: [batch(0), data(2, 1)], 20: [marker(20, "commit", 1), batch(21)]},
    {0: [batch(0), data(2, 1)], 10: [], 20: [marker(20, "commit", 1), batch(21)]},
    {0: [data(0, 1)], 10: [batch(10), data(12, 1)], 20: [marker(20, "commit", 1), batch(21)]},
]


@pytest.mark.parametrize("segments", EMPTIED)
def test_what_the_cleaner_emptied_is_no_hole(tmp_path: Path, segments: dict[int, list[bytes]]) -> None:
    """A cleaned segment may end without a gap of its own, or be empty."""
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 20\n")
    view = partition(tmp_path, segments)
    findings: list = []
    view.plan(findings=findings)
    assert findings == []
    assert offsets(view) == offsets(view, isolation_level="read_uncommitted")
    assert "missing-segment" not in {finding.code for finding in verify_partition(view)}
    assert {transaction.outcome for transaction in view.transactions()} == {"committed"}


def test_behind_what_was_cleaned_a_hole_is_one(tmp_path: Path) -> None:
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 19\n")
    view = partition(tmp_path, EMPTIED[0])
    findings: list = []
    view.plan(findings=findings)
    assert [finding.code for finding in findings] == ["missing-segment", "undecided-transaction"]
    assert offsets(view) == [0, 1, 21, 22]


def test_in_front_of_a_segment_with_gaps_all_was_cleaned(tmp_path: Path) -> None:
    """The checkpoint is missing if only the partition was copied."""
    segments = {0: [batch(0), data(2, 1)], 10: [marker(10, "commit", 1), batch(15)], 20: [batch(20)]}
    view = partition(tmp_path, segments)
    assert offsets(view) == [0, 1, 2, 3, 15, 16, 20, 21]
    assert "missing-segment" not in {finding.code for finding in verify_partition(view)}


def txn_index(*entries: tuple[int, int, int, int]) -> bytes:
    return b"".join(struct.pack(">hqqqq", 0, *entry) for entry in entries)


def test_the_index_may_hide_more_but_never_less(tmp_path: Path) -> None:
    segments = {0: [data(0, 1), marker(2, "commit", 1), data(3, 2), marker(5, "abort", 2), batch(6)]}
    view = partition(tmp_path, segments)
    assert offsets(view) == [0, 1, 6, 7]
    index = tmp_path / "t-0" / f"{0:020d}.txnindex"
    for content in (b"", b"\xff" * 50, txn_index((7, 3, 5, 6)), txn_index((2, 3, 5, 6))[:-1]):
        index.write_bytes(content)
        assert offsets(partition(tmp_path, segments)) == [0, 1, 6, 7]
    index.write_bytes(txn_index((1, 0, 2, 3), (2, 3, 5, 6)))
    view = partition(tmp_path, segments)
    findings: list = []
    view.plan(findings=findings)
    assert offsets(view) == [6, 7]
    assert [(finding.code, finding.file) for finding in findings] == [
        ("txnindex-contradicts-log", str(index))
    ]


@pytest.mark.parametrize("first", [0, 1, 2])
def test_an_index_entry_that_begins_too_early_hides_what_it_names(tmp_path: Path, first: int) -> None:
    """The ABORT marker of the entry is right. A consumer drops all data of the producer from the first offset
    on."""
    segments = {0: [data(0, 1), marker(2, "commit", 1), data(3, 1), marker(5, "abort", 1), batch(6)]}
    partition(tmp_path, segments)
    index = tmp_path / "t-0" / f"{0:020d}.txnindex"
    index.write_bytes(txn_index((1, first, 5, 6)))
    view = partition(tmp_path, segments)
    findings: list = []
    view.plan(findings=findings)
    assert [finding.code for finding in findings] == ["txnindex-contradicts-log"]
    assert offsets(view) == ([6, 7] if first == 0 else [0, 1, 6, 7])
    assert offsets(view, isolation_level="read_uncommitted") == [0, 1, 3, 4, 6, 7]


def test_the_remedy_for_a_contradicting_index_mends_it(tmp_path: Path) -> None:
    segments = {0: [data(0, 1), marker(2, "commit", 1), data(3, 1), marker(5, "abort", 1), batch(6)]}
    partition(tmp_path, segments)
    index = tmp_path / "t-0" / f"{0:020d}.txnindex"
    index.write_bytes(txn_index((1, 0, 5, 6)))
    findings: list = []
    LogDir(tmp_path).partition("t", 0).plan(findings=findings)
    assert [finding.remedy.partition(" before")[0] for finding in findings] == [
        "delete the file, then run 'txnkafka repair'"
    ]
    index.unlink()
    DataDirectory(
        LocalDataFiles(), str(tmp_path), lambda _: LogConfig(), now_ms=1_700_000_000_000, repair=Repair()
    ).close()
    assert index.read_bytes() == txn_index((1, 3, 5, 6))
    view, findings = LogDir(tmp_path).partition("t", 0), []
    view.plan(findings=findings)
    assert (findings, offsets(view)) == ([], [0, 1, 6, 7])


def test_an_index_entry_of_a_deleted_beginning_is_right(tmp_path: Path) -> None:
    """The index alone has the first offset of the transaction, and the log does not contradict it."""
    segments = {4: [data(4, 2), data(6, 1), marker(8, "abort", 1), marker(9, "commit", 2), batch(10)]}
    partition(tmp_path, segments)
    (tmp_path / "t-0" / f"{4:020d}.txnindex").write_bytes(txn_index((1, 1, 8, 4)))
    view = partition(tmp_path, segments)
    findings: list = []
    view.plan(findings=findings)
    assert (findings, offsets(view)) == ([], [4, 5, 10, 11])


def test_the_high_watermark_of_the_checkpoint_is_a_limit_on_request(tmp_path: Path) -> None:
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nt 0 4\n")
    view = partition(tmp_path, {0: [batch(0), batch(2), batch(4)]})
    assert view.high_watermark == 4
    assert offsets(view) == [0, 1, 2, 3, 4, 5]
    assert offsets(view, up_to="high-watermark") == [0, 1, 2, 3]


def test_without_a_high_watermark_nothing_is_taken_for_replicated(tmp_path: Path) -> None:
    view = partition(tmp_path, {0: [batch(0)]})
    said = "replication-offset-checkpoint has no high watermark of t-0; a broker writes it every 5 seconds"
    with pytest.raises(LogDirError, match=said):
        view.plan(up_to="high-watermark")
    empty = partition(tmp_path / "new", {0: []})
    assert empty.plan(up_to="high-watermark") == []


def test_mapped_and_read_give_the_same(tmp_path: Path) -> None:
    segments = {
        0: [data(0, 1), batch(2, 300, codec=4), marker(302, "abort", 1)],
        303: [batch(303, codec=1), batch(305)],
    }
    partition(tmp_path, segments)
    expected = [*range(2, 302), 303, 304, 305, 306]
    for io in ("mmap", "pread", "auto"):
        assert offsets(partition(tmp_path, segments, io=io)) == expected


def test_many_segments_do_not_stay_open(tmp_path: Path) -> None:
    view = partition(tmp_path, {2 * i: [batch(2 * i)] for i in range(200)})
    before = len(list(Path("/dev/fd").iterdir()))
    opened = [len(list(Path("/dev/fd").iterdir())) for _ in view.read()]
    assert len(opened) == 200
    assert max(opened) - before < 20


def test_a_file_that_was_cut_since_the_plan_is_an_error(tmp_path: Path) -> None:
    view = partition(tmp_path, {0: [batch(0), batch(2)]}, io="pread")
    (unit,) = view.plan()
    path = tmp_path / "t-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[: len(batch(0))])
    columns = read_unit(open_unit(LocalFileSystem(), unit), unit, ChunkDecoder())
    assert len(next(columns)) == 2
    with pytest.raises(
        CorruptRecordError, match="not what it was when the read was planned: the file became shorter"
    ):
        next(columns)


def test_arrow_batches(tmp_path: Path) -> None:
    import pyarrow as pa

    view = partition(
        tmp_path, {0: [batch(0), data(2, 1), marker(4, "abort", 1), batch(5, log_append_time=77)]}
    )
    table = pa.Table.from_batches(view.arrow_batches())
    assert table.column_names == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
        "headers",
    ]
    assert table["offset"].to_pylist() == [0, 1, 5, 6]
    assert table["value"].to_pylist() == [b"0", b"1", b"5", b"6"]
    assert table["timestampType"].to_pylist() == [0, 0, 1, 1]
    assert table["timestamp"].cast(pa.int64()).to_pylist() == [1000, 1001, 77, 77]
    assert table["topic"].to_pylist() == ["t"] * 4
    assert table["headers"].to_pylist() == [[]] * 4
    table.validate(full=True)
    narrow = pa.Table.from_batches(view.arrow_batches(["value"]))
    assert narrow.column_names == ["value"]


@example([(1, 1, False), (1, 2, False), (2, 3, True), (2, 2, False)], [(2, 11, 3)])
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.booleans()), max_size=12),
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 40), st.integers(0, 10)), max_size=12),
)
def test_contradictions_are_those_of_the_obvious_search(
    transactions: list[tuple[int, int, bool]], entries: list[tuple[int, int, int]]
) -> None:
    """The search compares each entry of the index with each transaction of its producer. An entry that begins
    before the transaction that its marker ended is one, too, if a committed one is in between."""
    batches, offset, ranges = [], 0, []
    for producer_id, count, committed in transactions:
        batches.append(batch(offset, count, transactional=True, producer_id=producer_id, producer_epoch=0))
        ranges.append((producer_id, offset, offset + count, committed))
        offset += count
        batches.append(marker(offset, "commit" if committed else "abort", producer_id))
        offset += 1
    lasts = sorted({last for _, last, _ in entries})
    rows = {last: (producer_id, max(last - length, 0), last) for producer_id, last, length in entries}
    with tempfile.TemporaryDirectory() as folder:
        view = partition(Path(folder), {0: batches})
        index = txn_index(*((*rows[last], 0) for last in lasts))
        (Path(folder) / "t-0" / f"{0:020d}.txnindex").write_bytes(index)
        found = survey(view.segments, 0, offset, 1 << 20).index_only if batches else []
        view.close()
    aborted = {(each[0], each[2]): each[1] for each in ranges if not each[3]}
    expected = [
        rows[last]
        for last in lasts
        if rows[last][1] < aborted.get((rows[last][0], last), offset + 1)  # or there is none
        and any(
            committed and producer_id == rows[last][0] and first <= last and rows[last][1] <= end
            for producer_id, first, end, committed in ranges
        )
    ]
    assert [tuple(each[1:4]) for each in found] == (expected if batches else [])


@pytest.mark.parametrize("misplaced", [False, True])
def test_a_segment_with_very_many_batches_gives_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, misplaced: bool
) -> None:
    batches = []
    for i in range(0, 300, 5):
        batches += [data(i, i % 3), batch(i + 2), marker(i + 4, "abort" if i % 2 else "commit", i % 3)]
    if misplaced:
        batches[40] = batch(5000)
    segments = {0: [*batches, data(300, 1)], 302: [data(302, 2), marker(304, "commit", 1), batch(305)]}

    def answers() -> list[object]:
        view = partition(tmp_path, segments)
        view.plan()
        remembered = [each.base_offset for each in view.segments if each.remembered]
        found: list[object] = [
            offsets(view, on_corrupt="skip"),
            offsets(view, isolation_level="read_uncommitted", on_corrupt="skip", start_offset=77),
            view.transactions(),
            view.open_transactions,
            (view.log_start_offset, view.last_stable_offset, view.log_end_offset),
            view.producers(now_ms=0),
            view.offset_for_timestamp(0, on_corrupt="skip"),
            remembered,
        ]
        view.close()
        return found

    *expected, remembered = answers()
    assert remembered == [0, 302]
    monkeypatch.setattr(LocalFileSystem, "window_bytes", 500)
    for module in (segment_reader, header_pass):
        monkeypatch.setattr(module, "MAX_INDEXED_BATCHES", 7)
    *found, remembered = answers()
    assert found == expected
    assert remembered == [302]
