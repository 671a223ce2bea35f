"""Where a log ends: what recovery would truncate, and what is valid after a clean shutdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.logdir.logs import batch, marker, partition
from txnkafka.errors import CorruptRecordError
from txnkafka.logdir import LogDir
from txnkafka.logdir.verify.report import verify_partition

SEGMENTS = {0: [batch(0), batch(2)], 4: [batch(4), batch(6)]}


def flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def codes(view: object) -> list[str]:
    return [finding.code for finding in view.findings]  # type: ignore[attr-defined]


@pytest.mark.parametrize("clean", [True, False])
def test_an_undamaged_log(tmp_path: Path, clean: bool) -> None:
    view = partition(tmp_path, SEGMENTS, clean=clean)
    assert (view.log_start_offset, view.log_end_offset, codes(view)) == (0, 8, [])


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("tail", "code"),
    [(b"\0" * 100, "zero-tail"), (batch(8)[:30], "torn-tail"), (b"\xff" * 100, "garbage-tail")],
)
def test_a_tail_that_is_no_batch(tmp_path: Path, clean: bool, tail: bytes, code: str) -> None:
    view = partition(tmp_path, {**SEGMENTS, 4: [*SEGMENTS[4], tail]}, clean=clean)
    assert (view.log_end_offset, codes(view)) == (8, [code])
    finding = view.findings[0]
    severity = "error" if clean else "warning"  # a broker that was stopped cleanly does not cut it off
    assert (finding.severity, finding.position) == (severity, len(SEGMENTS[4][0]) * 2)
    assert [record.offset for record in view.records()] == list(range(8))


def test_a_wrong_crc_ends_an_unclean_log(tmp_path: Path) -> None:
    view = partition(tmp_path, {**SEGMENTS, 4: [batch(4), flipped(batch(6)), batch(8)]}, clean=False)
    assert (view.log_end_offset, codes(view)) == (6, ["corrupt-tail"])
    assert view.findings[0].severity == "error"
    assert [record.offset for record in view.records()] == list(range(6))


def test_a_torn_header_before_a_whole_batch_ends_an_unclean_log(tmp_path: Path) -> None:
    """A batch whose end was never written looks like a batch of magic 0 after a power cut."""
    torn = batch(6)[:16].ljust(len(batch(6)), b"\0")
    view = partition(tmp_path, {**SEGMENTS, 4: [batch(4), torn, batch(8)]}, clean=False)
    assert (view.log_end_offset, codes(view)) == (6, ["corrupt-tail"])
    assert [record.offset for record in view.records()] == list(range(6))


def test_after_a_clean_shutdown_a_crc_is_checked_when_it_is_read(tmp_path: Path) -> None:
    view = partition(tmp_path, {**SEGMENTS, 4: [batch(4), flipped(batch(6)), batch(8)]})
    assert (view.log_end_offset, codes(view)) == (10, [])
    offsets = []
    with pytest.raises(CorruptRecordError, match=r"CRC.*t-0.*00004.log, position \d+, offset 6"):
        offsets += [record.offset for record in view.records()]
    assert [record.offset for record in view.records(on_corrupt="skip")] == [*range(6), 8, 9]


def test_from_the_recovery_point_on_all_segments_are_checked(tmp_path: Path) -> None:
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 0\n")
    view = partition(tmp_path, {0: [batch(0), flipped(batch(2))], 4: SEGMENTS[4]}, clean=False)
    assert (view.log_end_offset, len(view.segments), codes(view)) == (2, 1, ["corrupt-tail"])
    assert "left out" in view.findings[0].message


def test_below_the_recovery_point_damage_is_no_tail(tmp_path: Path) -> None:
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 4\n")
    view = partition(tmp_path, {0: [batch(0), flipped(batch(2))], 4: SEGMENTS[4]}, clean=False)
    assert (view.log_end_offset, codes(view)) == (8, [])
    seen: list[CorruptRecordError] = []
    assert [record.offset for record in view.records(on_corrupt=seen.append)] == [0, 1, 4, 5, 6, 7]
    assert [error.offset for error in seen] == [2]


def test_a_middle_segment_that_ends_early_is_met_in_its_place(tmp_path: Path) -> None:
    view = partition(tmp_path, {0: [batch(0), batch(2)[:40]], 4: SEGMENTS[4]})
    with pytest.raises(CorruptRecordError, match="damaged from here on: a batch of"):
        list(view.records())
    assert [record.offset for record in view.records(on_corrupt="skip")] == [0, 1, 4, 5, 6, 7]
    assert [record.offset for record in view.records(start_offset=4)] == [4, 5, 6, 7]
    assert [record.offset for record in view.records(end_offset=2)] == [0, 1]


def test_an_empty_last_segment(tmp_path: Path) -> None:
    view = partition(tmp_path, {0: SEGMENTS[0], 4: []})
    assert view.log_end_offset == 4


def test_a_batch_that_jumped_is_left_out(tmp_path: Path) -> None:
    view = partition(tmp_path, {0: [batch(0), batch(2 + 64), batch(4)]})
    assert view.log_end_offset == 6
    with pytest.raises(CorruptRecordError, match="offsets do not fit between those of its neighbours"):
        list(view.records())
    assert [record.offset for record in view.records(on_corrupt="skip")] == [0, 1, 4, 5]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("segments", "end_offset", "position"),
    [
        ({4: [batch(0), batch(2)]}, 4, 0),
        ({0: [batch(0), batch(2)], 4: [batch(1)]}, 4, 0),
        ({0: [batch(0), batch(2), batch(1)]}, 4, 2 * len(batch(0))),
    ],
)
def test_batches_with_offsets_below_the_log_end_are_reported(
    tmp_path: Path, clean: bool, segments: dict[int, list[bytes]], end_offset: int, position: int
) -> None:
    """No offset that a reader can ask for leads to them, as if the file had another segment's name."""
    view = partition(tmp_path, segments, clean=clean)
    (finding,) = view.findings
    assert view.log_end_offset == end_offset
    assert (finding.severity, finding.code, finding.position) == ("error", "misplaced-batch", position)


