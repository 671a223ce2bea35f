"""``spark.read.format("txnkafka")``: found without registration, columns and options as in Spark's Kafka
source."""

from __future__ import annotations

import json
import pickle
from base64 import b64encode
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition

from tests.golden.cases import case
from tests.golden.damage import BATCH_OF_88, DAMAGED, TABLE
from tests.spark.answers import Json, expected_lines, line
from tests.unit.logdir.logs import batch, write_log
from txnkafka import TopicPartition
from txnkafka.spark import TxnKafkaDataSource, register
from txnkafka.spark import source as spark_source

INTERLEAVED = case("interleaved")
PATH = str(INTERLEAVED.logs)
(PARTITION, *_) = [each for each in INTERLEAVED.partitions() if not each.topic.startswith("__")]


def read(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.read.format("txnkafka").options(**options).load(path)


def lines(frame: DataFrame) -> list[Json]:
    rows = frame.selectExpr("*", "unix_millis(timestamp) as milliseconds").collect()
    return [line(row.asDict(recursive=True), row["milliseconds"]) for row in rows]


@pytest.mark.parametrize("name", ["codecs", "compacted", "legacy"])
def test_records(spark: SparkSession, name: str) -> None:
    found = case(name)
    topics = [each for each in found.partitions() if not each.topic.startswith("__")]
    subscribe = ",".join(sorted({each.topic for each in topics}))
    frame = read(spark, str(found.answered), subscribe=subscribe, includeHeaders="true")
    assert lines(frame) == [row for each in topics for row in expected_lines(found, each, "read_committed")]


def test_columns_are_those_of_sparks_kafka_source(spark: SparkSession) -> None:
    plain = (
        "key binary, value binary, topic string, partition int, offset long, "
        "timestamp timestamp, timestampType int"
    )
    assert read(spark, PATH).schema == spark.createDataFrame([], plain).schema
    headers = f"{plain}, headers array<struct<key: string, value: binary>>"
    assert read(spark, PATH, includeHeaders="true").schema == spark.createDataFrame([], headers).schema


def test_the_default_is_read_committed_and_both_names_of_the_option_work(spark: SparkSession) -> None:
    counts = {
        level: len(INTERLEAVED.expected_records(PARTITION, level))
        for level in ("read_committed", "read_uncommitted")
    }
    wanted = json.dumps({PARTITION.topic: [PARTITION.partition]})
    assert counts["read_committed"] < counts["read_uncommitted"]
    assert read(spark, PATH, assign=wanted).count() == counts["read_committed"]
    for name in ("isolation.level", "kafka.isolation.level"):
        frame = read(spark, PATH, assign=wanted, **{name: "read_uncommitted"})
        assert frame.count() == counts["read_uncommitted"]


def test_a_narrower_schema_in_another_order_is_honoured(spark: SparkSession) -> None:
    reader = spark.read.format("txnkafka").option("assign", json.dumps({PARTITION.topic: [0]}))
    frame = reader.schema("offset bigint NOT NULL, value binary").load(PATH)
    expected = expected_lines(INTERLEAVED, TopicPartition(PARTITION.topic, 0), "read_committed")
    assert frame.columns == ["offset", "value"]
    assert [row.offset for row in frame.collect()] == [row["offset"] for row in expected]


def test_sql_and_several_paths(spark: SparkSession, tmp_path: Path) -> None:
    for number in (0, 1):
        write_log(tmp_path / f"disk{number}", f"orders-{number}", {0: [batch(0), batch(2)]})
    paths = [str(tmp_path / f"disk{number}") for number in (0, 1)]
    frame = spark.read.format("txnkafka").load(paths)
    assert sorted((row.partition, row.offset) for row in frame.collect()) == [
        (partition, offset) for partition in (0, 1) for offset in range(4)
    ]
    spark.sql(
        "create temporary view orders using txnkafka "
        f"options (path '{paths[1]}', subscribe 'orders', startingOffsets '{{\"orders\": {{\"1\": 3}}}}')"
    )
    assert [tuple(row) for row in spark.sql("select partition, offset from orders").collect()] == [(1, 3)]


def test_headers_are_null_where_a_record_has_none(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path, "plain-0", {0: [batch(0)]})
    frame = read(spark, str(tmp_path), includeHeaders="true")
    assert [row.headers for row in frame.collect()] == [None, None]


def test_an_empty_plan_has_no_rows(spark: SparkSession) -> None:
    """Spark makes one partition of an empty list."""
    frame = read(spark, PATH, where="offset < 0")
    assert frame.count() == 0


@pytest.mark.parametrize("partition", [None, InputPartition(None)], ids=["4.0", "4.1"])
def test_the_partition_of_an_empty_plan_has_no_rows(partition: InputPartition | None) -> None:
    """Each version of Spark represents an empty plan differently."""
    source = TxnKafkaDataSource({"path": PATH})
    reader = source.reader(source.schema())
    assert list(reader.read(partition)) == []


def test_options_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark asks a source for its schema, and sends it to the process in which it asks for a reader."""
    source = TxnKafkaDataSource({"path": PATH, "subscribe": "orders", "isolation.level": "read_uncommitted"})
    schema = source.schema()
    sent = pickle.loads(pickle.dumps(source))

    def again(options: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(spark_source, "parse_source_options", again)
    partitions = sent.reader(schema).partitions()
    assert {unit.topic for partition in partitions for unit in partition.value.units} == {"orders"}


def test_a_hint_makes_more_tasks_with_the_same_rows(spark: SparkSession) -> None:
    one, many = read(spark, PATH), read(spark, PATH, minPartitions="5")
    assert one.rdd.getNumPartitions() == 1
    assert many.rdd.getNumPartitions() >= 4
    assert lines_without_headers(many) == lines_without_headers(one)


def lines_without_headers(frame: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in frame.drop("timestamp").collect()]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        # Spark passes names in lower case
        ({"startingOffset": "earliest"}, "unknown option startingoffset: did you mean startingOffsets?"),
        ({"isolation.level": "committed"}, "isolation level must be read_uncommitted or read_committed"),
        ({"kafka.bootstrap.servers": "localhost:9092"}, "and a path exclude each other"),
        ({"subscribe": "a", "subscribePattern": "b"}, "exclude each other"),
    ],
)
def test_wrong_options_are_refused_at_once(
    spark: SparkSession, options: dict[str, str], message: str
) -> None:
    with pytest.raises(AnalysisException) as caught:
        read(spark, PATH, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("offset long, valeu binary", "unknown column valeu: did you mean value?"),
        ("offset int", "column offset is bigint, not int; cast it after reading"),
        ("key binary NOT NULL", "column key may contain nulls"),
    ],
)
def test_wrong_schemas_are_refused(spark: SparkSession, schema: str, message: str) -> None:
    with pytest.raises(PySparkException) as caught:
        spark.read.format("txnkafka").schema(schema).load(PATH).collect()
    assert message in str(caught.value)


def test_an_unknown_topic_is_refused_with_the_existing_ones(spark: SparkSession) -> None:
    with pytest.raises(PySparkException) as caught:
        read(spark, PATH, subscribe="no-such-topic").collect()
    assert f"no topic no-such-topic in {PATH}; topics here: " in str(caught.value)


def test_damage_fails_the_job_with_file_and_position(spark: SparkSession) -> None:
    (damage,) = (each for each in TABLE if str(each) == "clean_flip_last_payload/logs")
    path = damage.path
    found = read(spark, str(path), **{"isolation.level": "read_uncommitted"})
    with pytest.raises(PySparkException) as caught:
        found.collect()
    assert f"{BATCH_OF_88.file}, position {BATCH_OF_88.position}, offset 88" in str(caught.value)
    assert "failOnDataLoss=false leaves the batch out" in str(caught.value)
    skipping = read(spark, str(path), failOnDataLoss="false", **{"isolation.level": "read_uncommitted"})
    around = damage.answer.records_around("read_uncommitted")
    assert lines_of_partition(skipping) == [(row["offset"], row["value"]) for row in around]
    assert not {row["offset"] for row in around} & set(BATCH_OF_88.offsets)
    assert len(around) == 70


def lines_of_partition(frame: DataFrame) -> list[tuple[int, str | None]]:
    rows = frame.where(f"topic = '{DAMAGED.topic}' and partition = {DAMAGED.partition}").collect()
    return [(row.offset, None if row.value is None else b64encode(row.value).decode()) for row in rows]


def test_a_format_that_spark_has_found_is_not_registered_again(spark: SparkSession) -> None:
    """Spark warns when a data source replaces one that it has found in an installed package."""
    manager = spark._jsparkSession.sessionState().dataSourceManager()
    assert manager.dataSourceExists("txnkafka")

    class Registration:
        def register(self, source: object) -> None:
            raise AssertionError(f"{source} is registered again")

    class Session:
        dataSource = Registration()  # noqa: N815

        def __getattr__(self, name: str) -> object:
            return getattr(spark, name)

    register(Session())  # type: ignore[arg-type]
