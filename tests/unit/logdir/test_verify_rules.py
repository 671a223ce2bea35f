"""verify: what is sound has no findings, what may rightly differ is not told, and what each option does."""

from __future__ import annotations

import ast
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import txnkafka
from tests.conftest import LONG
from tests.models.builder import Batch, PlainRecord, legacy_entry, legacy_wrapper
from tests.models.log_directory import TIME, LogDirectory, abort, commit, data, idempotent, transactional
from tests.models.producer_state import write_snapshot
from tests.unit.logdir.faults import FIRST, PLANTED, SECOND, found, rows
from tests.unit.logdir.faults_of_files import AT_END
from txnkafka.logdir import LogDir, segment
from txnkafka.logdir.verify import LEVELS, verify
from txnkafka.logdir.verify_findings import CODES, LISTED_PER_FILE

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTED = re.findall(r"^\| `([a-z-]+)`", (ROOT / "docs" / "findings.md").read_text(encoding="utf-8"), re.M)
ELSEWHERE = {"bad-checkpoint", "bad-quorum-state", "coordinator-log-damaged"}
# Kafka's own words and names of options that look like codes
NOT_CODES = {
    "high-watermark",
    "leader-epoch-checkpoint",
    "log-end",
    "log-start-offset-checkpoint",
    "producer-id",
    "recovery-point-offset-checkpoint",
    "topic-id",
}
BROKER = """
import fcntl, sys
with open(sys.argv[1], "w") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def directory(tmp_path: Path) -> LogDirectory:
    return LogDirectory(tmp_path / "data")


# Codes


def words_of_the_sources() -> set[str]:
    package = Path(txnkafka.__file__).parent
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in package.rglob("*.py"))
    texts = (node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and re.fullmatch(r"[a-z]+([-_][a-z]+)+", text)}


def test_the_docs_have_every_code_and_no_other() -> None:
    assert len(DOCUMENTED) == len(set(DOCUMENTED))
    assert set(DOCUMENTED) == set(CODES) | ELSEWHERE
    first_words = {code.split("-")[0] for code in DOCUMENTED}
    used = {word for word in words_of_the_sources() if word.split("-")[0] in first_words and "_" not in word}
    assert used - NOT_CODES - set(DOCUMENTED) == set(), "codes without documentation"
    said = {word.replace("_", "-") for word in words_of_the_sources()}
    assert set(DOCUMENTED) - said == set(), "documentation of codes that nobody uses"


def test_the_docs_have_the_usual_severities() -> None:
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    severities = dict(re.findall(r"^\| `([a-z-]+)` \| ([a-z, ]+) \|", text, re.M))
    for (severity, code, _, _), _ in PLANTED:
        assert severity in severities[code].split(", ")
    assert [code for code, (usual, _) in CODES.items() if usual not in severities[code].split(", ")] == []


# What is sound


@pytest.mark.parametrize("io", ["mmap", "pread"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("clean", [True, False])
def test_a_sound_directory(directory: LogDirectory, clean: bool, level: str, io: str) -> None:
    directory.write(clean=clean)
    report = verify(LogDir(str(directory.root), io=io), level=level)
    assert report == (1, 2, 9, 12, [])
    assert report.is_sound


def test_only_one_segment_of_a_partition(directory: LogDirectory) -> None:
    """Its files are checked; what came before is not known, and is not missed."""
    directory.write()
    assert verify(LogDir(str(directory.file(8)))) == (1, 1, 4, 6, [])


def test_magic_0_and_1_are_counted_by_their_entries(directory: LogDirectory) -> None:
    inner = [legacy_entry(i, None, b"v", timestamp=TIME + i) for i in range(3)]
    directory.segments = {
        0: [
            legacy_entry(0, b"k", b"v", magic=0),
            legacy_wrapper(inner, 3, codec=1, timestamp=TIME + 2),
            data(4),
        ]
    }
    (directory.write().partition / "leader-epoch-checkpoint").write_text("0\n1\n0 4\n")
    assert verify(LogDir(str(directory.root))) == (1, 1, 3, 6, [])


def test_a_directory_that_a_broker_writes(directory: LogDirectory) -> None:
    """What is written after the segments were listed is nothing to tell of."""
    directory.write(clean=False)
    directory.file(20, "snapshot").write_bytes(write_snapshot([]))
    with directory.file(8).open("ab") as log:
        log.write(data(15)[:70])
    lock = directory.root / ".lock"
    lock.write_bytes(b"")
    with subprocess.Popen([sys.executable, "-c", BROKER, lock], stdin=-1, stdout=-1) as broker:
        assert broker.stdout is not None
        broker.stdout.readline()
        findings = found(directory)
        broker.communicate()
    assert findings == []


# What may rightly differ


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
    """Of a transaction that is wholly below, only the marker is left, and no index entry."""
    directory.write()
    _log_start(directory, 8)
    directory.file(8, "txnindex").unlink()
    only_marker = (7, 0, 0, TIME + 10, -1, -1, -1, 0)
    directory.file(15, "snapshot").write_bytes(write_snapshot([only_marker, *AT_END[1:]]))
    assert found(directory) == []


def test_a_log_start_inside_a_transaction(directory: LogDirectory) -> None:
    """After the restart it begins with the first batch that is left."""
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
    """Offsets are missing, batches are empty, and a marker has outlived its data and its index entry."""
    whole = LogDirectory(directory.root.parent / "whole").write()
    directory.segments[0] = [emptied(0, 7, 0), abort(5, 8), transactional(6, 7, 2)]
    directory.write()
    directory.file(0, "txnindex").unlink(missing_ok=True)
    for offset in (8, 15):
        directory.file(offset, "snapshot").write_bytes(whole.file(offset, "snapshot").read_bytes())
    assert found(directory) == []


def test_a_cleaned_log_still_has_its_newest_state(directory: LogDirectory) -> None:
    """Behind what was cleaned nothing may differ."""
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
    """A producer that was forgotten and came back without a marker."""
    directory.write()
    forgetful = [(*row[:2], -1, *row[3:]) for row in AT_END]
    directory.file(15, "snapshot").write_bytes(write_snapshot(forgetful))
    assert found(directory) == []


# Damage, and what is behind it


def test_batches_behind_damage_are_found_by_the_index(directory: LogDirectory) -> None:
    directory.write().patch(directory.file(8), 8, b"\x00\x00\x00\x02")
    behind = directory.position(8, 1)
    assert ("error", "damaged-segment", f"{SECOND}.log", 0) in rows(found(directory))
    directory.patch(directory.file(8), directory.position(8, 3) + 70, b"\xff")
    findings = found(directory)
    assert f"batches go on at {behind}" in findings[0].message
    assert ("error", "corrupt-batch", f"{SECOND}.log", directory.position(8, 3)) in rows(findings)


@pytest.mark.parametrize("number", [1, 2])
def test_a_misplaced_batch_at_the_end_of_a_window(
    directory: LogDirectory, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch is to blame whose offset is wrong, not those that come after it."""
    directory.segments = {0: [data(0), data(2), data(4), data(6)]}
    directory.write()
    at = directory.position(0, number)
    directory.patch(directory.file(0), at, struct.pack(">q", 1000))
    for window_batches in (1, 2, 3):
        monkeypatch.setattr(segment, "WINDOW_BYTES", len(data(0)) * window_batches + 5)
        report = verify(LogDir(str(directory.root), io="pread"))
        misplaced = [each.position for each in report.findings if each.code == "misplaced-batch"]
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
    monkeypatch.setattr(segment, "WINDOW_BYTES", window_bytes)
    assert verify(LogDir(str(directory.root), io="pread")) == expected
    assert len(expected.findings) == 4


