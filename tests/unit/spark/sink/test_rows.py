"""Rows of Spark 4.0 become the Arrow batches that later versions give."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from pyspark.sql import Row

from tests.unit.spark.sink.sinks import columns
from txnkafka.spark.sink.rows import arrow_rows

SCHEMA = columns("key string, value binary, partition int, timestamp timestamp, headers headers")


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()


@pytest.mark.usefixtures("new_york")
def test_rows() -> None:
    header = Row(key="a", value=bytearray(b"1"))
    given = [
        Row(key="k", value=bytearray(b"v"), partition=1, timestamp=datetime(2026, 7, 1, 8), headers=[header]),
        Row(key=None, value=None, partition=None, timestamp=None, headers=None),
    ]
    (batch,) = arrow_rows(given, SCHEMA)
    first, second = batch.to_pylist()
    assert first == {
        "key": "k", "value": b"v", "partition": 1, "timestamp": datetime(2026, 7, 1, 12, tzinfo=UTC),
        "headers": [{"key": "a", "value": b"1"}],
    }  # fmt: skip
    assert set(second.values()) == {None}


def test_many_rows_come_in_several_batches() -> None:
    schema = columns("value string")
    batches = list(arrow_rows((Row(value=str(number)) for number in range(25_000)), schema))
    assert [batch.num_rows for batch in batches] == [10_000, 10_000, 5_000]
    assert batches[2].column("value")[4999].as_py() == "24999"
    assert list(arrow_rows([], schema)) == []
