"""``df.write`` and ``df.writeStream`` in the format ``txnkafka``, in one session without crashes;
test_sink_kills.py has the crashes."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.pages import ROOT
from txnkafka import Broker, LogDir
from txnkafka.spark import vacuum, write_batch
from txnkafka.spark.sink.decision import Publication
from txnkafka.spark.sink.publication import group_of
from txnkafka.spark.sink.row_columns import IGNORED, ROW_TYPES
from txnkafka.spark.sink.sink_options import OPTION_NAMES


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with the topics ``out`` and ``other``."""
    path = tmp_path / "data"
    with Broker.open(path) as broker, broker.admin() as admin:
        admin.create_topic("out", partitions=3)
        admin.create_topic("other", partitions=1)
    return path


def numbers(spark: SparkSession, *ids: int) -> DataFrame:
    return spark.createDataFrame([(each,) for each in ids], "id int").selectExpr("cast(id as string) value")


def values(data: Path, *topics: str) -> list[str]:
    """Return the committed values, read from the files."""
    found = [record.value for _, record in LogDir(data).topic(*topics or ("out",)).records()]
    return sorted(value.decode() for value in found if value is not None)


def test_columns_arrive_as_a_kafka_consumer_reads_them(spark: SparkSession, data: Path) -> None:
    rows = spark.sql(
        "select 'k' as key, encode('v', 'utf-8') as value, 'other' as topic, 0 as partition, "
        "timestamp '2026-01-31 12:00:00.001' as timestamp, "
        "array(named_struct('key', 'a', 'value', X'01')) as headers "
        "union all select null, null, 'out', 2, null, null"
    )
    rows.write.format("txnkafka").option("compression", "zstd").mode("append").save(str(data))
    with Broker.open(data) as broker, broker.consumer("out", "other", consumer_timeout_ms=500) as consumer:
        second, first = sorted(consumer, key=lambda record: record.topic, reverse=True)
    assert (second.topic, second.partition, second.key, second.value) == ("out", 2, None, None)
    assert (first.key, first.value, list(first.headers)) == (b"k", b"v", [("a", b"\x01")])
    assert first.timestamp == int(datetime(2026, 1, 31, 12, 0, 0, 1000, UTC).timestamp() * 1000)


def test_a_batch_write_with_a_version_is_there_once(spark: SparkSession, data: Path) -> None:
    def write(version: int, *ids: int) -> None:
        writer = numbers(spark, *ids).write.format("txnkafka").option("topic", "out").mode("append")
        writer.options(txnAppId="nightly", txnVersion=str(version)).save(str(data))

    write(1, 1, 2)
    write(1, 1, 2)
    write(2, 3)
    assert values(data) == ["1", "2", "3"]
    with pytest.raises(PySparkException, match="batch 1 of transactional id nightly is refused"):
        write(1, 1, 2)
    assert values(data) == ["1", "2", "3"]
    assert list((data.parent / "data.staging").iterdir()) == []


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        ("value, id", {"topic": "out"}, "unknown column id"),
        ("value", {"topic": "gone"}, "the target has no topic gone: create it first"),
    ],
)
def test_errors_before_anything_is_written(
    spark: SparkSession, data: Path, columns: str, options: dict[str, str], text: str
) -> None:
    rows = spark.range(3).selectExpr("id", "cast(id as string) value").selectExpr(*columns.split(", "))
    with pytest.raises(PySparkException, match=text):
        rows.write.format("txnkafka").options(**options).mode("append").save(str(data))
    assert not (data.parent / "data.staging").exists()


def test_an_error_of_a_task_leaves_nothing(spark: SparkSession, data: Path) -> None:
    rows = spark.createDataFrame([("a", "out"), ("b", "gone")], "value string, topic string").repartition(2)
    with pytest.raises(PySparkException, match="the target has no topic gone"):
        rows.write.format("txnkafka").mode("append").save(str(data))
    assert values(data) == []
    assert list((data.parent / "data.staging").iterdir()) == []


def test_overwriting_is_refused(spark: SparkSession, data: Path) -> None:
    with pytest.raises(PySparkException, match="a log is only appended to"):
        numbers(spark, 1).write.format("txnkafka").option("topic", "out").mode("overwrite").save(str(data))


def starts_of(data: Path, transactional_id: str) -> int:
    """Return the number of starts of a query that are recorded: Spark has told the tasks their run."""
    with Broker.open(data) as broker, broker.admin() as admin:
        (offset,) = admin.list_group_offsets(group_of(transactional_id)).values()
    return len(Publication.of_text(offset.metadata).runs)


