"""verify on every golden directory: intact ones have no finding, and each damage is reported with its file
and position.

The expected findings follow from ``damage`` in the case.json (the damage done to an intact directory) and
from the result of the broker's start; a directory without a row here fails.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.golden.cases import Case, case, cases
from tests.golden.damage import LAST_SEGMENT, OLD_SEGMENT, TABLE, Row
from tests.golden.directories import ANSWERED, Directory
from txnkafka.cli.main import cli
from txnkafka.logdir import LogDir
from txnkafka.logdir.verify.report import LEVELS, VerifyReport, verify

Expected = tuple[str, str, str, int | None]  # severity, code, end of the file's name, position

SOUND = [
    pytest.param(directory, id=f"{case.name}/{directory.name}")
    for case in cases()
    if case.damage is None
    for directory in (case.logs, case.recovered)
    if directory is not None
]
SEGMENTS = (0, 16, 31, 46, 59, 71, 86)
# Segments with aborted transactions, below the recovery point (50), and from it on.
ABORTS_BELOW, ABORTS_ABOVE = (0, 31), (46, 59, 71, 86)
TORN, FLIPPED, END = 757, 274, 911  # positions in the last segment


def _each(
    severity: str, code: str, kind: str, offsets: tuple[int, ...], position: int | None
) -> list[Expected]:
    return [(severity, code, f"{offset:020}.{kind}", position) for offset in offsets]


def _last(severity: str, code: str, position: int) -> list[Expected]:
    return [(severity, code, LAST_SEGMENT, position)]


def _snapshot(severity: str, code: str, *offsets: int) -> list[Expected]:
    return _each(severity, code, "snapshot", offsets, None)


BAD_INDEX = _each("warning", "bad-index", "index", SEGMENTS, 0)
BAD_TIMEINDEX = _each("warning", "bad-timeindex", "timeindex", SEGMENTS, 0)
NO_INDEX = _each("note", "missing-index", "index", (0,), None)
NO_TIMEINDEX = _each("note", "missing-timeindex", "timeindex", (0,), None)
SHOWN_ABORTS = _each("error", "missing-txnindex", "txnindex", ABORTS_BELOW, None)
REBUILT_ABORTS = _each("note", "missing-txnindex", "txnindex", ABORTS_ABOVE, None)
ALL_ABORTS_REBUILT = _each("note", "missing-txnindex", "txnindex", ABORTS_BELOW + ABORTS_ABOVE, None)
ALL_ABORTS_SHOWN = _each("error", "missing-txnindex", "txnindex", ABORTS_BELOW + ABORTS_ABOVE, None)
NO_EPOCHS: Expected = ("note", "missing-leader-epoch-checkpoint", "leader-epoch-checkpoint", None)
NO_SNAPSHOT = _snapshot("note", "missing-snapshot", 93)
# The broker used 86 as the log end and began its new leader epoch there, and no snapshot is at the end.
MISLED = [*_last("warning", "leader-epoch-mismatch", 0), *NO_SNAPSHOT]
# The index points to the torn batch.
CUT_INDEX = _each("warning", "bad-index", "index", (86,), 0)

EXPECTED: dict[str, list[Expected]] = {
    "crash_all_derived_gone/logs": [
        *NO_INDEX, *NO_TIMEINDEX, *ALL_ABORTS_REBUILT, *NO_SNAPSHOT, NO_EPOCHS
    ],
    "crash_bad_snapshot/logs": _each("warning", "bad-snapshot", "snapshot", SEGMENTS[1:], 2),
    "crash_no_index/logs": NO_INDEX,
    "crash_no_snapshot/logs": NO_SNAPSHOT,
    "crash_no_timeindex/logs": NO_TIMEINDEX,
    # the broker made empty ones, and believes them below the recovery point
    "crash_no_timeindex/recovered": _each("warning", "bad-timeindex", "timeindex", (0, 16, 31), 0),
    "crash_no_txnindex/logs": [*SHOWN_ABORTS, *REBUILT_ABORTS],
    "crash_no_txnindex/recovered": SHOWN_ABORTS,
    "crash_torn_tail/logs": _last("warning", "torn-tail", TORN),
    # the first seven bytes of a base offset below 256 are zeros
    "crash_torn_header/logs": _last("warning", "zero-tail", TORN),
    "crash_torn_crc/logs": _last("warning", "torn-tail", TORN),
    "crash_huge_length/logs": _last("warning", "torn-tail", TORN),
    "crash_zero_tail/logs": _last("warning", "zero-tail", END),
    # random bytes that look like the beginning of a large batch
    "crash_garbage_tail/logs": _last("warning", "torn-tail", END),
    "crash_repeated_tail/logs": _last("warning", "repeated-batch", END),
    "crash_repeated_tail/recovered": _last("warning", "repeated-batch", END),
    "crash_flip_last_payload/logs": _last("error", "corrupt-tail", FLIPPED),
    "crash_bad_magic/logs": _last("error", "unknown-magic", FLIPPED),
    "crash_bad_magic/recovered": _last("error", "unknown-magic", FLIPPED),
    "crash_flip_last_epoch/logs": _last("warning", "leader-epoch-mismatch", FLIPPED),
    "crash_flip_last_epoch/recovered": _last("warning", "leader-epoch-mismatch", FLIPPED),
    "crash_flip_last_offset/logs": _last("error", "misplaced-batch", FLIPPED),
    # the broker trusted the offset: its snapshot of 93 has producers that write at 92 and 32859, which cannot
    # be judged until the batch is restored
    "crash_flip_last_offset/recovered": [
        *_last("error", "misplaced-batch", FLIPPED),
        *_snapshot("note", "snapshot-contradicts-log", 93, 93),
    ],
    "crash_flip_old_payload/logs": [("error", "corrupt-batch", OLD_SEGMENT, 639)],
    "crash_flip_old_payload/recovered": [("error", "corrupt-batch", OLD_SEGMENT, 639)],
    "clean_flip_last_payload/logs": _last("error", "corrupt-batch", FLIPPED),
    "clean_flip_last_payload/recovered": _last("error", "corrupt-batch", FLIPPED),
    "clean_torn_tail/logs": [
        *_last("error", "torn-tail", TORN),
        *CUT_INDEX,
        *_snapshot("warning", "snapshot-beyond-log-end", 93),
        ("error", "high-watermark-beyond-log-end", "replication-offset-checkpoint", None),
        ("warning", "recovery-point-beyond-log-end", "recovery-point-offset-checkpoint", None),
    ],
    "clean_torn_tail/recovered": [*_last("error", "torn-tail", TORN), *CUT_INDEX, MISLED[0]],
    "clean_zero_tail/logs": _last("error", "zero-tail", END),
    # the refused start deleted the clean shutdown file
    "clean_zero_tail/recovered": _last("warning", "zero-tail", END),
    "clean_no_index/logs": NO_INDEX,
    "clean_no_timeindex/logs": NO_TIMEINDEX,
    "clean_no_timeindex/recovered": _each("warning", "bad-timeindex", "timeindex", SEGMENTS, 0),
    "clean_bad_timeindex/logs": BAD_TIMEINDEX,
    "clean_bad_timeindex/recovered": BAD_TIMEINDEX,
    "clean_bad_index/logs": BAD_INDEX,
    "clean_bad_index/recovered": [*BAD_INDEX, *MISLED],
    "clean_lying_index/logs": BAD_INDEX,
    "clean_lying_index/recovered": [*BAD_INDEX, *MISLED],
    "clean_no_txnindex/logs": ALL_ABORTS_SHOWN,
    "clean_no_txnindex/recovered": ALL_ABORTS_SHOWN,
    "clean_bad_txnindex/logs": _each("warning", "bad-txnindex", "txnindex", (59,), 0),
    "clean_bad_txnindex/recovered": _each("warning", "bad-txnindex", "txnindex", (59,), 0),
    "clean_torn_txnindex/logs": _each("warning", "bad-txnindex", "txnindex", (59,), 68),
    "clean_torn_txnindex/recovered": _each("warning", "bad-txnindex", "txnindex", (59,), 68),
    "clean_lying_txnindex/logs": _each("error", "txnindex-contradicts-log", "txnindex", (16,), 0),
    "clean_lying_txnindex/recovered": _each("error", "txnindex-contradicts-log", "txnindex", (16,), 0),
    "clean_no_last_snapshot/logs": NO_SNAPSHOT,
    "clean_old_snapshot_only/logs": NO_SNAPSHOT,
    "clean_bad_snapshot/logs": _each("warning", "bad-snapshot", "snapshot", (*SEGMENTS[1:], 93), 2),
    "clean_no_snapshot/logs": _snapshot("error", "missing-snapshot", 93),
    # the broker wrote snapshots without open transactions: producer 0 idle, the transactions of three others
    # open each time
    "clean_no_snapshot/recovered": [
        *_snapshot("note", "snapshot-lacks-producer", 71, 86, 93),
        *_snapshot("warning", "snapshot-contradicts-log", 71, 71, 71, 86, 86),
        *_snapshot("error", "snapshot-contradicts-log", 93, 93, 93),
    ],
    "clean_repair/logs": [*NO_INDEX, *NO_TIMEINDEX, *ALL_ABORTS_REBUILT, *NO_SNAPSHOT],
    "clean_bad_recovery_point/logs": [
        ("warning", "bad-checkpoint", "recovery-point-offset-checkpoint", None)
    ],
    "clean_no_leader_epoch/logs": [NO_EPOCHS],
    "clean_bad_leader_epoch/logs": [
        ("warning", "bad-leader-epoch-checkpoint", "leader-epoch-checkpoint", None)
    ],
    "clean_bad_leader_epoch/recovered": [
        ("warning", "bad-leader-epoch-checkpoint", "leader-epoch-checkpoint", None)
    ],
    "clean_no_meta_properties/logs": [("warning", "missing-meta-properties", "meta.properties", None)],
    "clean_no_meta_properties/recovered": [("warning", "missing-meta-properties", "meta.properties", None)],
    "clean_no_partition_metadata/logs": [
        ("warning", "missing-partition-metadata", "partition.metadata", None)
    ],
    "clean_no_partition_metadata/recovered": [("note", "other-directory", "-stray", None)],
    # with one partition there is no other id to compare with
    "clean_other_topic_id/recovered": [("note", "other-directory", "-stray", None)],
    **{
        f"clean_missing_segment/{state}": [
            ("error", "missing-segment", f"{59:020}.log", None),
            ("error", "undecided-transaction", f"{59:020}.log", None),
        ]
        for state in ("logs", "recovered")
    },
}  # fmt: skip
# Rows without a finding, by the reason.
NO_FINDING = {
    # The broker truncated the log before the damage, and wrote derived files up to there.
    "cut by recovery": [
        "crash_torn_tail/recovered", "crash_torn_header/recovered", "crash_torn_crc/recovered",
        "crash_huge_length/recovered", "crash_zero_tail/recovered", "crash_garbage_tail/recovered",
        "crash_flip_last_payload/recovered",
    ],
    # A missing .index makes the broker rebuild all derived files of a segment, and the epochs.
    "rebuilt at the start": [
        "crash_all_derived_gone/recovered", "crash_no_index/recovered", "clean_no_index/recovered",
        "clean_repair/recovered",
    ],
    # The producer state is replayed from an older snapshot or from the log, and written at the stop. Only a
    # clean start without any snapshot is trusted.
    "snapshots written again": [
        "crash_bad_snapshot/recovered", "crash_no_snapshot/recovered", "clean_no_last_snapshot/recovered",
        "clean_old_snapshot_only/recovered", "clean_bad_snapshot/recovered",
    ],
    # Without the clean shutdown file, or without a recovery point, more is recovered: this is no error.
    "recovered from further back": [
        "crash_no_recovery_point/logs", "crash_no_recovery_point/recovered", "clean_no_marker/logs",
        "clean_no_marker/recovered", "clean_bad_recovery_point/recovered",
    ],
    # A missing checkpoint counts as 0 and is written again; 0 is valid for both of these offsets.
    "checkpoints that may be so": [
        "clean_no_checkpoints/logs", "clean_no_checkpoints/recovered", "clean_bad_log_start/logs",
        "clean_bad_log_start/recovered", "clean_hw_behind/logs", "clean_hw_behind/recovered",
    ],
    # The broker began a new epoch at the log end; there is no epoch for the log below.
    "a new checkpoint of epochs": ["clean_no_leader_epoch/recovered"],
    # No other file in a directory with a single partition contradicts these ids.
    "ids that nothing contradicts": [
        "clean_other_cluster/logs", "clean_other_cluster/recovered", "clean_other_topic_id/logs",
    ],
}  # fmt: skip
EXPECTED |= {name: [] for names in NO_FINDING.values() for name in names}
DIRECTORIES = [row for row in TABLE if "/" not in row.directory]


def rows(report: VerifyReport) -> list[Expected]:
    return [(each.severity, each.code, Path(each.file).name, each.position) for each in report.findings]


def _ending(name: str) -> str:
    return "-stray" if name.endswith("-stray") else name


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("directory", SOUND)
def test_a_sound_directory_has_no_findings(directory: Path, level: str) -> None:
    assert verify(LogDir(str(directory)), level=level).findings == []


@pytest.mark.parametrize("io", ["mmap", "pread"])
@pytest.mark.parametrize("row", DIRECTORIES, ids=str)
def test_a_broken_directory(row: Row, io: str) -> None:
    found = [
        (severity, code, _ending(name), position)
        for severity, code, name, position in rows(verify(LogDir(row.path, io=io), level="records"))
    ]
    assert sorted(found, key=str) == sorted(EXPECTED[str(row)], key=str)


def test_every_broken_directory_has_its_findings() -> None:
    assert set(EXPECTED) == {str(row) for row in DIRECTORIES}
    assert sum(not findings for findings in EXPECTED.values()) == sum(map(len, NO_FINDING.values())) == 31


@pytest.mark.parametrize("directory", ANSWERED, ids=str)
def test_what_is_counted(directory: Directory) -> None:
    """The report counts the batches that the broker's dump tool printed, and the records that its consumer
    returned."""
    log_dir = LogDir(directory.path)
    report = verify(log_dir, [directory.partition])
    files = directory.case.dump(directory.partition)
    logs = {name: dumped for name, dumped in files.items() if name.endswith(".log")}
    expected = len(directory.case.expected_records(directory.partition, "read_uncommitted"))
    log_start = directory.case.facts(directory.partition)["log_start_offset"]
    view = log_dir.partition(*directory.partition)
    assert (report.partitions, report.segments) == (1, len(logs))
    if not _has_old_format(directory.case):  # the tool prints the entries inside compressed sets
        assert report.batches == sum(len(each["rows"]) for each in logs.values())
    if log_start == view.segments[0].base_offset:
        assert report.records == expected
    else:
        assert report.records > expected


def _has_old_format(case: Case) -> bool:
    return case.name.startswith("legacy")


@pytest.mark.parametrize("row", DIRECTORIES, ids=str)
def test_the_command_line(row: Row) -> None:
    result = CliRunner().invoke(cli, ["verify", row.path, "--format", "json"], standalone_mode=False)
    assert result.exception is None
    report = verify(LogDir(row.path))
    document = json.loads(result.stdout_bytes)
    assert list(document) == ["partitions", "segments", "batches", "records", "findings"]
    assert document == {
        **report._asdict(),
        "findings": [finding._asdict() for finding in report.findings],
    }
    assert (result.return_value or 0) == int(not report.is_sound)


def test_a_snapshot_that_a_hole_contradicts_is_not_to_be_deleted(tmp_path: Path) -> None:
    """The snapshot is right: the marker that it knows was in the missing segment."""
    root = shutil.copytree(case("crash").root / "logs", tmp_path / "logs")
    for kind in ("log", "index", "timeindex", "txnindex"):
        (root / "crash-1" / f"{46:020}.{kind}").unlink(missing_ok=True)
    found = [each for each in verify(LogDir(root)).findings if each.cause or each.code == "missing-segment"]
    (snapshot,) = [each for each in found if each.code == "snapshot-contradicts-log"]
    assert found[0].code == "missing-segment"
    assert {each.cause for each in found[1:]} == {"missing-segment"}
    assert (snapshot.severity, "delete" in snapshot.remedy) == ("note", False)
