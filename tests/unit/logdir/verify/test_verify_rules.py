"""verify: a valid directory has no findings, legal differences are not reported, and each option works."""

from __future__ import annotations

import ast
import functools
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import txnkafka
from tests.models.builder import Batch, PlainRecord, legacy_entry, legacy_wrapper
from tests.models.log_directory import TIME, LogDirectory, data, transactional
from tests.models.producer_state import write_snapshot
from tests.unit.logdir.faults import FIRST, PLANTED, SECOND, found, rows
from txnkafka.logdir import LogDir
from txnkafka.logdir.verify.findings import CODES
from txnkafka.logdir.verify.report import LEVELS, verify

ROOT = Path(__file__).resolve().parents[4]
DOCUMENTED = re.findall(r"^\| `([a-z-]+)`", (ROOT / "docs" / "findings.md").read_text(encoding="utf-8"), re.M)
ELSEWHERE = {"bad-checkpoint", "bad-quorum-state", "coordinator-log-damaged"}
# Kafka's own terms, and options that look like codes
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


@functools.cache
def words_of_the_sources() -> set[str]:
    package = Path(txnkafka.__file__).parent  # the simulation and the hand-over have codes of their own
    paths = [path for path in package.rglob("*.py") if not {"testing", "handover"} & set(path.parts)]
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in paths)
    texts = (node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and re.fullmatch(r"[a-z]+([-_][a-z]+)+", text)}


def test_the_docs_have_every_code_and_no_other() -> None:
    assert len(DOCUMENTED) == len(set(DOCUMENTED))
    assert set(DOCUMENTED) == set(CODES) | ELSEWHERE
    first_words = {code.split("-")[0] for code in DOCUMENTED}
    used = {word for word in words_of_the_sources() if word.split("-")[0] in first_words and "_" not in word}
    assert used - NOT_CODES - set(DOCUMENTED) == set(), "codes without documentation"
    said = {word.replace("_", "-") for word in words_of_the_sources()}
    assert set(DOCUMENTED) - said == set(), "documentation of unused codes"


def test_the_docs_have_the_usual_severities() -> None:
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    severities = dict(re.findall(r"^\| `([a-z-]+)` \| ([a-z, ]+) \|", text, re.M))
    for (severity, code, _, _), _ in PLANTED:
        assert severity in severities[code].split(", ")
    assert [code for code, (usual, _) in CODES.items() if usual not in severities[code].split(", ")] == []


# Valid directories


@pytest.mark.parametrize("io", ["mmap", "pread"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("clean", [True, False])
def test_a_sound_directory(directory: LogDirectory, clean: bool, level: str, io: str) -> None:
    directory.write(clean=clean)
    report = verify(LogDir(str(directory.root), io=io), level=level)
    assert report == (1, 2, 9, 12, [])
    assert report.is_sound


def test_only_one_segment_of_a_partition(directory: LogDirectory) -> None:
    """The files of the segment are checked; the log before it is unknown, and not reported as missing."""
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


@pytest.mark.process
def test_a_directory_that_a_broker_writes(directory: LogDirectory) -> None:
    """Files that are written after the segments were listed are not reported."""
    directory.write(clean=False)
    directory.file(20, "snapshot").write_bytes(write_snapshot([]))
    with directory.file(8).open("ab") as log:
        log.write(data(15)[:70])
    assert directory.file(8, "txnindex").exists()
    for kind in ("index", "timeindex", "txnindex"):  # of the newest segment, in the memory of the broker
        directory.file(8, kind).unlink()
    lock = directory.root / ".lock"
    lock.write_bytes(b"")
    with subprocess.Popen([sys.executable, "-c", BROKER, lock], stdin=-1, stdout=-1) as broker:
        assert broker.stdout is not None
        broker.stdout.readline()
        findings = found(directory)
        broker.communicate()
    assert findings == []


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


def test_findings_and_progress_are_reported_at_once(directory: LogDirectory) -> None:
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


def test_topic_ids_of_which_none_is_known_to_be_right(directory: LogDirectory) -> None:
    directory.write()
    other = directory.root / "t-1"
    other.mkdir()
    (other / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg")
    assert [Path(finding.file).parent.name for finding in found(directory)] == ["t-0", "t-1"]


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


@pytest.mark.parametrize(("last", "told"), [(2**31 - 1, False), (2**31, True)])
def test_the_largest_offset_of_a_segment(directory: LogDirectory, last: int, told: bool) -> None:
    one = Batch(records=[PlainRecord(None, b"v", TIME)], base_offset=last).encode()
    directory.segments = {0: [data(0)]}
    directory.write(clean=False).file(0).write_bytes(data(0) + one)
    assert ("offset-overflow" in {each.code for each in found(directory)}) is told


@pytest.mark.parametrize("content", [b"version=x\n", b"", b"\x00\xff garbage", b"cluster.id=c\n"])
def test_without_a_readable_version_no_topic_id_is_expected(directory: LogDirectory, content: bytes) -> None:
    directory.write()
    (directory.partition / "partition.metadata").unlink()
    codes = {finding.code for finding in found(directory)}
    (directory.root / "meta.properties").write_bytes(content)
    damaged = {finding.code for finding in found(directory)}
    assert "missing-partition-metadata" in codes
    assert "missing-partition-metadata" not in damaged
    assert damaged - codes == {"bad-meta-properties"}


@pytest.mark.parametrize(("suffix", "entry"), [(".index", ">ii"), (".timeindex", ">qi")])
def test_index_entries_beyond_the_largest_offset(tmp_path: Path, suffix: str, entry: str) -> None:
    path = tmp_path / "t-0"
    path.mkdir()
    base = 2**63 - 10
    log = b"".join(Batch(records=[PlainRecord(b"k", b"v")], base_offset=base + i).encode() for i in range(3))
    (path / f"{base:020}.log").write_bytes(log)
    (path / f"{base:020}{suffix}").write_bytes(struct.pack(entry, 50, 50))
    codes = {finding.code for finding in verify(LogDir(str(tmp_path))).findings}
    assert f"bad-{suffix[1:]}" in codes
