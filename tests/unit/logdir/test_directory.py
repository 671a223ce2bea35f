"""Valid paths of a log directory, and missing or unexpected files."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.logdir.logs import batch, write_log
from txnkafka.env import LocalFileSystem
from txnkafka.errors import LogDirError, OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txnkafka.logdir import LogDir
from txnkafka.logdir.partition_files import list_partition
from txnkafka.logdir.verify import verify
from txnkafka.model import TopicPartition

LOG = {0: [batch(0), batch(2)]}


def offsets(log_dir: LogDir, topic: str = "t", partition: int = 0) -> list[int]:
    return [record.offset for record in log_dir.partition(topic, partition).records()]


def test_a_log_directory_lists_topics_and_partitions(tmp_path: Path) -> None:
    for name in ("b-1", "b-0", "a-b-10"):
        write_log(tmp_path, name, LOG)
    (tmp_path / "b-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg")
    log_dir = LogDir(str(tmp_path))
    assert log_dir.topic_partitions == [("a-b", 10), ("b", 0), ("b", 1)]
    assert {name: view.partitions for name, view in log_dir.topics.items()} == {"a-b": [10], "b": [0, 1]}
    assert log_dir.topics["b"].topic_id == "AAAAAAAAAAEAAAAAAAAAAg"
    assert log_dir.topics["a-b"].topic_id is None
    assert [str(view.topic_partition) for view in log_dir.partitions("b")] == ["b-0", "b-1"]


def test_a_partition_directory_and_a_single_segment(tmp_path: Path) -> None:
    directory = write_log(tmp_path, "t-0", {0: [batch(0)], 2: [batch(2)]})
    assert offsets(LogDir(str(directory))) == [0, 1, 2, 3]
    assert offsets(LogDir(str(directory) + "/")) == [0, 1, 2, 3]
    assert offsets(LogDir(str(directory / f"{2:020d}.log"))) == [2, 3]


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path, "t-0", LOG)
    monkeypatch.chdir(tmp_path / "t-0")
    for path in (f"{0:020d}.log", ".", "../t-0/"):
        assert LogDir(path).topic_partitions == [TopicPartition("t", 0)]
        assert LogDir(path).paths[0].startswith(str(tmp_path / "t-0"))
    monkeypatch.chdir(tmp_path)
    assert offsets(LogDir("t-0")) == [0, 1, 2, 3]
    assert offsets(LogDir(".")) == [0, 1, 2, 3]


def test_what_a_path_may_be(tmp_path: Path) -> None:
    directory = write_log(tmp_path, "t-0", LOG)
    assert offsets(LogDir(directory)) == offsets(LogDir([directory])) == [0, 1, 2, 3]
    assert LogDir(directory).paths == [str(directory)]
    for wrong in (None, 5, b"t-0", [b"t-0"], [None]):
        with pytest.raises(TypeError, match=r"a path is a str or a pathlib\.Path, not"):
            LogDir(wrong)  # type: ignore[arg-type]
    with pytest.raises(LogDirError, match="no path was given"):
        LogDir([])


def test_what_is_of_the_wrong_type(tmp_path: Path) -> None:
    log_dir = LogDir(write_log(tmp_path, "t-0", LOG))
    for wrong in (("t", "0"), ("t", 0.0), ("t", None), (0, 0)):
        with pytest.raises(TypeError, match="a partition is named by a str and an int"):
            log_dir.partition(*wrong)  # type: ignore[arg-type]
    view: Any = log_dir.partition("t", 0)
    for name in ("start_offset", "end_offset"):
        for read in (view.read, view.records, view.arrow_batches, view.plan, view.count):
            with pytest.raises(TypeError, match=f"{name} must be an int, not '5'"):
                list(read(**{name: "5"}) if read != view.count else [read(**{name: "5"})])
        with pytest.raises(TypeError, match=f"{name} must be an int"):
            view.transactions(**{name: "5"})
    with pytest.raises(TypeError, match="timestamp must be an int, not '2026-01-31'"):
        view.offset_for_timestamp("2026-01-31")
    with pytest.raises(TypeError, match=r"columns are a list of names, as in \['key'\], not 'key'"):
        list(view.arrow_batches("key"))


def test_the_parent_of_a_partition_directory_is_asked(tmp_path: Path) -> None:
    directory = write_log(tmp_path, "t-0", LOG)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 3\n")
    assert offsets(LogDir(str(directory))) == [3]


def test_other_directories_are_distinguished(tmp_path: Path) -> None:
    unique = "0123456789abcdef0123456789abcdef"
    write_log(tmp_path, "t-0", LOG)
    for state in ("delete", "future", "stray"):
        write_log(tmp_path, f"t-0.{unique}-{state}", LOG)
    log_dir = LogDir(str(tmp_path))
    assert log_dir.topic_partitions == [("t", 0)]
    assert sorted(each.state for _, each in log_dir.other_directories) == ["delete", "future", "stray"]
    stray = LogDir(str(tmp_path / f"t-0.{unique}-stray"))
    assert (offsets(stray), stray.partition("t", 0).source.state) == ([0, 1, 2, 3], "stray")


def test_several_log_directories_of_one_broker(tmp_path: Path) -> None:
    for number in (0, 1):
        write_log(tmp_path / f"disk{number}", f"t-{number}", LOG)
    log_dir = LogDir([str(tmp_path / "disk0"), str(tmp_path / "disk1")])
    assert log_dir.topic_partitions == [("t", 0), ("t", 1)]
    write_log(tmp_path / "disk1", "t-0", LOG)
    with pytest.raises(LogDirError, match=r"t-0 is in two places, .*disk0.*disk1"):
        LogDir([str(tmp_path / "disk0"), str(tmp_path / "disk1")])


def test_what_is_no_log_directory(tmp_path: Path) -> None:
    with pytest.raises(LogDirError, match="missing does not exist"):
        LogDir(str(tmp_path / "missing"))
    with pytest.raises(
        LogDirError, match=r"is not a Kafka log directory: it contains neither partition directories"
    ):
        LogDir(str(tmp_path))
    (tmp_path / "python-3").mkdir()
    nothing = r"it has no meta\.properties, and what looks like a partition \(python-3\) has no file of"
    with pytest.raises(LogDirError, match=f"is not a Kafka log directory: {nothing} Kafka's"):
        LogDir(str(tmp_path))
    (tmp_path / "notes.log").write_bytes(b"")
    with pytest.raises(LogDirError, match=r"is not a segment: its name must be a base offset \(20 digits\)"):
        LogDir(str(tmp_path / "notes.log"))
    with pytest.raises(ValueError, match="io must be auto, mmap or pread, not 'fast'"):
        LogDir(str(tmp_path), io="fast")


def test_unknown_partitions_and_offsets_say_what_there_is(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", LOG)
    log_dir = LogDir(str(tmp_path))
    with pytest.raises(UnknownTopicOrPartitionError, match=r"no t-7 in .*partitions here: 0"):
        log_dir.partition("t", 7)
    with pytest.raises(UnknownTopicOrPartitionError, match=r"no x-0 in .*topics here: t"):
        log_dir.partition("x", 0)
    with pytest.raises(OffsetOutOfRangeError, match="offset 5 of t-0 is not in the log, which has 0 to 4"):
        list(log_dir.partition("t", 0).records(start_offset=5))
    assert list(log_dir.partition("t", 0).records(start_offset=4)) == []


def test_a_malformed_checkpoint_is_read_as_missing_and_found(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", LOG)
    (tmp_path / "log-start-offset-checkpoint").write_text("nonsense")
    log_dir = LogDir(str(tmp_path))
    assert offsets(log_dir) == [0, 1, 2, 3]
    assert [(finding.code, finding.severity) for finding in log_dir.findings] == [
        ("bad-checkpoint", "warning")
    ]


def test_an_interrupted_swap_is_seen_as_completed(tmp_path: Path) -> None:
    directory = write_log(tmp_path, "t-0", {0: [batch(0)], 2: [batch(2)], 4: [batch(4)]})
    (directory / f"{0:020d}.log.swap").write_bytes(batch(0, 1) + batch(3, 1))
    (directory / f"{4:020d}.log.deleted").write_bytes(b"")
    (directory / f"{4:020d}.txnindex.swap").write_bytes(b"")
    assert offsets(LogDir(str(tmp_path))) == [0, 3, 4, 5]
    (directory / f"{0:020d}.log.cleaned").write_bytes(b"")
    assert offsets(LogDir(str(tmp_path))) == [0, 1, 2, 3, 4, 5]


def test_an_interrupted_swap_of_a_segment_that_was_split_is_seen_as_completed(tmp_path: Path) -> None:
    """All segments from the first to the last of the new ones are replaced."""
    directory = write_log(tmp_path, "t-0", {2 * i: [batch(2 * i)] for i in range(5)})
    (directory / f"{0:020d}.log.swap").write_bytes(batch(0, 1) + batch(1, 1))
    (directory / f"{4:020d}.log.swap").write_bytes(batch(5, 1) + batch(7, 1))
    assert offsets(LogDir(str(tmp_path))) == [0, 1, 5, 7, 8, 9]


def test_a_swap_without_batches_is_seen_in_the_place_of_its_own_segment(tmp_path: Path) -> None:
    """The segment has no derived files of the old one, as after the owner completes the swap."""
    directory = write_log(tmp_path, "t-0", {0: [batch(0)], 2: [batch(2)]})
    for base_offset in (0, 2):
        (directory / f"{base_offset:020d}.index").write_bytes(b"")
    (directory / f"{0:020d}.log.swap").write_bytes(b"")
    segments = list_partition(LocalFileSystem(), str(directory)).segments
    assert [sorted(segment.files) for segment in segments] == [["log"], ["index", "log"]]
    assert offsets(LogDir(str(tmp_path))) == [2, 3]


def test_a_swap_leaves_the_snapshot_at_its_start(tmp_path: Path) -> None:
    """It has the state in front of the segments; the others are those of the segments that are replaced."""
    directory = write_log(tmp_path, "t-0", {0: [batch(0)], 2: [batch(2)], 4: [batch(4)]})
    for offset in (0, 2, 4):
        (directory / f"{offset:020d}.snapshot").write_bytes(b"")
    (directory / f"{0:020d}.log.swap").write_bytes(batch(0, 1) + batch(3, 1))
    assert sorted(list_partition(LocalFileSystem(), str(directory)).snapshots) == [0, 4]


def test_a_fifo_in_the_place_of_a_segment_does_not_block(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    os.mkfifo(tmp_path / "t-0" / f"{0:020d}.log")
    with pytest.raises(LogDirError, match="not a regular file"):
        offsets(LogDir(str(tmp_path)))


def test_a_link_to_nothing_in_the_place_of_a_segment_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").symlink_to(tmp_path / "gone")
    with pytest.raises(LogDirError, match="No such file"):
        offsets(LogDir(str(tmp_path)))


@pytest.mark.process
def test_a_directory_that_a_broker_holds_is_read_and_not_mapped(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0), batch(2)[:20]]})
    (tmp_path / ".kafka_cleanshutdown").write_bytes(b"")
    lock = tmp_path / ".lock"
    lock.write_bytes(b"")
    code = (
        f"import fcntl, sys; file = open({str(lock)!r}, 'w'); fcntl.lockf(file, fcntl.LOCK_EX); "
        "print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as broker:
        assert broker.stdout is not None
        broker.stdout.readline()
        view = LogDir(str(tmp_path)).partition("t", 0)
        assert (view.source.being_written, view.source.clean_shutdown) == (True, False)
        assert (view.log_end_offset, view.findings) == (2, [])
        assert not view.segments[0].mapped
        broker.communicate()
    assert not LogDir(str(tmp_path)).partition("t", 0).source.being_written


def test_looking_at_the_lock_does_not_take_it(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", LOG)
    with (tmp_path / ".lock").open("w") as file:
        LogDir(str(tmp_path))
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_another_spelling_of_a_partition_is_left_out(tmp_path: Path) -> None:
    write_log(tmp_path, "t-007", {0: [batch(0)]})
    assert LogDir(str(tmp_path)).partition("t", 7).log_end_offset == 2
    write_log(tmp_path, "t-7", {0: [batch(0), batch(2)]})
    log_dir = LogDir(str(tmp_path))
    assert log_dir.partition("t", 7).log_end_offset == 4
    (finding,) = log_dir.findings
    assert (finding.code, Path(finding.file).name) == ("foreign-directory", "t-007")


def test_a_segment_beside_partitions_belongs_to_none(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0)]})
    (tmp_path / f"{0:020d}.log").write_bytes(b"")
    log_dir = LogDir(str(tmp_path))
    assert log_dir.topic_partitions == [TopicPartition("t", 0)]
    assert [finding.code for finding in log_dir.findings] == ["foreign-file"]


def test_a_circular_link_affects_no_other_partition(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0)]})
    for name in ("t-1", "anything"):
        (tmp_path / name).symlink_to(name)
    log_dir = LogDir(str(tmp_path))
    assert log_dir.partition("t", 0).log_end_offset == 2
    with pytest.raises(LogDirError, match="t-1: Too many levels"):
        log_dir.partition("t", 1).log_end_offset  # noqa: B018
    assert [(each.severity, Path(each.file).name) for each in log_dir.findings] == [("note", "anything")]


def test_verify_continues_after_an_unreadable_partition(tmp_path: Path) -> None:
    for number in range(3):
        write_log(tmp_path, f"t-{number}", {0: [batch(0)]})
    (tmp_path / "t-1" / f"{0:020d}.log").unlink()
    (tmp_path / "t-1" / f"{0:020d}.log").mkdir()
    report = verify(LogDir(str(tmp_path)))
    assert (report.partitions, report.batches) == (3, 2)
    assert not report.is_complete
    (finding,) = [each for each in report.findings if each.code == "unreadable-partition"]
    assert Path(finding.file).name == "t-1"
    assert "is a directory, where a segment belongs" in finding.message