class Query:
    """A streaming query from a directory of files, started as often as wanted."""

    def __init__(self, spark: SparkSession, folder: Path, data: Path) -> None:
        self.spark, self.folder, self.data = spark, folder, data
        self.checkpoint = folder / "checkpoint"
        (folder / "in").mkdir(parents=True)

    def put(self, batch: int, text: str) -> None:
        (self.folder / "in" / f"{batch}.txt").write_text(text.replace(" ", "\n") + "\n")

    def run(self, function: Callable[[DataFrame, int], None] | None = None, **options: str) -> None:
        reader = self.spark.readStream.schema("value string").option("maxFilesPerTrigger", 1)
        writer = reader.text(str(self.folder / "in")).writeStream.option(
            "checkpointLocation", self.checkpoint
        )
        if function is None:
            given = {"path": str(self.data), "topic": "out", **options}
            writer = writer.format("txnkafka").options(**given)
        else:
            writer = writer.foreachBatch(function)
        writer.trigger(availableNow=True).start().awaitTermination()

    def forget_the_end_of(self, batch: int) -> None:
        """Leave the checkpoint as a driver does that is killed before Spark's commit log."""
        (self.checkpoint / "commits" / str(batch)).unlink()
        (self.checkpoint / "commits" / f".{batch}.crc").unlink(missing_ok=True)


@pytest.fixture
def query(spark: SparkSession, tmp_path: Path, data: Path) -> Query:
    return Query(spark, tmp_path / "query", data)


def test_a_stream(query: Query) -> None:
    """Batches arrive, a repeated one is skipped, the first driver of two is fenced, and a checkpoint that was
    deleted or restored is noticed."""
    query.put(0, "1 2")
    query.put(1, "3")
    query.run(transactionalId="job")
    assert values(query.data) == ["1", "2", "3"]
    restored = query.folder / "restored"
    shutil.copytree(query.checkpoint, restored)

    query.put(2, "4 5")
    query.run(transactionalId="job")
    query.forget_the_end_of(2)
    query.run(transactionalId="job")
    assert values(query.data) == ["1", "2", "3", "4", "5"]
    assert starts_of(query.data, "job") == 3  # the last one wrote nothing

    (restored / "commits" / "1").unlink()
    query.checkpoint = restored
    with pytest.raises(PySparkException, match="batch 1 of transactional id job is refused: batch 2 was"):
        query.run(transactionalId="job")
    query.checkpoint = query.folder / "new"
    with pytest.raises(PySparkException, match=r"was published by query .* Restart with the checkpoint"):
        query.run(transactionalId="job")
    assert values(query.data) == ["1", "2", "3", "4", "5"]


def test_for_each_batch(query: Query) -> None:
    """The same function, the same ids."""

    def write(frame: DataFrame, batch_id: int) -> None:
        write_batch(frame, batch_id, transactional_id="job", path=str(query.data), topic="out")

    query.put(0, "1 2")
    query.run(write)
    query.forget_the_end_of(0)
    query.put(1, "3")
    query.run(write)
    assert values(query.data) == ["1", "2", "3"]


def test_a_running_broker(spark: SparkSession, tmp_path: Path, data: Path) -> None:
    with Broker.open(data) as broker:
        options = {"kafka.bootstrap.servers": broker.serve("127.0.0.1:0"), "stagingPath": str(tmp_path / "s")}
        for _ in range(2):
            writer = numbers(spark, 1, 2, 3).write.format("txnkafka").options(topic="out", **options)
            writer.options(txnAppId="job", txnVersion="0").mode("append").save()
        with broker.consumer("out", consumer_timeout_ms=500) as consumer:
            assert sorted(record.value or b"" for record in consumer) == [b"1", b"2", b"3"]
    assert list((tmp_path / "s").iterdir()) == []


def test_a_target_with_another_owner(spark: SparkSession, data: Path) -> None:
    writer = numbers(spark, 1).write.format("txnkafka").option("topic", "out").mode("append")
    with Broker.open(data), pytest.raises(PySparkException, match="is locked by another owner"):
        writer.option("kafka.max.block.ms", "100").save(str(data))


PAGE = (ROOT / "docs" / "sink.md").read_text(encoding="utf-8")


def test_the_examples_of_the_page(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming" / "1.json").write_text('{"key": "a", "value": "1"}\n{"key": "b", "value": "2"}\n')
    examples = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, object] = {"spark": spark}
    for example in examples:
        exec(example.replace('"/data/', f'"{tmp_path}/'), names)
    assert len(examples) == 4
    assert values(tmp_path / "kafka", "totals") == ["1", "1", "2", "2", "3", "5"]


def test_every_option_and_column_is_explained() -> None:
    explained = set(re.findall(r"`([\w.]+)`", PAGE))
    assert explained >= {*OPTION_NAMES, *ROW_TYPES, *IGNORED}


def test_vacuum(data: Path) -> None:
    staging = data.parent / "data.staging"
    staging.mkdir()
    orphan = staging / f"{'a' * 32}.staged"
    orphan.write_bytes(b"left")
    os.utime(orphan, times=(time.time() - 7200,) * 2)
    young = staging / f"{'b' * 32}.staged"
    young.write_bytes(b"")
    assert vacuum(data) == []
    assert [each.path for each in vacuum(data, timedelta(hours=1), remove=False)] == [str(orphan)]
    assert [each.size for each in vacuum(staging, timedelta(hours=1))] == [4]
    assert list(staging.iterdir()) == [young]
