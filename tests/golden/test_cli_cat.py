"""``txnkafka cat`` of every golden directory: the same records as from the library, as lines of JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from tests.golden.cases import Case, cases
from tests.golden.damage import DAMAGED, TABLE, Row
from tests.golden.directories import each_level
from txnkafka.cli.main import cli

Json = Any

UNBROKEN = [
    pytest.param(case, directory, id=f"{case.name}/{directory.name}")
    for case in cases()
    if case.damage is None
    for directory in (case.logs, case.recovered)
    if directory is not None
]


def cat(*arguments: object) -> tuple[int, list[dict[str, Json]]]:
    """Return exit status and rows of one run."""
    wanted = ["cat", "--format", "jsonl", "--encoding", "base64", *map(str, arguments)]
    result = CliRunner().invoke(cli, wanted, standalone_mode=False)
    assert result.exception is None, result.exception
    return result.return_value or 0, [json.loads(line) for line in result.stdout_bytes.splitlines()]


def rows_of(partition: tuple[str, int], records: list[dict[str, Json]]) -> list[dict[str, Json]]:
    topic, number = partition
    return [{"topic": topic, "partition": number} | record for record in records]


@each_level
@pytest.mark.parametrize(("case", "directory"), UNBROKEN)
def test_all_partitions_of_a_directory(case: Case, directory: Json, isolation_level: str) -> None:
    topics = sorted({topic for topic, _ in case.partitions()})  # Kafka's own are read when they are named
    named = [option for topic in topics for option in ("--topic", topic)]
    status, found = cat(directory, "--isolation-level", isolation_level, *named)
    assert status == 0
    for partition in case.partitions():
        expected = rows_of(partition, case.expected_records(partition, isolation_level))
        assert [row for row in found if (row["topic"], row["partition"]) == partition] == expected
    order = [(row["topic"], row["partition"], row["offset"]) for row in found]
    assert order == sorted(order, key=lambda each: (each[0].startswith("__"), each))


@each_level
@pytest.mark.parametrize("row", TABLE, ids=str)
def test_broken_directories(row: Row, isolation_level: str) -> None:
    partition = ("--topic", DAMAGED.topic, "--partition", DAMAGED.partition)
    status, found = cat(row.path, *partition, "--isolation-level", isolation_level)
    assert found == rows_of(DAMAGED, row.answer.records(isolation_level))
    if row.answer.meets_damage(isolation_level):
        assert status == 1
    status, found = cat(row.path, *partition, "--isolation-level", isolation_level, "--on-corrupt", "skip")
    assert found == rows_of(DAMAGED, row.answer.records_around(isolation_level))
    if row.answer.meets_damage(isolation_level):
        assert status == 1
