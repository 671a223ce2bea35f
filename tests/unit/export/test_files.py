"""Files of a unit: dates, names, row groups."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.models.builder import Batch, PlainRecord
from tests.unit.export.outputs import run_export, visible
from tests.unit.logdir.logs import batch, marker, write_log
from txnkafka import KafkaError
from txnkafka.export import files, unit
from txnkafka.record import filter as record_filter
from txnkafka.record.chunk import ChunkDecoder

DAY = 86_400_000
NO_UTF8 = os.fsdecode(b"caf\xe9-0")  # of a directory: no topic of Kafka's has such a name


def log_of(root: Path, timestamps: list[int], name: str = "t-0") -> Path:
    batches, size = [], 7
    for start in range(0, len(timestamps), size):
        records = [PlainRecord(b"k", b"v%d" % time, time) for time in timestamps[start : start + size]]
        batches.append(Batch(records=records, base_offset=start).encode())
    write_log(root, name, {0: batches})
    return root


def rows_of(output: Path, to: str) -> dict[str, list[tuple[int, int]]]:
    """Return offset and timestamp of each row by date, in the order of the file names."""
    found: dict[str, list[tuple[int, int]]] = {}
    for name, content in visible(output).items():
        day = Path(name).parts[1].removeprefix("date=")
        if to == "parquet":
            table = pq.ParquetFile(output / name).read()
            times = table["timestamp"].cast("int64").to_pylist()
            rows = list(zip(table["offset"].to_pylist(), times, strict=True))
        else:
            rows = [(row["offset"], row["timestamp"]) for row in map(json.loads, content.splitlines())]
        assert rows[0][0] == int(name.rpartition("/")[2].split(".")[0].split("-")[1])
        found.setdefault(day, []).extend(rows)
    return found


SCATTERED = [DAY * (5 + i * 3 % 7) + i for i in range(40)]
RUNS = [DAY * (5 + i // 9) + i for i in range(40)]


@pytest.mark.parametrize("to", ["parquet", "jsonl"])
@pytest.mark.parametrize("timestamps", [SCATTERED, RUNS], ids=["scattered", "runs"])
def test_each_row_is_in_the_file_of_its_date(tmp_path: Path, to: str, timestamps: list[int]) -> None:
    run_export(log_of(tmp_path / "data", timestamps), tmp_path / "out", to)
    expected: dict[str, list[tuple[int, int]]] = {}
    for offset, time in enumerate(timestamps):
        expected.setdefault(f"1970-01-{1 + time // DAY:02}", []).append((offset, time))
    assert rows_of(tmp_path / "out", to) == expected
    assert len(visible(tmp_path / "out")) == len(expected)


@pytest.mark.parametrize("to", ["parquet", "jsonl"])
def test_more_dates_than_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str) -> None:
    monkeypatch.setattr(files, "MAX_OPEN_FILES", 3)
    for module in (unit, record_filter):
        monkeypatch.setattr(module, "ChunkDecoder", partial(ChunkDecoder, chunk_bytes=1))
    run_export(log_of(tmp_path / "data", SCATTERED * 2), tmp_path / "out", to)
    found = [row for rows in rows_of(tmp_path / "out", to).values() for row in rows]
    assert sorted(found) == list(enumerate(SCATTERED * 2))
    assert len(visible(tmp_path / "out")) > 7


@pytest.mark.parametrize("to", ["parquet", "jsonl"])
def test_times_without_a_date(tmp_path: Path, to: str) -> None:
    times = [0, 1 << 62, -1, -(1 << 62), 253_402_300_799_999, 253_402_300_800_000]
    run_export(log_of(tmp_path / "data", times), tmp_path / "out", to)
    found = rows_of(tmp_path / "out", to)
    assert {day: sorted(offset for offset, _ in rows) for day, rows in found.items()} == {
        "1970-01-01": [0], "1969-12-31": [2], "9999-12-31": [4], "__HIVE_DEFAULT_PARTITION__": [1, 3, 5]
    }  # fmt: skip
    assert len(visible(tmp_path / "out")) == 4  # one file, whatever the days would be


def test_row_groups_are_written_when_they_are_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROW_GROUP_BYTES", 400)
    monkeypatch.setattr(record_filter, "ChunkDecoder", partial(ChunkDecoder, chunk_bytes=1))
    run_export(log_of(tmp_path / "data", RUNS), tmp_path / "out", "parquet", partition_by=("topic",))
    (name,) = visible(tmp_path / "out")
    written = pq.ParquetFile(tmp_path / "out" / name)
    assert 1 < written.metadata.num_row_groups < 6
    assert written.read()["offset"].to_pylist() == list(range(40))


@pytest.mark.parametrize("topic", ["_odd", ".odd", "a=b", "50%", "ü"])
def test_topics_whose_names_mean_something_in_a_path(tmp_path: Path, topic: str) -> None:
    log_of(tmp_path / "data", [DAY], f"{topic}-0")
    run_export(tmp_path / "data", tmp_path / "out", "parquet")
    table = ds.dataset(tmp_path / "out", partitioning="hive").to_table()
    assert (table.num_rows, table["topic"].to_pylist()) == (1, [topic])


@pytest.mark.parametrize("by", [("topic", "date"), ("date",), ()])
def test_a_topic_that_is_no_utf8_is_escaped_as_in_json(tmp_path: Path, by: tuple[str, ...]) -> None:
    for to in ("parquet", "jsonl"):
        run_export(log_of(tmp_path / "data", [DAY], NO_UTF8), tmp_path / to, to, partition_by=by)
    table = ds.dataset(tmp_path / "parquet", partitioning="hive").to_table()
    (line,) = visible(tmp_path / "jsonl").values()
    assert table["topic"].to_pylist() == [json.loads(line)["topic"]] == [r"caf\xe9"]


def test_columns_without_keys_and_values(tmp_path: Path) -> None:
    run_export(log_of(tmp_path / "data", RUNS), tmp_path / "out", "parquet", columns=("offset", "timestamp"))
    assert sum(len(rows) for rows in rows_of(tmp_path / "out", "parquet").values()) == 40


@pytest.mark.parametrize("file_bytes", [200, 1000, 4000, 1 << 20])
def test_files_have_the_size_that_was_asked_for(tmp_path: Path, file_bytes: int) -> None:
    small = {2 * i: [batch(2 * i)] for i in range(100)}
    large = {0: [batch(2 * i) for i in range(100)]}
    counts = []
    for name, segments in (("small", small), ("large", large), ("mixed", {**large, 200: [batch(200)]})):
        directory = write_log(tmp_path / name, "t-0", segments)
        size = sum(path.stat().st_size for path in directory.iterdir())
        report = run_export(tmp_path / name, tmp_path / f"{name}-out", file_bytes=file_bytes, partition_by=())
        assert report.rows == sum(len(batches) * 2 for batches in segments.values())
        assert size / (file_bytes * 1.125 + 100) <= report.files <= size / file_bytes + 1
        counts.append(report.files)
    assert counts[0] == pytest.approx(counts[1], abs=1 + counts[1] // 8)


def test_units_that_are_joined_read_the_same(tmp_path: Path) -> None:
    segments = {0: [batch(0), batch(2, transactional=True, producer_id=1, producer_epoch=0)]}
    segments[4] = [marker(4, "abort", 1), *[batch(i) for i in range(5, 45, 2)]]
    write_log(tmp_path / "data", "t-0", segments)
    rows = [
        b"".join(visible_of(tmp_path, file_bytes).values()).count(b"\n") for file_bytes in (1, 300, 1 << 20)
    ]
    assert rows == [42, 42, 42]


def visible_of(root: Path, file_bytes: int) -> dict[str, bytes]:
    output = root / f"out-{file_bytes}"
    run_export(root / "data", output, file_bytes=file_bytes)
    return visible(output)


@pytest.mark.parametrize("to", ["jsonl", "parquet"])
def test_where(tmp_path: Path, to: str) -> None:
    write_log(tmp_path / "data", "t-0", {0: [batch(0)], 2: [batch(2), batch(4)]})
    where = "offset >= 1 and value != '4'"
    report = run_export(tmp_path / "data", tmp_path / "out", to=to, where=where)
    assert report.rows == 4
    again = run_export(tmp_path / "data", tmp_path / "out", to=to, where="OFFSET >= 1 and not value = '4'")
    assert again.new_rows == 0
    with pytest.raises(KafkaError, match=r"where was \(offset >= 1\) and \(value != x'34'\), now true"):
        run_export(tmp_path / "data", tmp_path / "out", to=to)