@pytest.mark.parametrize("kind", ["log", "snapshot"])
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


def test_findings_of_one_kind_in_one_file_are_limited(directory: LogDirectory) -> None:
    directory.segments = {0: [idempotent(2 * i, 7, 9 * i) for i in range(LISTED_PER_FILE + 8)]}
    directory.write()
    findings = found(directory)
    assert len(findings) == LISTED_PER_FILE + 1
    assert findings[-1].message == "7 more like this are not listed"
    assert findings[-1].position is None


# Levels and options


@pytest.mark.parametrize("level", LEVELS)
def test_levels(directory: LogDirectory, level: str) -> None:
    directory.segments[0][0] = transactional(0, 7, 0, payload=b"\x7f\x00\x00", last_offset_delta=1)
    directory.write().patch(directory.file(8), 70, b"\xff")
    damaged = [row[2] for row in rows(found(directory, level)) if row[1] == "corrupt-batch"]
    expected = {"header": [], "crc": [f"{SECOND}.log"], "records": [f"{FIRST}.log", f"{SECOND}.log"]}
    assert damaged == expected[level]


def test_every_codec_is_decoded(directory: LogDirectory) -> None:
    records = [PlainRecord(b"k", b"v" * 50, TIME)] * 3
    batches = [Batch(records=records, base_offset=3 * i, codec=i, partition_leader_epoch=0) for i in range(5)]
    directory.segments = {0: [batch.encode() for batch in batches]}
    directory.write()
    assert verify(LogDir(str(directory.root)), level="records") == (1, 1, 5, 15, [])


