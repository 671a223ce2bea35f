"""A log that is truncated or overwritten while it is read: mapped reads and ``pread`` return the same records
and the same error, and the process survives.

Files are mapped with ``io="mmap"``. Changes inside of a chunk are tested by wrapping header scan, checksums
and decoder, so that the file changes before or after one of their calls.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.conftest import sampled
from tests.models.builder import Batch, PlainRecord, legacy_entry
from tests.unit.logdir.logs import batch, partition, write_log
from txnkafka import CorruptRecordError, LogDir
from txnkafka.logdir import PartitionView, log_end
from txnkafka.logdir.verify import log as verify_log
from txnkafka.logdir.verify import verify
from txnkafka.record import chunk
from txnkafka.record.arrow import arrow_schema
from txnkafka.record.compression import Decompressor
from txnkafka.spark.plan import ReadTask
from txnkafka.spark.read import TaskReader
from txnkafka.storage.formats import segment_reader

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
BATCHES, COUNT = 40, 60
SMALL = 4 << 10  # size of windows and chunks, so that there are many


def log_of(kind: str) -> list[bytes]:
    if kind == "legacy":
        return [legacy_entry(i, b"k", b"%d" % i * 50, magic=1) for i in range(BATCHES * COUNT)]
    return [batch(COUNT * i, COUNT, codec=CODECS[kind]) for i in range(BATCHES)]


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_reader, "MAPPED_WINDOW_BYTES", SMALL)
    monkeypatch.setattr(segment_reader.LogFileReader, "_window_bytes", property(lambda _: SMALL))
    init = chunk.ChunkDecoder.__init__

    def small(self: chunk.ChunkDecoder, **options: Any) -> None:
        init(self, **options | {"chunk_bytes": SMALL})

    monkeypatch.setattr(chunk.ChunkDecoder, "__init__", small)


class Log:
    """Partition t-0 with two segments; the first one changes."""

    def __init__(self, root: Path, kind: str, io: str) -> None:
        self.batches = log_of(kind)
        end = BATCHES * COUNT
        write_log(root, "t-0", {0: self.batches, end: [batch(end)]})
        (root / ".kafka_cleanshutdown").write_bytes(b'{"version":0,"brokerEpoch":1}')
        self.path = root / "t-0" / f"{0:020d}.log"
        self.log_dir = LogDir(str(root), io=io, threads=1)

    def view(self) -> PartitionView:
        return self.log_dir.partition("t", 0)

    def cut(self, share: float) -> None:
        """Truncate the first segment in the middle of a batch."""
        os.truncate(self.path, int(self.path.stat().st_size * share))


Outcome = tuple[list[Any], str | None, int | None]


def outcome(offsets: Iterator[Any]) -> Outcome:
    """Return the offsets, and the error after them."""
    found: list[Any] = []
    try:
        for offset in offsets:
            found.append(offset)
    except CorruptRecordError as error:
        return found, error.reason, error.position if error.file else None
    return found, None, None


def by_records(view: PartitionView) -> Iterator[int]:
    for record in view.records():
        assert record.value is not None
        assert record.value.startswith(str(record.offset).encode())
        yield record.offset


def by_columns(view: PartitionView) -> Iterator[int]:
    for columns in view.read():
        yield from memoryview(columns.offsets).tolist()


def by_arrow(view: PartitionView) -> Iterator[int]:
    for arrow in view.arrow_batches(["offset", "value"]):
        yield from arrow.column("offset").to_pylist()


def by_spark(view: PartitionView) -> Iterator[int]:
    """Read as a Spark task does."""
    read = TaskReader(arrow_schema(["offset", "value"]))
    for found in read([ReadTask(tuple(view.plan()), view.source.mapped)]):
        yield from found.column("offset").to_pylist()


WAYS = {"records": by_records, "read": by_columns, "arrow": by_arrow, "spark": by_spark}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [*CODECS, "legacy"])
@pytest.mark.parametrize("share", sampled([0, 0.3, 0.77], every=3, first=1))
def test_between_chunks(tmp_path: Path, way: str, kind: str, share: float) -> None:
    found = {}
    for io in ("mmap", "pread"):
        log = Log(tmp_path / io, kind, io)
        offsets = WAYS[way](log.view())
        first = next(offsets)
        log.cut(share)
        found[io] = outcome(offsets)
        assert first == 0
    mapped, read = found["mmap"], found["pread"]
    if kind in CODECS and kind != "none":
        # a window has several chunks: a buffer keeps them, a mapping loses those that are no longer in the
        # file
        assert mapped[0] == read[0][: len(mapped[0])]
        assert len(mapped[0]) + 1 >= sum(range_of(log, kind, log.path.stat().st_size))
    else:
        assert mapped == read
    for reason in (mapped[1], read[1]):
        assert reason is not None
        assert reason.startswith("the file is not what it was when the read was planned: ")


def after(call: Callable[..., Any], number: int, then: Callable[[], None]) -> Callable[..., Any]:
    """Return the function wrapped: after its ``number``-th call ``then`` is called."""
    calls = 0

    def wrapped(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        result = call(*arguments, **options)
        calls += 1
        if calls == number:
            then()
        return result

    return wrapped


def before(call: Callable[..., Any], number: int, then: Callable[[], None]) -> Callable[..., Any]:
    calls = 0

    def wrapped(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            then()
        return call(*arguments, **options)

    return wrapped


SEAMS: dict[str, list[tuple[Any, str, Callable[..., Any]]]] = {
    "none": [
        (segment_reader, "scan", after),
        (chunk, "decode_batches", before),
        (chunk, "decode_batches", after),
    ],
    "zstd": [
        (segment_reader, "scan", after),
        (Decompressor, "append_batches", before),
        (Decompressor, "append_batches", after),
        (chunk, "decode_regions", after),
    ],
    "legacy": [(chunk, "decode_legacy", before), (chunk, "decode_legacy", after)],
}


@pytest.mark.parametrize("share", [0, 0.5, 0.9])
@pytest.mark.parametrize(
    ("kind", "seam"),
    [
        pytest.param(kind, seam, id=f"{kind}-{seam[1]}-{number}")
        for kind, seams in SEAMS.items()
        for number, seam in enumerate(seams)
    ],
)
def test_inside_of_a_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, seam: tuple[Any, str, Any], share: float
) -> None:
    """The records are those of the file, complete and in order up to the error; none is made of zeros or of
    other bytes."""
    module, name, when = seam
    log = Log(tmp_path, kind, "mmap")
    view = log.view()
    units = view.plan()
    monkeypatch.setattr(module, name, when(getattr(module, name), 3, lambda: log.cut(share)))
    monkeypatch.setattr(view, "plan", lambda **_: units)
    offsets, reason, position = outcome(by_records(view))
    whole = int(log.path.stat().st_size)
    assert offsets == list(range(len(offsets)))
    assert reason is not None
    assert "the file is not what it was when the read was planned" in reason
    assert position is not None
    # all records are returned that the file still has, and those read before it was truncated
    assert len(offsets) >= sum(range_of(log, kind, whole))
    assert len(offsets) < BATCHES * COUNT


def range_of(log: Log, kind: str, size: int) -> Iterator[int]:
    """Yield the number of records of each whole batch in the first ``size`` bytes."""
    position = 0
    for each in log.batches:
        position += len(each)
        if position <= size:
            yield 1 if kind == "legacy" else COUNT


@pytest.mark.parametrize("kind", ["none", "zstd", "legacy"])
def test_bytes_written_over_the_log_are_not_mixed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Between the checksum of a batch and its records the file is overwritten by another log."""
    log = Log(tmp_path, kind, "mmap")
    other = b"".join(legacy_entry(i, b"k", b"x" * 60, magic=1) for i in range(3 * COUNT * BATCHES))
    view = log.view()
    units = view.plan()
    name = {"none": "decode_batches", "zstd": "decode_regions", "legacy": "decode_legacy"}[kind]

    def overwrite() -> None:
        with log.path.open("r+b") as file:
            file.write(other[: log.path.stat().st_size])

    monkeypatch.setattr(chunk, name, after(getattr(chunk, name), 3, overwrite))
    monkeypatch.setattr(view, "plan", lambda **_: units)
    offsets, reason, _ = outcome(by_records(view))  # compares each value with its offset
    assert offsets == list(range(len(offsets)))
    assert reason is not None


