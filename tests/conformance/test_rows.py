"""Every record of every topic, in both isolation levels: what Spark's own Kafka source gets from the broker
is what ours reads from its directory, while the broker runs and when it is stopped.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.conformance.broker import KafkaBroker
from tests.conformance.rows import LEVELS, Rows, rows_of_kafka, rows_of_txnkafka
from tests.conformance.topics import PARTITIONS
from txnkafka import LogDir, TopicPartition

EMPTY = {TopicPartition("held", 2)}
HIDDEN = {TopicPartition("held", 1)}  # nothing is committed there


@pytest.fixture(scope="module", params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def expected(spark: SparkSession, kafka: KafkaBroker, level: str) -> Rows:
    found = rows_of_kafka(spark, kafka, {"kafka.isolation.level": level})
    there = {TopicPartition(topic, number) for topic, count in PARTITIONS.items() for number in range(count)}
    assert found.keys() == there - EMPTY - (HIDDEN if level == "read_committed" else set())
    return found


def test_while_the_broker_runs(spark: SparkSession, kafka: KafkaBroker, expected: Rows, level: str) -> None:
    assert_equal(rows_of_txnkafka(spark, kafka, {"isolation.level": level}), expected)


def test_when_it_is_stopped(spark: SparkSession, kafka: KafkaBroker, expected: Rows, level: str) -> None:
    with kafka.stopped():
        assert_equal(rows_of_txnkafka(spark, kafka, {"isolation.level": level}), expected)


def assert_equal(found: Rows, expected: Rows) -> None:
    """pytest's own comparison of so many rows would take minutes."""
    assert found.keys() == expected.keys()
    for topic_partition, rows in expected.items():
        ours = found[topic_partition]
        assert [row.offset for row in ours] == [row.offset for row in rows], topic_partition
        different = [(mine, theirs) for mine, theirs in zip(ours, rows, strict=True) if mine != theirs]
        assert not different, f"{topic_partition}: {len(different)} rows, the first: {different[0]}"


def test_the_topics_hold_what_they_are_made_for(kafka: KafkaBroker) -> None:
    """A topic that lost its point would let every comparison pass."""
    log_dir = LogDir(str(kafka.log_dir))
    for topic in ("plain", "orders", "compacted"):
        assert len(log_dir.partition(topic, 0).segments) > 1, topic
    outcomes = {each.outcome for each in log_dir.partition("orders", 0).transactions()}
    assert outcomes == {"committed", "aborted"}
    compacted = [record.offset for record in log_dir.partition("compacted", 0).records()]
    assert 50 <= len(compacted) < 1000
    assert compacted[-1] > 1500
    for topic_partition in (TopicPartition("held", 0), TopicPartition("held", 1), TopicPartition("hang", 0)):
        view = log_dir.partition(*topic_partition)
        assert view.last_stable_offset < view.log_end_offset, topic_partition
    assert [log_dir.partition("deleted", number).log_start_offset for number in range(2)] == [433, 41]
