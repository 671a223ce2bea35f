"""``export`` of every golden directory: the records that the Java consumer got, in files that other libraries
read."""

from __future__ import annotations

import heapq
import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner

from tests.golden.cases import Case
from tests.golden.damage import DAMAGED, TABLE, Row
from tests.golden.directories import each_level
from tests.golden.test_cli_cat import UNBROKEN, rows_of
from txnkafka import TimestampType
from txnkafka.cli.main import cli
from txnkafka.env import LocalDataFiles
from txnkafka.env.data_files import LocalDataFile

Json = Any


@pytest.fixture(autouse=True)
def _no_power_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables syncs, which would take most of the time."""
    monkeypatch.setattr(LocalDataFile, "sync", lambda file: None)
    monkeypatch.setattr(LocalDataFiles, "sync_directory", lambda files, path: None)


def run(directory: object, output: Path, *arguments: object) -> tuple[int, dict[str, Json]]:
    """Return exit status and summary."""
    command = ["export", directory, "--output", output, "--format", "json", *arguments]
    result = CliRunner().invoke(cli, list(map(str, command)), standalone_mode=False)
    assert result.exception is None, result.exception
    return result.return_value or 0, json.loads(result.stdout)


def parquet_rows(output: Path) -> list[Json]:
    """Return rows in the form of the expected lines, by partition and offset; no leader epochs."""
    options = {"partitioning": "hive", "partition_base_dir": str(output)}
    files = [ds.dataset(str(path), **options) for path in data_files(output)]
    return in_order([file.to_table().to_pylist() for file in files], line)


def data_files(output: Path) -> list[Path]:
    """Return the files that readers see; their names contain the partition and the first offset."""
    hidden = ("_", ".")
    return [
        path
        for path in sorted(output.rglob("*-*.*"))
        if not any(part.startswith(hidden) for part in path.relative_to(output).parts)
    ]


def in_order(files: list[list[Json]], line: Callable[[Json], Json]) -> list[Json]:
    """Return the rows of all files, each of one partition, in the order of the log."""
    for rows in files:
        keys = [(row["topic"], row["partition"], row["offset"]) for row in rows]
        assert keys == sorted(set(keys))
        assert len({key[:2] for key in keys}) == 1
    return [
        line(row)
        for row in heapq.merge(*files, key=lambda row: (row["topic"], row["partition"], row["offset"]))
    ]


def line(row: dict[str, Json]) -> dict[str, Json]:
    day = row["timestamp"].date().isoformat()
    # a record without a timestamp, which Kafka writes as -1, is dated the day before 1970
    assert row["date"] == day
    return {
        "topic": row["topic"],
        "partition": row["partition"],
        "offset": row["offset"],
        "timestamp": round(row["timestamp"].timestamp() * 1000),
        "timestamp_type": TimestampType(row["timestampType"]).label,
        "key": text(row["key"]),
        "value": text(row["value"]),
        "headers": [[header["key"], text(header["value"])] for header in row["headers"]],
    }


def text(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()


def expected_rows(case: Case, isolation_level: str, topics: list[str]) -> list[Json]:
    return [
        {name: value for name, value in row.items() if name != "leader_epoch"}
        for partition in case.partitions()
        if partition.topic in topics
        for row in rows_of(partition, case.expected_records(partition, isolation_level))
    ]


@each_level
@pytest.mark.parametrize(("case", "directory"), UNBROKEN)
def test_parquet(case: Case, directory: Path, isolation_level: str, tmp_path: Path) -> None:
    topics = {partition.topic for partition in case.partitions()}
    own = [topic for topic in topics if not topic.startswith("__")]
    level = ("--isolation-level", isolation_level)
    status, summary = run(directory, tmp_path, "--to", "parquet", "--file-bytes", 4000, *level)
    assert status == 0
    expected = expected_rows(case, isolation_level, own or list(topics))
    found = parquet_rows(tmp_path)
    assert found == expected
    assert summary["rows"] == len(expected)


@each_level
@pytest.mark.parametrize("row", TABLE, ids=str)
def test_broken_directories(row: Row, isolation_level: str, tmp_path: Path) -> None:
    chosen = ("--topic", DAMAGED.topic, "--partition", 0, "--isolation-level", isolation_level)
    for choice, expected in (("stop", row.answer.records), ("skip", row.answer.records_around)):
        output = tmp_path / choice
        arguments = (*chosen, "--to", "jsonl", "--encoding", "base64", "--on-corrupt", choice)
        first = run(row.path, output, *arguments, "--file-bytes", 1)
        files = [path.read_text().splitlines() for path in data_files(output)]
        lines = in_order([list(map(json.loads, file)) for file in files], dict)
        assert lines == rows_of(DAMAGED, expected(isolation_level))
        status, summary = first
        if row.answer.meets_damage(isolation_level):
            assert status == 1
        # a finished export stays as it is and still reports what was wrong
        assert run(row.path, output, *arguments, "--file-bytes", 1) == (status, summary | {"new_rows": 0})
