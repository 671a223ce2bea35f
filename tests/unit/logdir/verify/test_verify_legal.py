"""verify: legal differences from the log are not reported, and damage does not hide later findings."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.conftest import LONG, sampled
from tests.models.builder import Batch, PlainRecord
from tests.models.log_directory import TIME, LogDirectory, abort, commit, data, idempotent, transactional
from tests.models.producer_state import write_snapshot
from tests.unit.logdir.faults import FIRST, SECOND, found, rows
from tests.unit.logdir.faults_of_files import AT_END
from txnkafka.env import LocalFileSystem
from txnkafka.logdir import LogDir
from txnkafka.logdir.verify import verify
from txnkafka.logdir.verify.findings import LISTED_PER_FILE


@pytest.fixture
def directory(tmp_path: Path) -> LogDirectory:
    return LogDirectory(tmp_path / "data")


# Legal differences


def test_the_group_coordinator_begins_each_batch_at_sequence_0(directory: LogDirectory) -> None:
    """Apache Kafka writes the offsets of TxnOffsetCommit so."""
    directory.segments = {0: [transactional(0, 7, 0), transactional(2, 7, 0), commit(4, 7)]}
    directory.write()
    assert [code for _, code, *_ in rows(found(directory))] == ["sequence-back"]
    directory.partition.rename(directory.root / "__consumer_offsets-0")
    assert [row for row in rows(found(directory)) if row[1] == "sequence-back"] == []


def test_deleted_beginnings_are_remembered_by_snapshots_only(directory: LogDirectory) -> None:
    directory.segments[8] = [abort(8, 7), transactional(9, 8, 2), commit(11, 8)]
    directory.write()
    for path in directory.partition.glob(f"{FIRST}.*"):
        path.unlink()
    (directory.root / "log-start-offset-checkpoint").write_text("0\n1\nt 0 8\n")
    assert found(directory) == []


def _log_start(directory: LogDirectory, offset: int) -> None:
    (directory.root / "log-start-offset-checkpoint").write_text(f"0\n1\nt 0 {offset}\n")


def test_a_broker_that_restarts_forgets_what_is_below_the_log_start(directory: LogDirectory) -> None:
    """The snapshot of a transaction below the log start has only its marker, and there is no index entry."""
    directory.write()
    _log_start(directory, 8)
    directory.file(8, "txnindex").unlink()
    only_marker = (7, 0, 0, TIME + 10, -1, -1, -1, 0)
    directory.file(15, "snapshot").write_bytes(write_snapshot([only_marker, *AT_END[1:]]))
    assert found(directory) == []


def test_a_log_start_inside_a_transaction(directory: LogDirectory) -> None:
    """The transaction begins with the first remaining batch after the restart."""
    directory.segments[0][-1:] = [transactional(6, 7, 2, 1), transactional(7, 7, 3, 1)]
    directory.write()
    _log_start(directory, 7)
    directory.file(8, "txnindex").write_bytes(struct.pack(">hqqqq", 0, 7, 7, 10, 11))
    assert found(directory) == []


def emptied(base_offset: int, producer_id: int, sequence: int) -> bytes:
    return Batch(
        base_offset=base_offset, last_offset_delta=1, count=0, producer_id=producer_id, producer_epoch=0,
        base_sequence=sequence, transactional=True, partition_leader_epoch=0,
        max_timestamp=TIME + base_offset,
    ).encode()  # fmt: skip


def test_a_cleaned_log(directory: LogDirectory) -> None:
    """Offsets are missing, batches are empty, and a marker is left without its data and its index entry."""
    whole = LogDirectory(directory.root.parent / "whole").write()
    directory.segments[0] = [emptied(0, 7, 0), abort(5, 8), transactional(6, 7, 2)]
    directory.write()
    directory.file(0, "txnindex").unlink(missing_ok=True)
    for offset in (8, 15):
        directory.file(offset, "snapshot").write_bytes(whole.file(offset, "snapshot").read_bytes())
    assert found(directory) == []


def test_a_cleaned_log_still_has_its_newest_state(directory: LogDirectory) -> None:
    """Above the cleaned part no difference is legal."""
    directory.segments[0] = [abort(5, 8), transactional(6, 7, 2)]
    directory.write()
    wrong = [(*row[:6], row[6] - 1, row[7]) for row in AT_END]
    directory.file(15, "snapshot").write_bytes(write_snapshot(wrong))
    assert [finding.message.split(":")[0] for finding in found(directory)] == [
        "producer 7",
        "producer 8",
        "producer 9",
    ]


def test_a_missing_epoch_of_the_coordinator_in_a_snapshot(directory: LogDirectory) -> None:
    """A producer expired, and returned without a marker."""
    directory.write()
    forgetful = [(*row[:2], -1, *row[3:]) for row in AT_END]
    directory.file(15, "snapshot").write_bytes(write_snapshot(forgetful))
    assert found(directory) == []


# Above the log start (8) producer 7 has only its abort marker at 10, 8 is open from 13 on, 9 has 8 and 9.
MARKER_ONLY, OPEN, IDLE = (list(row) for row in AT_END)


def changed(row: list[int], **fields: int) -> tuple[int, ...]:
    names = ("id", "epoch", "coordinator", "timestamp", "open_from", "sequence", "last_offset", "delta")
    return tuple(fields.get(name, value) for name, value in zip(names, row, strict=True))


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (changed(IDLE, sequence=2), True),
        (changed(IDLE, epoch=1), True),
        (changed(IDLE, last_offset=8), True),
        (changed(IDLE, last_offset=10), True),
        (changed(IDLE, open_from=8), True),
        (changed(IDLE, open_from=7), False),
        (changed(IDLE, timestamp=TIME), False),
        (changed(OPEN, open_from=-1), True),
        (changed(OPEN, open_from=7), False),
        (changed(OPEN, open_from=14), True),
        (changed(MARKER_ONLY, sequence=9), False),
        (changed(MARKER_ONLY, last_offset=6), False),
        (changed(MARKER_ONLY, last_offset=8), True),
        (changed(MARKER_ONLY, last_offset=-1, sequence=-1, delta=0), False),
        (changed(IDLE, id=10, last_offset=7), False),
        (changed(IDLE, id=10, last_offset=8), True),
        (changed(IDLE, id=10, last_offset=7, open_from=7), False),
        (changed(IDLE, id=10, last_offset=7, open_from=8), True),
    ],
)
def test_snapshots_of_a_log_without_its_beginning(
    directory: LogDirectory, row: tuple[int, ...], told: bool
) -> None:
    """Snapshots are compared only with the log above the log start."""
    directory.write()
    for path in directory.partition.glob(f"{FIRST}.*"):
        path.unlink()
    rest = [each for each in AT_END if each[0] != row[0]]
    directory.file(15, "snapshot").write_bytes(write_snapshot([*rest, row]))
    codes = [finding.code for finding in found(directory)]
    assert codes == (["snapshot-contradicts-log"] if told else [])


def test_the_recovery_point_decides_which_segments_are_rebuilt(directory: LogDirectory) -> None:
    directory.write(clean=False).file(0, "txnindex").unlink()
    for offset, severity in ((7, "note"), (8, "error")):
        (directory.root / "recovery-point-offset-checkpoint").write_text(f"0\n1\nt 0 {offset}\n")
        assert [finding.severity for finding in found(directory)] == [severity]


def test_an_index_that_points_at_a_torn_batch_is_rebuilt_after_a_kill(directory: LogDirectory) -> None:
    directory.write(clean=False)
    log = directory.file(8)
    log.write_bytes(log.read_bytes()[:-5])
    (directory.root / "replication-offset-checkpoint").unlink()
    (directory.root / "recovery-point-offset-checkpoint").unlink()
    assert [finding.code for finding in found(directory)] == ["torn-tail"]


def test_a_time_index_of_an_older_broker_names_a_record(directory: LogDirectory) -> None:
    directory.write()
    directory.file(8, "timeindex").write_bytes(struct.pack(">qi", TIME + 9, 0))
    assert found(directory) == []


def test_a_time_index_of_zeros_has_the_timestamp_0(directory: LogDirectory) -> None:
    """Of the first record, and of no other segment."""
    directory.segments = {0: [Batch(records=[PlainRecord(b"k", b"v", 0)], partition_leader_epoch=0).encode()]}
    directory.write()
    assert directory.file(0, "timeindex").read_bytes() == bytes(12)
    assert found(directory) == []
    directory.segments = {0: [data(0, 1)]}
    directory.write()
    directory.file(0, "timeindex").write_bytes(bytes(12))
    assert [code for _, code, *_ in rows(found(directory))] == ["bad-timeindex"]


def test_a_repeated_batch_is_not_a_repeated_sequence(directory: LogDirectory) -> None:
    directory.segments[8] = [idempotent(8, 9, 3), idempotent(8, 9, 3)]
    directory.write()
    assert [finding.code for finding in found(directory)] == ["repeated-batch"]


def test_a_copy_of_partitions_is_no_brokers_directory(directory: LogDirectory) -> None:
    directory.write()
    for path in directory.root.iterdir():
        if path.is_file():
            path.unlink()
    (directory.partition / "partition.metadata").unlink()
    (directory.root / "lost+found").mkdir()
    assert found(directory) == []


def test_a_directory_of_the_zookeeper_time_has_no_topic_ids(directory: LogDirectory) -> None:
    directory.write()
    (directory.root / "meta.properties").write_text("version=0\nbroker.id=1\n")
    (directory.partition / "partition.metadata").unlink()
    assert found(directory) == []


# Damage, and later findings


def test_batches_behind_damage_are_found_by_the_index(directory: LogDirectory) -> None:
    directory.write().patch(directory.file(8), 8, b"\x00\x00\x00\x02")
    behind = directory.position(8, 1)
    assert ("error", "damaged-segment", f"{SECOND}.log", 0) in rows(found(directory))
    directory.patch(directory.file(8), directory.position(8, 3) + 70, b"\xff")
    findings = found(directory)
    assert f"batches continue at {behind}" in findings[0].message
    assert ("error", "corrupt-batch", f"{SECOND}.log", directory.position(8, 3)) in rows(findings)


@pytest.mark.parametrize("number", [1, 2])
def test_a_misplaced_batch_at_the_end_of_a_window(
    directory: LogDirectory, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch with the wrong offset is reported, not the batches after it."""
    directory.segments = {0: [data(0), data(2), data(4), data(6)]}
    directory.write()
    at = directory.position(0, number)
    directory.patch(directory.file(0), at, struct.pack(">q", 1000))
    for window_batches in (1, 2, 3):
        monkeypatch.setattr(LocalFileSystem, "window_bytes", len(data(0)) * window_batches + 5)
        report = verify(LogDir(str(directory.root), io="pread"))
        misplaced = [finding.position for finding in report.findings if finding.code == "misplaced-batch"]
        assert misplaced == [at]


