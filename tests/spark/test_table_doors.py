"""``table`` and ``option("table", …)``: the same rows, narrower schemas, and refused arguments."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from tests.golden.cases import case
from tests.spark.half_directory import STATES, write_halves
from txnkafka import LogDir, TopicPartition
from txnkafka.spark import table
from txnkafka.spark.tables import TABLES


@pytest.mark.parametrize("name", list(TABLES))
def test_both_doors_give_the_same_rows(spark: SparkSession, name: str) -> None:
    path = str(case("coordinator_logs").recovered or case("coordinator_logs").logs)
    frame = table(spark, name, path)
    source = spark.read.format("txnkafka").option("table", name).load(path)
    assert source.schema == frame.schema == TABLES[name].schema()
    found = frame.collect()
    assert source.collect() == found
    assert found or name in ("findings", "halves")  # no findings and no check-back in that directory


def test_halves_through_both_doors(spark: SparkSession, tmp_path: Path) -> None:
    write_halves(tmp_path)
    found = table(spark, "halves", tmp_path).collect()
    source = spark.read.format("txnkafka").option("table", "halves").load(str(tmp_path))
    assert source.collect() == found
    assert {row.transactionId: row.state for row in found} == STATES
    (committed,) = (row for row in found if row.transactionId == "committed")
    assert [tuple(each) for each in committed.targets] == [("orders", 0, 1), ("orders", 1, 2)]
    narrow = source.select("state").groupBy("state").count()
    assert {row.state: row["count"] for row in narrow.collect()} == Counter(STATES.values())


def test_columns_may_be_left_out_and_null_is_not_allowed_where_it_may_be(spark: SparkSession) -> None:
    reader = spark.read.format("txnkafka").option("table", "batches")
    path = str(case("interleaved").logs)
    frame = reader.schema("visible boolean, baseOffset bigint NOT NULL").load(path)
    assert frame.columns == ["visible", "baseOffset"]
    assert frame.where("visible").count() > 0
    for schema, message in (
        ("outcom string", "unknown column outcom: did you mean outcome?"),
        ("outcome string NOT NULL", "column outcome may contain nulls"),
        ("baseOffset int", "column baseOffset is bigint, not int"),
    ):
        with pytest.raises(PySparkException) as caught:
            reader.schema(schema).load(path).collect()
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "batch"}, "unknown table batch: did you mean batches?"),
        ({"table": "offsets", "subscribe": "a"}, "option subscribe does not apply to table=offsets"),
        (
            {"table": "transactions", "isolation.level": "read_committed"},
            "does not apply to table=transactions",
        ),
    ],
)
def test_what_means_nothing_is_refused(spark: SparkSession, options: dict[str, str], message: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        spark.read.format("txnkafka").options(**options).load(str(case("interleaved").logs))
    assert message in str(caught.value)


def test_transactions_of_some_offsets_are_returned_whole(spark: SparkSession) -> None:
    path, partition = str(case("interleaved").logs), TopicPartition("orders", 0)
    bounds: dict[str, Any] = {
        "assign": {"orders": [0]},
        "starting_offsets": {"orders": {0: 10}},
        "ending_offsets": {"orders": {0: 20}},
    }
    found = table(spark, "transactions", path, **bounds).collect()
    whole = LogDir(path).partition(*partition).transactions()
    expected = [each for each in whole if each.first_offset < 20 and each.last_offset >= 10]
    assert [(row.firstOffset, row.records) for row in found] == [
        (each.first_offset, each.records) for each in expected
    ]
    assert any(row.firstOffset < 10 for row in found)
