"""Remote files: as few requests as possible, and clear errors for any answer."""

from __future__ import annotations

import os
import pickle
import tracemalloc
import warnings
from concurrent.futures import Future
from pathlib import Path

import pytest

from tests.unit.env.bucket import Bucket
from tests.unit.logdir.logs import batch, write_log
from txnkafka import CorruptRecordError, LogDir, LogDirError
from txnkafka.env.remote import RemoteFileSystem
from txnkafka.env.remote_file import RemoteFile
from txnkafka.logdir import SegmentReader
from txnkafka.logdir.verify import verify

SEGMENTS = {0: [batch(0), batch(2)], 4: [batch(4)]}
ADDRESS = "bucket://logs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a log directory with three partitions of two segments."""
    for number in range(3):
        path = write_log(tmp_path / "data", f"t-{number}", SEGMENTS)
        (path / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg")
    (tmp_path / "data" / "log-start-offset-checkpoint").write_text("0\n1\nt 1 3\n")
    return tmp_path / "data"


@pytest.fixture
def log_dir(folder: Path) -> LogDir:
    Bucket.install(folder)
    return LogDir(ADDRESS)


def offsets(log_dir: LogDir, partition: int = 0) -> list[int]:
    return [record.offset for record in log_dir.partition("t", partition).records()]


def test_a_log_directory_opens_with_three_requests(log_dir: LogDir) -> None:
    assert Bucket.counted() == {"ls": 1, "find": 1, "cat_ranges": 1}
    assert log_dir.topics["t"].topic_id == "AAAAAAAAAAEAAAAAAAAAAg"
    assert [each.log_start_offset for each in log_dir.partitions()] == [0, 3, 0]
    assert Bucket.counted() == {"cat_file": 3}  # the last segments, to find the log ends


def test_segments_are_read_once_for_the_plan_and_once_for_the_records(log_dir: LogDir) -> None:
    Bucket.counted()
    assert offsets(log_dir) == [0, 1, 2, 3, 4, 5]
    assert Bucket.counted() == {"cat_file": 4}


def test_a_partition_alone_asks_its_parent_too(folder: Path) -> None:
    Bucket.install(folder)
    assert offsets(LogDir(f"{ADDRESS}/t-1"), 1) == [3, 4, 5]
    counted = Bucket.counted()
    assert counted.pop("cat_file") == 6  # its metadata, a checkpoint, the segments
    assert counted == {"ls": 2}


def test_a_single_segment(folder: Path) -> None:
    Bucket.install(folder)
    assert offsets(LogDir(f"{ADDRESS}/t-0/{4:020}.log")) == [4, 5]


def test_an_unreadable_parent_is_a_finding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Bucket.install(folder)
    whole = Bucket.ls

    def ls(self: Bucket, path: str, detail: bool = True) -> object:
        if path == "/logs":
            raise PermissionError("not for you")
        return whole(self, path, detail)

    monkeypatch.setattr(Bucket, "ls", ls)
    log_dir = LogDir(f"{ADDRESS}/t-1")
    assert offsets(log_dir, 1) == [0, 1, 2, 3, 4, 5]
    assert {finding.code for finding in log_dir.findings} == {"bad-checkpoint"}
    assert "permission denied" in log_dir.findings[0].message
    with pytest.raises(LogDirError, match=r"cannot list bucket://logs: permission denied .*not for you"):
        LogDir(ADDRESS)


def test_a_directory_is_listed_once(log_dir: LogDir) -> None:
    Bucket().pipe("/logs/t-0/00000000000000000006.log", batch(6))
    Bucket().pipe("/logs/t-3/00000000000000000000.log", batch(0))
    assert offsets(log_dir) == [0, 1, 2, 3, 4, 5]
    assert offsets(LogDir(ADDRESS)) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert len(LogDir(ADDRESS).topic_partitions) == 4


def test_objects_in_the_place_of_directories_are_no_files(folder: Path) -> None:
    Bucket.install(folder)
    for name in ("/logs/", "/logs/t-0/"):
        Bucket.store[name] = type(Bucket.store[f"/logs/t-0/{0:020}.log"])(Bucket(), name, b"")
    assert offsets(LogDir(ADDRESS)) == [0, 1, 2, 3, 4, 5]
    assert offsets(LogDir(f"{ADDRESS}/t-0")) == [0, 1, 2, 3, 4, 5]


def test_files_are_not_mapped(log_dir: LogDir) -> None:
    with pytest.raises(LogDirError, match="bucket://logs cannot be mapped into memory: io must be auto or"):
        LogDir(ADDRESS, io="mmap")
    assert offsets(LogDir(ADDRESS, io="pread")) == offsets(log_dir)


# Windows


class Requests:
    """Answers each request when its content is used, and records the requested ranges in order."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.ranges: list[tuple[int, int]] = []

    def __call__(self, start: int, end: int) -> Future[bytes]:
        self.ranges.append((start, end))
        answer: Future[bytes] = Future()
        answer.set_result(self.content[start:end])
        return answer


def test_each_byte_is_fetched_once_and_ahead() -> None:
    content = bytes(i * i % 251 for i in range(1000))
    requests = Requests(content)
    file = RemoteFile(requests, len(content))
    buffer, position = bytearray(100), 0
    while position < len(content):
        found = file.read_into(memoryview(buffer), position)
        assert buffer[:found] == content[position : position + found]
        read_before = requests.ranges[-1][1]
        file.read_ahead(position + found, min(100, len(content) - position - found))
        if position + found < len(content):
            assert requests.ranges[-1][1] > read_before  # the next window is already requested
        position += found if position + found == len(content) else found - 7  # windows overlap
    assert [start for start, _ in requests.ranges] == [0, *(end for _, end in requests.ranges[:-1])]
    assert len(requests.ranges) == 11


def test_a_window_may_be_larger_and_anywhere() -> None:
    requests = Requests(bytes(range(200)))
    file = RemoteFile(requests, 200)
    buffer = memoryview(bytearray(200))
    wanted = [(0, 50), (20, 100), (60, 9), (10, 20), (190, 30), (200, 5)]
    for position, length in wanted:
        expected = min(length, 200 - position)
        assert file.read_into(buffer[:length], position) == expected
        assert bytes(buffer[:expected]) == bytes(range(position, position + expected))
    assert requests.ranges == [(0, 50), (50, 120), (10, 30), (190, 200)]


def test_a_segment_is_a_request_for_each_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan makes one request per window, and one request is always in flight, however slow they are."""
    batches = [batch(2 * i) for i in range(100)]
    write_log(tmp_path, "t-0", {0: batches})
    Bucket.install(tmp_path)
    size = sum(map(len, batches))
    window = size // 10 + 1
    monkeypatch.setattr(RemoteFileSystem, "window_bytes", window)
    segment = SegmentReader(RemoteFileSystem(ADDRESS), 0, {"log": f"{ADDRESS}/t-0/{0:020}.log"}, size)
    assert len(segment.scan()) == 100
    ranges = [request[2:] for request in Bucket.requests if request[0] == "cat_file"]
    assert len(ranges) <= 11
    assert [start for start, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == size


def test_the_next_window_is_asked_for_before_one_is_looked_at(
    log_dir: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RemoteFileSystem, "window_bytes", 100)
    segment = log_dir.partition("t", 0).files.segments[0]
    Bucket.counted()
    next(segment.windows())
    log_dir.file_system.is_directory(f"{ADDRESS}/elsewhere")  # after all other requests in the thread
    assert Bucket.counted() == {"cat_file": 2, "ls": 1}


@pytest.mark.slow
def test_memory_is_that_of_two_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many segments may be open at once; only the index of each stays in memory."""
    large = {1000 * i: [batch(1000 * i, 1000)] for i in range(40)}
    write_log(tmp_path, "t-0", large)
    Bucket.install(tmp_path)
    size = len(large[0][0])
    monkeypatch.setattr(RemoteFileSystem, "window_bytes", 1 << 20)
    view = LogDir(ADDRESS).partition("t", 0)
    view.plan()
    tracemalloc.start()
    try:
        for segment in view.segments:
            segment._index = None
            segment.scan()
        assert tracemalloc.get_traced_memory()[0] < 5 * size
    finally:
        tracemalloc.stop()


# Failures


def fail_at(file: str, position: int) -> object:
    """Return an answer that breaks off in the middle of one file."""

    def answer(path: str, start: int, content: bytes) -> bytes:
        if path.endswith(file) and start <= position < start + len(content):
            raise ConnectionResetError("the other end went away")
        return content

    return answer


def test_an_error_in_the_middle_names_the_file(log_dir: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RemoteFileSystem, "window_bytes", 100)
    view = log_dir.partition("t", 0)
    view.plan()
    Bucket.answer = fail_at(f"/t-0/{0:020}.log", 120)
    found = []
    with pytest.raises(LogDirError, match=rf"cannot read {ADDRESS}/t-0/{0:020}.log: .*the other end went"):
        found.extend(record.offset for record in view.records())
    assert found == [0, 1]
    Bucket.answer = None
    assert [record.offset for record in view.records()] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("change", [-1, 5])
def test_an_answer_of_the_wrong_length_is_an_error(log_dir: LogDir, change: int) -> None:
    Bucket.answer = lambda path, start, content: content[:change] if change < 0 else content + bytes(change)
    with pytest.raises(LogDirError, match=r"cannot read bucket.*\d+ bytes received for 0 to \d+"):
        offsets(log_dir)


def test_a_file_that_vanished(log_dir: LogDir) -> None:
    Bucket().rm(f"/logs/t-0/{0:020}.log")
    with pytest.raises(LogDirError, match=rf"cannot read {ADDRESS}/t-0/{0:020}.log: does not exist"):
        offsets(log_dir)
    report = verify(log_dir)
    assert [(each.code, each.file) for each in report.findings if each.severity == "error"] == [
        ("unreadable-file", f"{ADDRESS}/t-0/{0:020}.log")
    ]


def test_a_file_that_became_shorter_since_it_was_planned(log_dir: LogDir) -> None:
    (unit, *_) = log_dir.partition("t", 0).plan()
    whole = Bucket().cat_file("/logs/" + unit.path.removeprefix(ADDRESS + "/"))
    Bucket().pipe("/logs/" + unit.path.removeprefix(ADDRESS + "/"), whole[:-5])
    from txnkafka.logdir import open_unit, read_unit
    from txnkafka.record.chunk import ChunkDecoder

    segment = open_unit(RemoteFileSystem(ADDRESS), unit)
    with pytest.raises(CorruptRecordError, match="the file is not what it was when the read was planned"):
        list(read_unit(segment, unit, ChunkDecoder()))


def test_every_error_of_a_backend_becomes_an_error_of_the_library(
    log_dir: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(Bucket, "cat_file", broken)
    with pytest.raises(LogDirError, match=r"cannot read bucket.*RuntimeError: boom"):
        offsets(log_dir)
    monkeypatch.setattr(Bucket, "cat_ranges", broken)
    assert LogDir(ADDRESS).topics["t"].topic_id is None
    assert [finding.code for finding in LogDir(ADDRESS).findings] == ["bad-checkpoint"] * 4
    monkeypatch.setattr(Bucket, "find", broken)
    with pytest.raises(LogDirError, match="cannot list bucket://logs: RuntimeError: boom"):
        LogDir(ADDRESS)


# Other processes and threads


def test_an_unpickled_file_system_connects_again(log_dir: LogDir) -> None:
    again = pickle.loads(pickle.dumps(log_dir.file_system))
    path = f"{ADDRESS}/t-0/{0:020}.log"
    assert again.read(path, 1 << 20) == log_dir.file_system.read(path, 1 << 20)
    source = pickle.loads(pickle.dumps(log_dir.partition("t", 1).source))
    assert source.file_system.list(source.path) == log_dir.file_system.list(source.path)


@pytest.mark.process
def test_it_connects_again_after_a_fork(log_dir: LogDir) -> None:
    expected = offsets(log_dir)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork with threads
        child = os.fork()
    if not child:
        os._exit(0 if offsets(log_dir) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
