"""A stream over a directory whose logs grow, shrink, are compacted, or wait for a transaction."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import pytest

from tests.unit.logdir.logs import batch, marker, write_log
from tests.unit.spark.stream_logs import Stream, TestClock, append, log, offsets
from txnkafka.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError

OPEN = {"producer_id": 7, "producer_epoch": 3, "transactional": True}


def test_growth_new_segments_and_new_partitions(tmp_path: Path) -> None:
    log(tmp_path)
    stream = Stream(tmp_path)
    assert offsets(stream.trigger()) == [0, 1, 2, 3]
    assert stream.trigger() == []
    append(tmp_path, batch(4))
    write_log(tmp_path, "t-0", {6: [batch(6)]})
    log(tmp_path, "t-1", 1)
    log(tmp_path, "other-0", 1)
    assert stream.trigger() == [("other-0", 0), ("other-0", 1), *[("t-0", at) for at in (4, 5, 6, 7)],
                                ("t-1", 0), ("t-1", 1)]  # fmt: skip


def test_the_end_is_the_start_without_new_records(tmp_path: Path) -> None:
    """Spark compares texts: another object would make it run an empty batch, again and again."""
    log(tmp_path)
    stream = Stream(tmp_path)
    assert stream.start == {"t": {"0": 0}, "#first": True}
    stream.trigger()
    assert stream.start == {"t": {"0": 4}, "#first": {"t": {"0": 0}}}
    assert stream.end() == stream.start
    append(tmp_path, batch(4))
    assert stream.end() == {"t": {"0": 6}}


def test_topics_that_do_not_exist_yet(tmp_path: Path) -> None:
    log(tmp_path, "other-0")
    stream = Stream(tmp_path, subscribePattern="^t$")
    assert stream.trigger() == []
    log(tmp_path)
    assert offsets(stream.trigger()) == [0, 1, 2, 3]
    for options in ({"subscribe": "u"}, {"assign": '{"t": [1]}'}):
        with pytest.raises(UnknownTopicOrPartitionError):
            Stream(tmp_path, **options)


def test_starting_offsets_and_timestamps(tmp_path: Path) -> None:
    log(tmp_path)  # the timestamp of an offset is 1,000 more

    def first(**options: str) -> object:
        return Stream(tmp_path, **options).start["t"]["0"]

    assert first(startingOffsets="latest") == 4
    assert first(startingOffsets='{"t": {"0": 3}}') == 3
    assert first(startingOffsets='{"t": {"0": -1}}') == 4
    assert first(startingOffsetsByTimestamp='{"t": {"0": 1002}}') == 2
    assert first(startingTimestamp="5000", startingOffsetsByTimestampStrategy="latest") == 4
    with pytest.raises(OffsetOutOfRangeError, match="t-0 has no record at or after timestamp 5000"):
        first(startingTimestamp="5000")
    with pytest.raises(OffsetOutOfRangeError, match="offset 9 of t-0 is not in the log"):
        first(startingOffsets='{"t": {"0": 9}}')
    with pytest.raises(ValueError, match="starting offsets lack t-0"):
        first(startingOffsets='{"u": {"0": 0}}')


def test_a_transaction_that_stays_open_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0), batch(2, **OPEN), batch(4)]})
    clock = TestClock(1_002 + 5_000)
    stream = Stream(tmp_path, clock)
    assert offsets(stream.trigger()) == [0, 1]
    assert stream.reader.reportLatestOffset() == {
        "t": {"0": 2},
        "#heldBack": {
            "t-0": {
                "lastStableOffset": 2,
                "logEndOffset": 6,
                "producerId": 7,
                "producerEpoch": 3,
                "ageMs": 5_000,
            }
        },
    }
    assert caplog.messages == []  # most transactions end earlier
    for age, count in ((12_000, 1), (20_000, 1), (30_000, 2)):
        clock.ms = 1_002 + age
        assert stream.trigger() == []
        assert len(caplog.messages) == count
    assert caplog.messages[0] == (
        "t-0: a transaction of producer 7, epoch 3, open for 12 s, holds the stream back at offset 2; "
        "the log ends at 6. 'txnkafka lso' explains it, and how to end it"
    )
    append(tmp_path, marker(6, "abort", 7, 3))
    assert offsets(stream.trigger()) == [4, 5]
    assert stream.reader.reportLatestOffset() == {"t": {"0": 7}}


def test_a_range_of_hidden_records_and_markers_is_a_batch_without_rows(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0, **OPEN), marker(2, "abort", 7, 3), batch(3)]})
    stream = Stream(tmp_path, maxOffsetsPerTrigger="1")
    assert [offsets(stream.trigger()) for _ in range(6)] == [[], [], [], [3], [4], []]


def test_read_uncommitted_has_all_records(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0, **OPEN), batch(2)]})
    stream = Stream(tmp_path, **{"kafka.isolation.level": "read_uncommitted"})
    assert offsets(stream.trigger()) == [0, 1, 2, 3]


def test_where_and_columns(tmp_path: Path) -> None:
    log(tmp_path)
    log(tmp_path, "u-0")
    stream = Stream(tmp_path, where="topic = 't' and offset >= 3")
    assert stream.start["t"] == {"0": 0}
    assert stream.trigger() == [("t-0", 3)]
    narrow = Stream(tmp_path, columns="offset", assign='{"u": [0]}')
    (task,) = narrow.reader.partitions(narrow.start, narrow.end())
    assert [found.to_pydict() for found in narrow.reader.read(task)] == [{"offset": [0, 1, 2, 3]}]


def test_growth_in_an_object_store() -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe("/stream/meta.properties", b"version=1\n")
    memory.pipe(f"/stream/t-0/{0:020d}.log", batch(0))
    stream = Stream(None, path="memory://stream")
    assert offsets(stream.trigger()) == [0, 1]
    memory.pipe(f"/stream/t-0/{0:020d}.log", batch(0) + batch(2))
    memory.pipe(f"/stream/t-0/{4:020d}.log", batch(4))
    assert offsets(stream.trigger()) == [2, 3, 4, 5]
    assert stream.end() == stream.start


# Restarts


def test_a_restart_repeats_the_batch(tmp_path: Path) -> None:
    log(tmp_path)
    stream = Stream(tmp_path, startingOffsets="latest")
    append(tmp_path, batch(4))
    start, end = stream.start, stream.end()
    rows = stream.rows(start, end)
    append(tmp_path, batch(6))
    stream.reader = stream.new_reader()
    # Spark has not recorded where the first batch began: it asks again, and gets a later offset
    again = stream.reader.initialOffset()
    assert again["t"] == {"0": 8}
    assert stream.rows(again, end) == rows == [("t-0", 4), ("t-0", 5)]
    stream.start = end
    assert offsets(stream.trigger()) == [6, 7]


def test_a_repeated_batch_whose_offsets_are_lost(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0)], 2: [batch(2)]})
    stream = Stream(tmp_path)
    end = stream.end()
    (tmp_path / "t-0" / f"{0:020d}.log").unlink()
    stream.reader = stream.new_reader()
    with pytest.raises(OffsetOutOfRangeError, match="t-0: offsets 0 to 1 deleted"):
        stream.rows(stream.start, end)


def test_a_task_reads_the_same_bytes_although_the_segment_is_deleted(tmp_path: Path) -> None:
    """A broker renames the files of a deleted or compacted segment, and removes them after a minute."""
    log(tmp_path)
    stream = Stream(tmp_path)
    (task,) = stream.reader.partitions(stream.start, stream.end())
    path = tmp_path / "t-0" / f"{0:020d}.log"
    path.rename(path.with_name(f"{path.name}.deleted"))
    assert sum(found.num_rows for found in stream.reader.read(pickle.loads(pickle.dumps(task)))) == 4
    write_log(tmp_path, "t-0", {0: [batch(3, 1)]})
    assert sum(found.num_rows for found in stream.reader.read(task)) == 4


def test_spark_4_0_does_not_pass_the_start(tmp_path: Path) -> None:
    """It asks for the end first, and after a restart it shows the last end as an empty range."""
    log(tmp_path)
    stream = Stream(tmp_path, maxOffsetsPerTrigger="3")
    reader = stream.new_reader()
    end = reader.latestOffset()
    assert end["t"] == {"0": 3}
    start = reader.initialOffset()
    assert offsets(stream.rows(start, end)) == [0, 1, 2]
    reader.partitions(start, end)
    assert reader.latestOffset()["t"] == {"0": 4}
    again = stream.new_reader()
    assert again.partitions(end, end) == []
    assert again.latestOffset()["t"] == {"0": 4}


# Triggers


def test_available_now_ends_where_the_logs_ended(tmp_path: Path) -> None:
    log(tmp_path)
    stream = Stream(tmp_path, maxOffsetsPerTrigger="3", minOffsetsPerTrigger="2")
    stream.reader.prepareForTriggerAvailableNow()
    append(tmp_path, batch(4))
    log(tmp_path, "u-0")
    assert [offsets(stream.trigger()) for _ in range(3)] == [[0, 1, 2], [3], []]
    assert stream.end() == stream.start


def test_all_that_is_available_ignores_the_limits(tmp_path: Path) -> None:
    datasource = pytest.importorskip("pyspark.sql.streaming.datasource", reason="Spark 4.2 passes limits")
    log(tmp_path)
    stream = Stream(tmp_path, maxOffsetsPerTrigger="3")
    assert stream.reader.getDefaultReadLimit() == datasource.ReadMaxRows(3)
    assert stream.reader.latestOffset(stream.start, datasource.ReadMaxRows(3))["t"] == {"0": 3}
    assert stream.reader.latestOffset(stream.start, datasource.ReadAllAvailable())["t"] == {"0": 4}


def test_a_batch_waits_for_enough_offsets_or_long_enough(tmp_path: Path) -> None:
    log(tmp_path)
    clock = TestClock()
    stream = Stream(tmp_path, clock, minOffsetsPerTrigger="4", maxTriggerDelay="10s")
    assert offsets(stream.trigger()) == [0, 1, 2, 3]
    append(tmp_path, batch(4))
    clock.ms = 9_999
    assert stream.trigger() == []
    clock.ms = 10_000
    assert offsets(stream.trigger()) == [4, 5]
    append(tmp_path, batch(6))
    append(tmp_path, batch(8))
    assert offsets(stream.trigger()) == [6, 7, 8, 9]


def test_bytes_of_a_trigger(tmp_path: Path) -> None:
    size = len(batch(0))
    write_log(tmp_path, "t-0", {0: [batch(0), batch(2)], 4: [batch(4), batch(6)]})
    stream = Stream(tmp_path, maxBytesPerTrigger=str(3 * size))
    assert [offsets(stream.trigger()) for _ in range(3)] == [[*range(6)], [6, 7], []]
    small = Stream(tmp_path, maxBytesPerTrigger="1")
    assert [offsets(small.trigger()) for _ in range(5)] == [[0, 1], [2, 3], [4, 5], [6, 7], []]


def test_more_tasks_with_the_same_rows(tmp_path: Path) -> None:
    log(tmp_path, batches=8)
    stream = Stream(tmp_path, minPartitions="4")
    end = stream.end()
    assert len(stream.reader.partitions(stream.start, end)) >= 3
    assert offsets(stream.rows(stream.start, end)) == [*range(16)]
    by_records = Stream(tmp_path, maxRecordsPerPartition="3")
    assert len(by_records.reader.partitions(by_records.start, end)) == 6


def test_the_reader_can_be_pickled_and_opens_nothing(tmp_path: Path) -> None:
    """Executors get it."""
    log(tmp_path)
    found = pickle.loads(pickle.dumps(Stream(tmp_path).new_reader()))
    assert found._opened is None
    assert list(found.read(None)) == []


def test_findings_are_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0)], 9: [batch(9)]})
    caplog.set_level(logging.WARNING, "txnkafka.spark")
    stream = Stream(tmp_path, startingOffsets='{"t": {"0": 0}}')
    for _ in range(3):
        stream.trigger()
    assert len([each for each in caplog.messages if "the segment before this one is gone" in each]) == 1


def test_a_damaged_offset_does_not_stop_a_stream(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The batch claims an offset after the end of the log, where a limit of bytes finds nothing to read."""
    write_log(tmp_path, "t-0", {0: [batch(0), batch(1000), batch(4)]})
    stream = Stream(tmp_path, maxBytesPerTrigger="1", failOnDataLoss="false")
    rows = []
    while (end := stream.end()) != stream.start:
        rows += offsets(stream.rows(stream.start, end))
        stream.start = end
    assert rows == [0, 1, 4, 5]
    assert "the batch's offsets do not fit between those of its neighbours" in caplog.text