def test_a_repeated_batch_at_the_end_is_no_damage(tmp_path: Path) -> None:
    view = partition(tmp_path, {0: [batch(0), batch(2), batch(2)]})
    assert (view.log_end_offset, codes(view)) == (4, [])


def test_a_misplaced_batch_that_others_follow_is_met_in_its_place(tmp_path: Path) -> None:
    view = partition(tmp_path, {0: [batch(0), batch(2), batch(1), batch(4)]})
    assert (view.log_end_offset, codes(view)) == (6, [])
    with pytest.raises(CorruptRecordError, match="offsets do not fit"):
        list(view.records())


@pytest.mark.parametrize("claimed", [4, 6, 1000])
def test_a_batch_that_claims_offsets_of_the_next_segment_is_left_out(tmp_path: Path, claimed: int) -> None:
    view = partition(tmp_path, {0: [batch(0), batch(claimed)], 4: SEGMENTS[4]})
    assert [record.offset for record in view.records(on_corrupt="skip")] == [0, 1, 4, 5, 6, 7]
    with pytest.raises(CorruptRecordError, match="offsets do not fit between those of its neighbours"):
        list(view.records())


def test_a_misplaced_batch_may_have_had_the_offsets_between_its_neighbours(tmp_path: Path) -> None:
    """A reader that wants none of these offsets gets no error."""
    view = partition(tmp_path, {0: [batch(0), batch(2 + 64), batch(4), batch(6)]})
    (damaged,) = view.plan()[0].damage
    assert (damaged.position, damaged.offset, damaged.next_offset) == (len(batch(0)), 2, 4)
    assert [record.offset for record in view.records(start_offset=4)] == [4, 5, 6, 7]
    assert [record.offset for record in view.records(end_offset=2)] == [0, 1]
    with pytest.raises(CorruptRecordError):
        list(view.records(start_offset=3))


def test_recovery_goes_on_behind_a_batch_of_an_unknown_magic(tmp_path: Path) -> None:
    """Recovery keeps such a batch, and readers fail there; it truncates at the first wrong CRC after it."""
    unknown = bytearray(batch(2))
    unknown[16] = 9
    log = [batch(0), bytes(unknown), batch(4), batch(6), flipped(batch(8)), batch(10)]
    view = partition(tmp_path, {0: log}, clean=False)
    assert (view.log_end_offset, codes(view)) == (8, ["corrupt-tail"])
    assert view.findings[0].position == 4 * len(batch(0))
    assert [record.offset for record in view.records(on_corrupt="skip")] == [0, 1, 4, 5, 6, 7]


