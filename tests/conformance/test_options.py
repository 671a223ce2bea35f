"""Where an option exists in both, it means the same: the same rows, or both refuse."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.conformance.broker import KafkaBroker
from tests.conformance.options import SAME, STRICTER, Case
from tests.conformance.rows import LEVELS, rows_of_kafka, rows_of_txnkafka


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("case", SAME, ids=str)
def test_options(spark: SparkSession, kafka: KafkaBroker, case: Case, level: str) -> None:
    options = {**case.options, "kafka.isolation.level": level}
    if case.refused:
        for read in (rows_of_kafka, rows_of_txnkafka):
            with pytest.raises((PySparkException, Py4JJavaError)):
                read(spark, kafka, options)
        return
    expected = rows_of_kafka(spark, kafka, options)
    found = rows_of_txnkafka(spark, kafka, options)
    if case.rows is not None:
        assert sum(map(len, expected.values())) == case.rows
    assert {partition: [row.offset for row in rows] for partition, rows in found.items()} == {
        partition: [row.offset for row in rows] for partition, rows in expected.items()
    }
    assert found == expected


@pytest.mark.parametrize("case", STRICTER, ids=str)
def test_ours_says_what_is_not_there(spark: SparkSession, kafka: KafkaBroker, case: Case) -> None:
    assert sum(map(len, rows_of_kafka(spark, kafka, case.options).values())) == case.rows
    with pytest.raises(PySparkException):
        rows_of_txnkafka(spark, kafka, case.options)