def test_fail_fast_stops_at_the_first_that_is_worse_than_a_note(directory: LogDirectory) -> None:
    directory.write().file(8, "timeindex").unlink()
    directory.patch(directory.file(0), 70, b"\xff")
    directory.patch(directory.file(8), 70, b"\xff")
    report = verify(LogDir(str(directory.root)), fail_fast=True)
    assert [finding.code for finding in report.findings] == ["missing-timeindex", "corrupt-batch"]
    assert not report.is_sound


def test_notes_alone_are_sound(directory: LogDirectory) -> None:
    directory.write().file(8, "timeindex").unlink()
    report = verify(LogDir(str(directory.root)))
    assert report.findings
    assert report.is_sound


def test_findings_and_progress_are_told_at_once(directory: LogDirectory) -> None:
    directory.write().patch(directory.file(0), 70, b"\xff")
    seen: list[str] = []
    checked: list[tuple[str, int]] = []
    report = verify(
        LogDir(str(directory.root)),
        on_finding=lambda finding: seen.append(finding.code),
        progress=lambda path, size: checked.append((Path(path).name, size)),
    )
    assert seen == [finding.code for finding in report.findings]
    assert checked == [(path.name, path.stat().st_size) for path in (directory.file(0), directory.file(8))]


def test_an_unknown_level(directory: LogDirectory) -> None:
    with pytest.raises(ValueError, match="level must be one of header, crc, records"):
        verify(LogDir(str(directory.write().root)), level="deep")


# Several directories


def test_directories_of_two_nodes(tmp_path: Path) -> None:
    first = LogDirectory(tmp_path / "1").write()
    second = LogDirectory(tmp_path / "2").write()
    second.partition.rename(second.root / "t-1")
    (second.root / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=2\n")
    report = verify(LogDir([str(first.root), str(second.root)]))
    assert [(each.code, each.file) for each in report.findings] == [
        ("meta-properties-mismatch", str(each.root / "meta.properties")) for each in (first, second)
    ]


def test_a_topic_id_where_nobody_knows_which_is_right(directory: LogDirectory) -> None:
    directory.write()
    other = directory.root / "t-1"
    other.mkdir()
    (other / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg")
    assert [Path(each.file).parent.name for each in found(directory)] == ["t-0", "t-1"]


def test_only_the_chosen_partitions(directory: LogDirectory) -> None:
    directory.write().patch(directory.file(0), 70, b"\xff")
    other = directory.root / "u-0"
    other.mkdir()
    (other / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg")
    log_dir = LogDir(str(directory.root))
    assert verify(log_dir, [each for each in log_dir.topic_partitions if each.topic == "u"]) == (
        1,
        0,
        0,
        0,
        [],
    )
