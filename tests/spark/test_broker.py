"""The source over a broker gives the rows of the broker's files, in batches and streams."""

from __future__ import annotations

import json
import logging
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import LONG
from tests.golden.cases import case
from tests.server.serving import Serving
from tests.spark.conftest import SPARK
from tests.spark.streams import run
from tests.unit.spark.stream_logs import Json, Stream, TestClock
from txnkafka import Broker, TopicPartition
from txnkafka.client.admin import Admin
from txnkafka.client.producer import Producer
from txnkafka.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txnkafka.spark.broker.broker_plan import divided_ranges
from txnkafka.spark.log_bounds import OffsetRange
from txnkafka.spark.options import read_options
from txnkafka.spark.source import TxnKafkaDataSource
from txnkafka.spark.stream.broker_log import BrokerLog

LEVELS = ("read_committed", "read_uncommitted")
GOLDEN = ("interleaved", "codecs") if LONG else ("interleaved",)
PARTITION = TopicPartition("orders", 0)
Rows = dict[TopicPartition, list[Json]]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.in_memory(**{"group.initial.rebalance.delay.ms": 0}) as opened:
        opened.serve("127.0.0.1:0")
        yield opened


def address(broker: Broker) -> dict[str, str]:
    assert broker.address is not None
    return {"kafka.bootstrap.servers": broker.address}


def batch_rows(**options: str) -> Rows:
    source = TxnKafkaDataSource({"includeHeaders": "true", **options})
    reader = source.reader(source.schema())
    found: Rows = defaultdict(list)
    for partition in reader.partitions():
        for batch in reader.read(partition):
            for row in batch.to_pylist():
                found[TopicPartition(row["topic"], row["partition"])].append(row)
    return dict(found)


def batch_offsets(**options: str) -> list[int]:
    return [row["offset"] for rows in batch_rows(**options).values() for row in rows]


def offsets(rows: list[tuple[str, int]]) -> list[int]:
    return [offset for _, offset in rows]


def committed(broker: Broker, count: int = 2, *, abort: bool = False) -> None:
    """Write a transaction of some records, and its marker."""
    with Producer(bootstrap_servers=broker.address, transactional_id="writer") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for number in range(count):
            producer.send("orders", b"%d" % number, partition=0)
        producer.flush()
        if abort:
            producer.abort_transaction()
        else:
            producer.commit_transaction()


def create(broker: Broker, topic: str = "orders", partitions: int = 1) -> None:
    with Admin(bootstrap_servers=broker.address) as admin:
        admin.create_topic(topic, partitions=partitions)


# Rows


@pytest.mark.parametrize("name", GOLDEN)
def test_the_rows_are_those_of_the_files(tmp_path: Path, name: str) -> None:
    """Fetches of a few batches each, so that most transactions cross a response."""
    data = tmp_path / "data"
    shutil.copytree(case(name).answered, data)
    files = {level: batch_rows(**{"path": str(data), "isolation.level": level}) for level in LEVELS}
    with Serving(data, "--config", "log.retention.ms=-1") as serving:  # the records are old
        small = {"kafka.bootstrap.servers": serving.address, "kafka.max.partition.fetch.bytes": "2000"}
        for level in LEVELS:
            options = {**small, "isolation.level": level}
            assert batch_rows(**options) == files[level]
            assert batch_rows(**options, maxRecordsPerPartition="97") == files[level]
            stream = Stream(None, maxOffsetsPerTrigger="150", **options)
            found: Rows = defaultdict(list)
            while (end := stream.end()) != stream.start:
                for name_, offset in stream.rows(stream.start, end):
                    topic, _, number = name_.rpartition("-")
                    found[TopicPartition(topic, int(number))].append(offset)
                stream.start = end
            stream.reader.stop()
            assert found == {key: [row["offset"] for row in rows] for key, rows in files[level].items()}