def test_a_batch_from_behind_the_wanted_offsets_does_not_come_in_by_a_wrong_one(tmp_path: Path) -> None:
    """Found by flipping every bit: the batch of 47 moved to 43, an offset that had only a marker."""
    log = [
        batch(0),
        batch(2, 1, transactional=True, producer_id=1, producer_epoch=0),
        marker(3, "commit", 1),
        batch(4, 1, transactional=True, producer_id=2, producer_epoch=0),
        batch(5),
        batch(3, 1, transactional=True, producer_id=3, producer_epoch=0),
        marker(8, "abort", 3),
    ]
    view = partition(tmp_path, {0: log})
    assert view.last_stable_offset == 4
    assert [record.offset for record in view.records(on_corrupt="skip")] == [0, 1, 2]
    assert [record.offset for record in view.records()] == [0, 1, 2]
    with pytest.raises(CorruptRecordError, match="do not fit between those of its neighbours"):
        list(view.records(isolation_level="read_uncommitted"))


@pytest.mark.parametrize("io", ["mmap", "pread"])
@pytest.mark.parametrize("delta", [3, 258, 0x40000002])
@pytest.mark.parametrize("bases", [[0], [0, 9]])
def test_a_damaged_last_offset_does_not_take_the_batches_behind_it(
    tmp_path: Path, io: str, delta: int, bases: list[int]
) -> None:
    """The CRC covers the last offset: of two batches that overlap, the one with the wrong CRC is damaged."""
    batches = [batch(base, 3) for base in range(0, 30, 3)]
    batches[2] = batches[2][:23] + delta.to_bytes(4, "big") + batches[2][27:]
    ends = [*bases[1:], 30]
    segments = {base: batches[base // 3 : end // 3] for base, end in zip(bases, ends, strict=True)}
    view = partition(tmp_path, segments, io=io)
    assert (view.log_end_offset, codes(view)) == (30, [])
    read = [record.offset for record in view.records(on_corrupt="skip")]
    assert read == [offset for offset in range(30) if not 6 <= offset < 9]
    with pytest.raises(CorruptRecordError):
        list(view.records())
    errors = [each for each in verify_partition(view) if each.severity == "error"]
    assert [(each.code, each.position) for each in errors] == [("corrupt-batch", 2 * len(batches[0]))]


# Zeros


def of_parts(path: Path, *parts: bytes | int) -> Path:
    """Write a segment of these bytes and a number of zeros, without occupying the disk."""
    path = path / "t-0" / f"{0:020}.log"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        for part in parts:
            if isinstance(part, int):
                file.truncate(file.tell() + part)
                file.seek(0, 2)
            else:
                file.write(part)
    return path.parent.parent


MIB = 1 << 20


@pytest.mark.parametrize("io", ["mmap", "pread"])
@pytest.mark.parametrize(
    ("parts", "code", "text"),
    [
        ([3 * MIB], "zero-tail", f"{3 * MIB} zero bytes to the end"),
        ([5 * MIB + 1], "zero-tail", f"{5 * MIB + 1} zero bytes to the end"),
        ([100_000, b"x"], "garbage-tail",
         "100000 zero bytes, then 1 bytes with other content; 100001 bytes to the end"),
        ([2 * MIB, b"x" * 50], "garbage-tail",
         f"{2 * MIB} zero bytes, then 50 bytes with other content; {2 * MIB + 50} bytes to the end"),
        ([6 * MIB, b"x" * 50, 10], "garbage-tail",
         f"{6 * MIB} zero bytes, then 60 bytes with other content; {6 * MIB + 60} bytes to the end"),
        ([500 * MIB, b"x" * 50], "garbage-tail", f"{500 * MIB + 50} bytes to the end"),
        ([500 * MIB + 3], "zero-tail", "at least "),
    ],
)  # fmt: skip
def test_what_is_said_of_zeros_is_true_of_the_file(
    tmp_path: Path, io: Any, parts: list[bytes | int], code: str, text: str
) -> None:
    """A reader sees 1 or 4 MiB at a time."""
    first = batch(0)
    log_dir = LogDir(of_parts(tmp_path, first, *parts), io=io)
    (finding,) = log_dir.partition("t", 0).findings
    assert (finding.code, finding.position) == (code, len(first))
    assert text in finding.message
    found = verify_partition(log_dir.partition("t", 0))
    (verified,) = [each for each in found if each.code.endswith("-tail")]
    assert (verified.code, verified.message) == (code, finding.message)


@pytest.mark.parametrize("size", [MIB, 100_000_000, 1 << 30])
def test_a_preallocated_segment_is_no_fault(tmp_path: Path, size: int) -> None:
    first = batch(0)
    log_dir = LogDir(of_parts(tmp_path, first, size - len(first)))
    assert log_dir.partition("t", 0).findings == []
    (finding,) = [each for each in verify_partition(log_dir.partition("t", 0)) if each.code.endswith("-tail")]
    assert (finding.severity, finding.code) == ("note", "zero-tail")
