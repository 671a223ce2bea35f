"""Reading with several threads: the same records, errors and reports in the same order as with one thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from tests.models.builder import Batch as ModelBatch
from tests.models.builder import PlainRecord
from tests.unit.logdir.logs import batch, marker, write_log
from txnkafka import CorruptRecordError, LogDir
from txnkafka.env import thread_count
from txnkafka.errors import FileChangedError
from txnkafka.logdir import PartitionView, read_ahead
from txnkafka.record import chunk

LZ4, ZSTD = 3, 4
COUNT = 20


@pytest.fixture(autouse=True)
def _small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "AHEAD_UNIT_BYTES", 1 << 10)


def log_dir(root: Path, batches: list[bytes], *, threads: int, io: str = "auto") -> LogDir:
    if not (root / "t-0").exists():
        half = len(batches) // 2
        second = int.from_bytes(batches[half][:8], "big")
        write_log(root, "t-0", {0: batches[:half], second: batches[half:]})
        (root / ".kafka_cleanshutdown").write_bytes(b'{"version":0,"brokerEpoch":1}')
    return LogDir(str(root), io=io, threads=threads)


def compressed(number: int, codec: int = LZ4) -> list[bytes]:
    return [batch(COUNT * i, COUNT, codec=codec) for i in range(number)]


def flipped(data: bytes) -> bytes:
    """Return a batch whose CRC is wrong."""
    return data[:-1] + bytes([data[-1] ^ 1])


def read(view: PartitionView, **selection: object) -> Iterator[tuple[int, bytes | None]]:
    for record in view.records(**selection):  # type: ignore[arg-type]
        yield record.offset, record.value


Outcome = tuple[list[tuple[int, bytes | None]], list[str], str]


def outcome(root: Path, batches: list[bytes], threads: int, io: str, on_corrupt: str) -> Outcome:
    """Return the records, the reports of damage, and the error at the end."""
    reports: list[str] = []

    def report(error: CorruptRecordError) -> None:
        assert threading.current_thread() is threading.main_thread()
        reports.append(str(error))

    records: list[tuple[int, bytes | None]] = []
    try:
        view = log_dir(root, batches, threads=threads, io=io).partition("t", 0)
        records.extend(read(view, on_corrupt=report if on_corrupt == "report" else on_corrupt))
    except CorruptRecordError as error:
        return records, reports, str(error)
    return records, reports, ""


@pytest.mark.parametrize("io", ["mmap", "pread"])
@pytest.mark.parametrize("on_corrupt", ["stop", "report"])
@pytest.mark.parametrize("damaged", [(), (0,), (1, 2, 90), (57, 119)])
def test_threads_give_the_same_as_one(
    tmp_path: Path, damaged: tuple[int, ...], on_corrupt: str, io: str
) -> None:
    batches = compressed(120)
    for number in damaged:
        batches[number] = flipped(batches[number])
    expected = outcome(tmp_path, batches, 1, io, on_corrupt)
    assert len(expected[0]) == (120 - len(damaged)) * COUNT or damaged
    for threads in (2, 3, 5):
        assert outcome(tmp_path, batches, threads, io, on_corrupt) == expected


def test_aborted_and_mixed_batches(tmp_path: Path) -> None:
    random, batches, offset, first = Random(1), [], 0, {7: 0, 8: 0}
    for _ in range(200):
        producer, codec = random.choice((7, 8)), random.choice((0, 1, 2, LZ4, ZSTD))
        batches.append(
            batch(
                offset, 5, codec=codec, producer_id=producer, producer_epoch=0, base_sequence=first[producer],
                transactional=True,
            )
        )  # fmt: skip
        first[producer] += 5
        offset += 5
        if random.random() < 0.3:
            batches.append(marker(offset, random.choice(("commit", "abort")), producer))
            offset += 1
    expected = list(read(log_dir(tmp_path, batches, threads=1).partition("t", 0)))
    assert 0 < len(expected) < offset
    view = log_dir(tmp_path, batches, threads=3).partition("t", 0)
    assert list(read(view)) == expected
    assert list(read(view, where="offset > 400")) == [
        each for each in expected if each[0] > 400
    ]


def test_several_threads_decode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    decode = chunk.ChunkDecoder._decode_compressed

    def noted(self: chunk.ChunkDecoder, *arguments: object) -> object:
        seen.add(threading.current_thread().name)
        return decode(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(chunk.ChunkDecoder, "_decode_compressed", noted)
    assert len(list(read(log_dir(tmp_path, compressed(400), threads=2).partition("t", 0)))) == 400 * COUNT
    assert any(name.startswith("txnkafka-read") for name in seen)


@pytest.mark.parametrize("taken", [0, 1, 500])
def test_an_abandoned_read_ends_its_threads(tmp_path: Path, taken: int) -> None:
    records = read(log_dir(tmp_path, compressed(400), threads=4).partition("t", 0))
    assert len(list(islice(records, taken))) == taken
    records.close()  # type: ignore[attr-defined]
    assert not [each for each in threading.enumerate() if each.name.startswith("txnkafka-read")]


def test_a_kept_view_keeps_its_memory(tmp_path: Path) -> None:
    view = log_dir(tmp_path, compressed(300), threads=3).partition("t", 0)
    kept = [(columns.offsets, columns.value_data) for columns in view.read()]
    offsets = [offset for part, _ in kept for offset in part]
    assert offsets == list(range(300 * COUNT))
    assert b"".join(bytes(values) for _, values in kept) == b"".join(b"%d" % offset for offset in offsets)


def test_a_large_batch_is_decoded_in_the_thread_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several threads must not need the memory of a large batch at once."""
    large: list[str] = []
    decompress = chunk.ChunkDecoder._decompress

    def noted(self: chunk.ChunkDecoder, *arguments: object) -> object:
        regions = decompress(self, *arguments)  # type: ignore[arg-type]
        if regions[-1] - regions[-2] > self.piece_bytes:
            large.append(threading.current_thread().name)
        return regions

    monkeypatch.setattr(chunk.ChunkDecoder, "_decompress", noted)
    value = bytes(6 << 20)
    batches = compressed(100)
    for number in (3, 40, 41, 42):
        record = PlainRecord(b"k", value, 1000)
        batches[number] = ModelBatch(
            records=[record], base_offset=COUNT * number, codec=LZ4, last_offset_delta=COUNT - 1
        ).encode()
    expected = [offset for offset, _ in read(log_dir(tmp_path, batches, threads=1).partition("t", 0))]
    large.clear()
    found = [offset for offset, _ in read(log_dir(tmp_path, batches, threads=4).partition("t", 0))]
    assert found == expected
    assert large == ["MainThread"] * 4


@pytest.mark.parametrize("io", ["mmap", "pread"])
@pytest.mark.parametrize("share", [0, 0.4, 0.9])
def test_a_file_truncated_while_it_is_read(tmp_path: Path, io: str, share: float) -> None:
    """The records that come are a beginning of the log, and the loss of the others is an error."""
    view = log_dir(tmp_path, compressed(600), threads=3, io=io).partition("t", 0)
    records = read(view)
    found = [next(records)]
    second = view.segments[1].path
    os.truncate(second, int(os.path.getsize(second) * share))
    with pytest.raises(FileChangedError) as raised:
        found.extend(records)
    assert [offset for offset, _ in found] == list(range(len(found)))
    assert len(found) >= 300 * COUNT
    assert second in str(raised.value)


def test_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert thread_count() == 4
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {5}, raising=False)
    assert thread_count() == 1
    assert thread_count(9) == 9
    with pytest.raises(ValueError, match="threads must be at least 1, not 0"):
        thread_count(0)
    with pytest.raises(TypeError, match="threads must be an int, not '2'"):
        thread_count("2")  # type: ignore[arg-type]