def test_spark_reads_a_broker(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    create(broker)
    committed(broker, 3)
    committed(broker, 2, abort=True)
    reader = spark.read.format("txnkafka").options(**address(broker)).option("subscribe", "orders")
    rows = reader.load().select("offset", "value").collect()
    assert [(row.offset, bytes(row.value)) for row in rows] == [(0, b"0"), (1, b"1"), (2, b"2")]
    limit = {"maxOffsetsPerTrigger": "2"} if SPARK >= (4, 2) else {}
    found = run(spark, None, tmp_path, "offset", **address(broker), **limit)
    assert [row for number in sorted(found) for row in found[number]] == [(0,), (1,), (2,)]
    assert len(found) == 4 if limit else 1  # 7 offsets, with two markers and two aborted records


def test_bounds_of_a_batch(broker: Broker) -> None:
    create(broker)
    committed(broker, 8)
    both = {**address(broker), "subscribe": "orders"}
    assert batch_offsets(**both) == [*range(8)]
    assert batch_offsets(**both, startingOffsets='{"orders": {"0": 3}}') == [3, 4, 5, 6, 7]
    assert batch_offsets(**both, endingOffsets='{"orders": {"0": 3}}') == [0, 1, 2]
    assert batch_offsets(**both, where="offset between 2 and 3") == [2, 3]
    assert batch_offsets(**both, where="topic = 'other'") == []
    assert batch_offsets(**both, startingTimestamp="1000") == [*range(8)]
    assert batch_offsets(**both, endingTimestamp="1000") == []
    late = {"startingTimestamp": "9000000000000"}
    assert batch_offsets(**both, **late, startingOffsetsByTimestampStrategy="latest") == []
    with pytest.raises(OffsetOutOfRangeError, match="orders-0 has no record at or after timestamp"):
        batch_offsets(**both, **late)
    with pytest.raises(OffsetOutOfRangeError, match="offset 50 of orders-0 is not in the log"):
        batch_offsets(**both, startingOffsets='{"orders": {"0": 50}}')
    for choice in ({"subscribe": "nowhere"}, {"assign": '{"orders": [7]}'}, {"subscribePattern": "^x$"}):
        with pytest.raises(UnknownTopicOrPartitionError, match="in the cluster of 127"):
            batch_offsets(**address(broker), **choice)


def test_a_range_that_ends_in_markers_does_not_wait(broker: Broker) -> None:
    create(broker)
    committed(broker, 2, abort=True)
    options = {**address(broker), "kafka.fetch.max.wait.ms": "60000", "kafka.default.api.timeout.ms": "5000"}
    assert batch_offsets(**options) == []
    assert batch_offsets(**options, **{"isolation.level": "read_uncommitted"}) == [0, 1]


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "/logs"}, "kafka.bootstrap.servers and a path exclude each other"),
        ({"table": "batches"}, "table=batches needs a log directory"),
        ({"io": "mmap"}, "option io needs a log directory"),
        ({"maxBytesPerTrigger": "1m"}, "option maxBytesPerTrigger needs a log directory"),
        ({"kafka.group.id": "g"}, "unknown setting 'group.id'"),
        ({"kafka.request.timeout.ms": "soon"}, "request.timeout.ms must be a number"),
        ({"kafka.bootstrap.servers": "here"}, "'here' is not HOST:PORT"),
    ],
)
def test_options_of_a_broker(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        TxnKafkaDataSource({"kafka.bootstrap.servers": "127.0.0.1:1", **options}).schema()
    assert message in str(caught.value)


def test_ranges_are_divided_by_offsets() -> None:
    one, two = OffsetRange(PARTITION, 0, 90), OffsetRange(TopicPartition("orders", 1), 10, 20)
    assert divided_ranges([one, two], read_options()) == [one, two]
    many = divided_ranges([one, two], read_options(min_partitions=10))
    assert [part.end - part.start for part in many] == [10] * 10
    assert (many[0], many[-1]) == (OffsetRange(PARTITION, 0, 10), two)
    most = divided_ranges([one, two], read_options(max_records_per_partition=45))
    assert most == [OffsetRange(PARTITION, 0, 45), OffsetRange(PARTITION, 45, 90), two]


# Streams


def test_a_stream_over_a_broker_that_is_written(broker: Broker) -> None:
    create(broker)
    stream = Stream(None, subscribePattern="orders.*", **address(broker))
    assert stream.trigger() == []
    committed(broker)
    assert stream.trigger() == [("orders-0", 0), ("orders-0", 1)]
    assert stream.end() == stream.start
    with Admin(bootstrap_servers=broker.address) as admin:
        admin.create_partitions({"orders": 2})
    create(broker, "orders2")
    with Producer(bootstrap_servers=broker.address) as producer:
        for topic, partition in (("orders", 1), ("orders2", 0)):
            producer.send(topic, b"new", partition=partition)
    assert stream.trigger() == [("orders-1", 0), ("orders2-0", 0)]
    stream.reader.stop()


def test_a_restarted_stream_repeats_its_batch(broker: Broker) -> None:
    create(broker)
    stream = Stream(None, startingOffsets="latest", **address(broker))
    committed(broker)
    start, end = stream.start, stream.end()
    rows = stream.rows(start, end)
    stream.reader.stop()
    committed(broker)
    stream.reader = stream.new_reader()
    assert stream.rows(stream.reader.initialOffset(), end) == rows == [("orders-0", 0), ("orders-0", 1)]
    stream.start = end
    assert offsets(stream.trigger()) == [3, 4]
    stream.reader.stop()


def test_deleted_records(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    create(broker)
    committed(broker, 8)
    strict, lenient = (
        Stream(None, maxOffsetsPerTrigger="2", failOnDataLoss=strictness, **address(broker))
        for strictness in ("true", "false")
    )
    assert offsets(strict.trigger()) == offsets(lenient.trigger()) == [0, 1]
    planned = [(each, each.end()) for each in (strict, lenient)]
    tasks = [each.reader.partitions(each.start, end) for each, end in planned]
    with Admin(bootstrap_servers=broker.address) as admin:
        admin.delete_records({PARTITION: 5})
    with pytest.raises(OffsetOutOfRangeError, match="orders-0: offset 2 is not in the log"):
        rows_of(strict, tasks[0])
    assert rows_of(lenient, tasks[1]) == []
    assert "orders-0: offset 2 is not in the log" in caplog.text
    with pytest.raises(OffsetOutOfRangeError, match="orders-0: offsets 2 to 4 deleted before"):
        strict.end()
    lenient.start = planned[1][1]
    assert offsets(lenient.trigger()) == [5, 6]
    assert "orders-0: offset 4 deleted before the stream read them" in caplog.text
    for each in (strict, lenient):
        each.reader.stop()


def rows_of(stream: Stream, tasks: list[Any]) -> list[int]:
    batches = [batch for task in tasks for batch in stream.reader.read(task)]
    return [row["offset"] for batch in batches for row in batch.to_pylist()]


def test_a_transaction_that_stays_open_is_reported(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    create(broker)
    committed(broker)
    caplog.set_level(logging.WARNING)
    clock = TestClock()
    stream = Stream(None, clock, **address(broker))
    set_clock(stream, clock)
    with Producer(bootstrap_servers=broker.address, transactional_id="stuck") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"open", partition=0)
        producer.flush()
        committed(broker)
        assert offsets(stream.trigger()) == [0, 1]
        assert "#heldBack" not in (stream.reader.reportLatestOffset() or {})
        clock.ms = 10_000
        stream.trigger()
        found = stream.reader.reportLatestOffset()
        assert found is not None
        held_back = found["#heldBack"]["orders-0"]
        assert held_back["transactionalId"] == "stuck"
        assert (held_back["lastStableOffset"], held_back["logEndOffset"]) == (3, 7)
        producer.abort_transaction()
    assert offsets(stream.trigger()) == [4, 5]
    assert "#heldBack" not in (stream.reader.reportLatestOffset() or {})
    stream.reader.stop()


def set_clock(stream: Stream, clock: TestClock) -> None:
    log = stream.reader._log
    assert isinstance(log, BrokerLog)
    log._clock = clock


def test_the_broker_may_restart_between_triggers(tmp_path: Path) -> None:
    with Broker.open(tmp_path / "data") as broker:
        address_ = broker.serve("127.0.0.1:0")
        create(broker)
        committed(broker)
        stream = Stream(None, **address(broker))
        assert offsets(stream.trigger()) == [0, 1]
    with Broker.open(tmp_path / "data") as broker:
        broker.serve(address_)
        committed(broker)
        assert offsets(stream.trigger()) == [3, 4]
        stream.reader.stop()


def test_offsets_are_those_of_a_directory(broker: Broker) -> None:
    """A query can go on with the files of its broker, and back."""
    create(broker)
    committed(broker)
    stream = Stream(None, **address(broker))
    stream.trigger()
    assert json.dumps(stream.start) == '{"orders": {"0": 3}, "#first": {"orders": {"0": 0}}}'
    stream.reader.stop()