def random_batch(number: int, seed: int) -> bytes:
    """Encode incompressible values: the batch has the same size for any seed."""
    values = Random(seed + number)
    records = [PlainRecord(None, values.randbytes(200), 1) for _ in range(10)]
    return Batch(records=records, base_offset=10 * number, codec=CODECS["zstd"]).encode()


def test_batches_exchanged_after_their_checksums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other batches are valid, too, but their checksums were not checked."""
    batches, others = [[random_batch(i, seed) for i in range(20)] for seed in (0, 1000)]
    assert list(map(len, batches)) == list(map(len, others))
    view = partition(tmp_path, {0: batches, 200: [batch(200)]}, io="mmap")
    path = Path(view.segments[0].path)
    wanted = [record.value for record in view.records()]

    def exchange() -> None:
        with path.open("r+b") as file:
            file.write(b"".join(others))

    monkeypatch.setattr(Decompressor, "append_batches", after(Decompressor.append_batches, 2, exchange))
    found, reason, _ = outcome(record.value for record in view.records())
    assert reason == "the CRC of the batch does not match its bytes"
    assert found
    assert found == wanted[: len(found)]


def test_skipping_damage_does_not_skip_what_is_gone(tmp_path: Path) -> None:
    found = {}
    for io in ("mmap", "pread"):
        log = Log(tmp_path / io, "none", io)
        left_out: list[CorruptRecordError] = []
        records = log.view().records(on_corrupt=left_out.append)
        next(records)
        log.cut(0.5)
        with pytest.raises(
            CorruptRecordError, match="is not what it was when the read was planned"
        ) as caught:
            list(records)
        found[io] = (len(left_out), caught.value.position)
    assert found["mmap"] == found["pread"]


@pytest.mark.parametrize("kind", ["none", "zstd", "legacy"])
@pytest.mark.parametrize("level", ["header", "crc", "records"])
@pytest.mark.parametrize("share", [0, 0.5])
def test_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, level: str, share: float) -> None:
    log = Log(tmp_path, kind, "mmap")
    log.path.with_name(f"{BATCHES * COUNT:020d}.log").unlink()  # so the file that changes is the last one
    monkeypatch.setattr(segment_reader, "scan", after(segment_reader.scan, 3, lambda: log.cut(share)))
    report = verify(log.log_dir, level=level)
    codes = [finding.code for finding in report.findings if finding.file == str(log.path)]
    assert "torn-tail" in codes
    assert "corrupt-batch" not in codes
    assert "corrupt-tail" not in codes


def test_verify_of_a_file_cut_on_a_boundary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for io in ("mmap", "pread"):
        log = Log(tmp_path / io, "none", io)
        log.path.with_name(f"{BATCHES * COUNT:020d}.log").unlink()
        end = sum(map(len, log.batches[:20]))
        cut = after(segment_reader.scan, 2, lambda log=log, end=end: os.truncate(log.path, end))
        with monkeypatch.context() as patches:
            patches.setattr(segment_reader, "scan", cut)
            report = verify(log.log_dir)
        (found,) = [each for each in report.findings if each.code == "torn-tail"]
        assert found.position == end
        assert "the file became shorter while it was read" in found.message


def test_the_end_of_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of recovery read bytes, too."""
    log = Log(tmp_path, "none", "mmap")
    log.path.with_name(f"{BATCHES * COUNT:020d}.log").unlink()
    (tmp_path / ".kafka_cleanshutdown").unlink()
    view = LogDir(str(tmp_path), io="mmap").partition("t", 0)
    end = sum(map(len, log.batches[:20]))
    cut = before(log_end.first_bad, 2, lambda: os.truncate(log.path, end))
    monkeypatch.setattr(log_end, "first_bad", cut)
    assert view.log_end_offset == 20 * COUNT
    (finding,) = view.findings
    assert (finding.code, finding.position) == ("torn-tail", end)
    assert "the file became shorter while it was read" in finding.message