@pytest.mark.parametrize("window_bytes", [1, 150, 200, 400])
def test_windows_change_nothing(
    directory: LogDirectory, window_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.write()
    directory.patch(directory.file(0, "txnindex"), 10, struct.pack(">q", 4))
    directory.patch(directory.file(8, "timeindex"), 12, struct.pack(">q", TIME + 11))
    directory.patch(directory.file(0, "index"), 12, struct.pack(">i", 5))
    directory.patch(directory.file(8, "snapshot"), 20, b"\x99")
    expected = verify(LogDir(str(directory.root), io="mmap"))
    monkeypatch.setattr(LocalFileSystem, "window_bytes", window_bytes)
    assert verify(LogDir(str(directory.root), io="pread")) == expected
    assert len(expected.findings) == 4


@pytest.mark.parametrize("kind", sampled(["log", "snapshot"], every=2, first=1))
def test_no_flipped_bit_goes_unnoticed(directory: LogDirectory, kind: str) -> None:
    directory.write()
    unnoticed = []
    for path in sorted(directory.partition.glob(f"*.{kind}")):
        content = path.read_bytes()
        for i, byte in enumerate(content):
            for bit in range(8) if LONG else [i * 5 % 8]:
                directory.patch(path, i, bytes([byte ^ 1 << bit]))
                if verify(LogDir(str(directory.root))).is_sound:
                    unnoticed.append((path.name, i, bit))
        path.write_bytes(content)
    assert unnoticed == []


def test_an_entry_of_an_older_broker_names_the_end_of_its_append(directory: LogDirectory) -> None:
    directory.write()
    entries = (
        struct.pack(">ii", 4, directory.position(0, 1)),
        struct.pack(">ii", 7, directory.position(0, 4)),
    )
    directory.file(0, "index").write_bytes(b"".join(entries))
    assert found(directory) == []
    directory.patch(directory.file(0, "index"), 0, struct.pack(">i", 3))
    assert rows(found(directory)) == [("warning", "bad-index", f"{FIRST}.index", 0)]


def test_an_index_full_of_garbage_is_one_finding(directory: LogDirectory) -> None:
    directory.write().file(0, "index").write_bytes(b"\x5a\x01" * 500)
    assert [finding.code for finding in found(directory)] == ["bad-index"]


@pytest.mark.parametrize(("kind", "entry"), [("index", ">ii"), ("timeindex", ">qi")])
def test_an_index_with_more_entries_than_the_log_has_room_for_batches(
    directory: LogDirectory, kind: str, entry: str
) -> None:
    """The entries themselves are in order and in range, so only their number is wrong."""
    directory.segments = {0: [idempotent(0, 7, 0), idempotent(400, 7, 2)]}
    directory.write()
    count = directory.file(0, "log").stat().st_size // 26 + 2
    entries = (struct.pack(entry, i + 1, i if kind == "index" else i + 1) for i in range(count))
    directory.file(0, kind).write_bytes(b"".join(entries))
    [finding] = found(directory)
    size = struct.calcsize(entry)
    assert (finding.code, finding.position) == (f"bad-{kind}", (count - 1) * size)
    assert f"{count} entries are more than" in finding.message


def test_findings_of_one_kind_in_one_file_are_limited(directory: LogDirectory) -> None:
    directory.segments = {0: [idempotent(2 * i, 7, 9 * i) for i in range(LISTED_PER_FILE + 8)]}
    directory.write()
    findings = found(directory)
    assert len(findings) == LISTED_PER_FILE + 1
    assert findings[-1].message == "7 more like this are not listed"
    assert findings[-1].position is None


def test_snapshots_without_a_log(directory: LogDirectory) -> None:
    directory.write()
    for path in directory.partition.glob("*.*"):
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex"):
            path.unlink()
    directory.file(0, "snapshot").write_bytes(write_snapshot(AT_END))
    codes = {Path(finding.file).name: finding.code for finding in found(directory)}
    assert codes[f"{0:020}.snapshot"] == "snapshot-contradicts-log"
    assert codes[f"{15:020}.snapshot"] == "snapshot-beyond-log-end"