@pytest.mark.parametrize("io", ["mmap", "pread"])
@pytest.mark.parametrize("kept", [0, 1, 20])
def test_a_closed_segment_cut_between_two_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, io: str, kept: int
) -> None:
    """Before its first window is read, or between two windows: missing batches are an error."""
    log = Log(tmp_path, "none", io)
    end = sum(map(len, log.batches[:kept]))
    if kept:
        cut = after(segment_reader.scan, 2, lambda: os.truncate(log.path, end))
        monkeypatch.setattr(segment_reader, "scan", cut)
        view = log.view()
    else:
        view = log.view()
        assert view.files.segments[0].size
        os.truncate(log.path, 0)
    offsets, reason, position = outcome(by_records(view))
    assert offsets == list(range(len(offsets)))
    assert reason is not None
    assert "became shorter" in reason
    assert position is not None
    assert position >= end


def test_the_way_around_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(tmp_path, "none", "mmap")
    segment = log.view().files.segments[0]
    segment.mapped = True
    position = len(log.batches[0])
    assert verify_log._sound_batch_at(segment, position)
    cut = before(verify_log.check_crcs, 1, lambda: os.truncate(log.path, position + 70))
    monkeypatch.setattr(verify_log, "check_crcs", cut)
    assert not verify_log._sound_batch_at(segment, position)


def test_truncated_over_and_over(tmp_path: Path) -> None:
    """One thread truncates and rewrites the file while another reads it."""
    log = Log(tmp_path, "none", "mmap")
    content = log.path.read_bytes()
    stop = threading.Event()

    def hammer() -> None:
        share = 0
        while not stop.is_set():
            share = (share + 7) % 100
            os.truncate(log.path, len(content) * share // 100)
            log.path.write_bytes(content)

    thread = threading.Thread(target=hammer)
    thread.start()
    try:
        for _ in range(60):
            offsets, _, _ = outcome(by_records(log.view()))
            first = offsets[0] if offsets else 0
            assert offsets == list(range(first, first + len(offsets)))
            verify(log.log_dir, level="records")
    finally:
        stop.set()
        thread.join()
