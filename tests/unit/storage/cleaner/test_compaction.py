"""Which log is compacted next, up to which offset, and into how many segments."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.storage.cleaner.compacted import NOW, CompactedLog
from txnkafka import TopicPartition
from txnkafka._core.encode import encode_batch
from txnkafka.broker.log_manager import LogManager
from txnkafka.config import CleanerConfig, LogConfig
from txnkafka.env import DataFiles
from txnkafka.errors import KafkaStorageError
from txnkafka.storage.cleaner.cleaner_pass import CleanerPass, group_segments
from txnkafka.storage.cleaner.compaction import DEFAULT_CLEANER
from txnkafka.storage.cleaner.log_to_clean import LogToClean
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.work import perform
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"
COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.5", "internal.segment.bytes": "1000"}


def opened(files: MemoryFiles, **configs: str) -> LogManager:
    topics = {"plain": LogConfig()}
    default = LogConfig.of(COMPACT | {name.replace("_", "."): value for name, value in configs.items()})
    directory = LogManager(
        DataDirectory(files, "/data", lambda topic: topics.get(topic, default), now_ms=NOW)
    )
    for topic in ("plain", "small", "large"):
        if TopicPartition(topic, 0) not in directory.logs:
            directory.create(TopicPartition(topic, 0), TOPIC_ID, now_ms=NOW)
    return directory


def fill(log: PartitionLog, batches: int, key: bytes = b"key", timestamp: int = NOW) -> None:
    """Append batches and roll the segment."""
    for _ in range(batches):
        log.append(encode_batch([(key, b"x" * 100, timestamp)]), now_ms=NOW)
    log.roll(NOW)
    log.flush()


def test_the_dirtiest_log_comes_first_and_its_offset_is_kept() -> None:
    files = MemoryFiles()
    directory = opened(files)
    small, large = (directory.logs[TopicPartition(topic, 0)] for topic in ("small", "large"))
    fill(directory.logs[TopicPartition("plain", 0)], 5)
    fill(small, 2)
    directory.clean(NOW)
    assert directory.data.checkpoints.cleaner_offsets == {small.topic_partition: 2}
    fill(small, 2)
    fill(large, 4)
    assert directory.clean(NOW).segments_before == 1  # type: ignore[union-attr]
    assert directory.data.checkpoints.cleaner_offsets[large.topic_partition] == 4
    assert directory.clean(NOW) is not None
    assert directory.clean(NOW) is None
    directory.close()
    again = opened(files)
    assert again.data.checkpoints.cleaner_offsets == {small.topic_partition: 4, large.topic_partition: 4}
    assert again.clean(NOW) is None


def test_too_little_is_dirty_until_it_is_so_for_too_long() -> None:
    directory = opened(MemoryFiles(), max_compaction_lag_ms="5000")
    log = directory.logs[TopicPartition("small", 0)]
    fill(log, 1, b"a")
    fill(log, 1, b"b")
    directory.clean(NOW)
    fill(log, 1, b"c")
    assert not LogToClean.of(log, 2, NOW).is_due
    assert directory.clean(NOW + 5000) is None
    assert directory.clean(NOW + 5001) is not None


def test_to_look_at_the_age_of_segments_keeps_no_indexes_in_memory() -> None:
    log = CompactedLog(min_compaction_lag_ms=1000)
    for _ in range(3):
        log.data(-1, (b"a", b"x" * 100), (b"b", b"x" * 100))
        log.data(-1, (b"a", b"x" * 100))
        log.roll()
    log.reopen()
    assert LogToClean.of(log.log, 0, NOW + 5000).first_uncleanable_offset == 9
    assert [len(segment.offset_index) for segment in log.log.segments[:-1]] == [0, 0, 0]


def test_an_offset_that_the_log_has_not_means_all_is_dirty() -> None:
    directory = opened(MemoryFiles())
    log = directory.logs[TopicPartition("small", 0)]
    fill(log, 2)
    fill(log, 2)
    for wrong in (5, -1):
        assert LogToClean.of(log, wrong, NOW).first_dirty_offset == 0
    log.offsets.move(2, log.high_watermark, log.log_end_offset)
    assert LogToClean.of(log, 1, NOW).first_dirty_offset == 2


def test_where_a_log_was_cut_it_is_dirty_again() -> None:
    directory = opened(MemoryFiles())
    log = directory.logs[TopicPartition("small", 0)]
    fill(log, 4)
    directory.clean(NOW)
    directory.truncate(log.topic_partition, 2, now_ms=NOW)
    assert directory.data.checkpoints.cleaner_offsets == {log.topic_partition: 2}
    directory.delete(log.topic_partition)
    assert directory.data.checkpoints.cleaner_offsets == {}


def test_a_damaged_log_is_left_alone_and_the_others_are_compacted() -> None:
    directory = opened(MemoryFiles())
    small, large = (directory.logs[TopicPartition(topic, 0)] for topic in ("small", "large"))
    fill(small, 4)
    fill(large, 4)
    small.segments[0].file("log").write(90, [b"!"])
    assert directory.clean(NOW) is not None
    assert directory.clean(NOW) is None
    assert list(directory.uncleanable) == [small.topic_partition]
    assert list(directory.data.checkpoints.cleaner_offsets) == [large.topic_partition]


@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        ({}, [5]),
        ({"segment_bytes": 520}, [3, 2]),
        ({"segment_bytes": 300}, [1, 1, 1, 1, 1]),
        ({"index_interval_bytes": 0, "segment_index_bytes": 24}, [2, 2, 1]),
    ],
)
def test_segments_that_fit_into_one_become_one(settings: dict[str, object], sizes: list[int]) -> None:
    log = CompactedLog(**settings)
    for _ in range(5):
        log.data(-1, (b"a", b"x" * 14))
        log.data(-1, (b"a", b"x" * 14))
        log.roll()
    groups = group_segments(log.log.segments, log.config, log.log.log_end_offset)
    assert [len(group) for group in groups] == sizes


def test_offsets_of_a_group_fit_into_its_index() -> None:
    log = CompactedLog()
    for base_offset in (1, 2**31 - 1, 2**31, 2**31 + 5):
        log.data(-1, (b"a", b"x"))
        log.log.offsets.move(0, 0, base_offset)
        log.roll()
    groups = group_segments(log.log.segments, log.config, 1 << 40)
    bases = [[each.base_offset for each in group] for group in groups]
    assert bases == [[0, 1, 2**31 - 1], [2**31]]


def use(log: PartitionLog, files: DataFiles) -> None:
    """Switch an open log and its segments to other files."""
    log.files = files
    for segment in log.segments:
        segment.files.data_files = files


def test_a_disk_that_is_full_changes_nothing() -> None:
    """A read error changes nothing either: the log continues to work, and no file is left over."""
    log = CompactedLog()
    log.abort(1, (b"a", b"1"))
    log.data(-1, (b"a", b"2"))
    log.roll()
    log.log.flush()
    before, names = log.content(), log.names("")
    for call, error in (("write", 28), ("sync", 5), ("create", 28), ("read_into", 5)):
        plan = FaultPlan(1, error, call=call)
        use(log.log, FaultyFiles(log.files, plan))
        with pytest.raises(KafkaStorageError, match=r"t-0 was not compacted.*nothing is lost"):
            log.clean()
        assert plan.failed
        use(log.log, log.files)
        assert (log.content(), log.names("")) == (before, names)
    assert log.clean().records_dropped == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: CleanerConfig(dedupe_buffer_size=79),
        lambda: CleanerConfig(io_buffer_load_factor=0),
        lambda: CleanerConfig(io_buffer_load_factor=1.1),
    ],
)
def test_settings_without_room_for_a_key_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"dedupe\.buffer\.size|io\.buffer\.load\.factor"):
        make()


def test_no_segment_is_replaced_before_all_that_the_pass_has_read_is_durable() -> None:
    """The newest batch of a producer makes the older one obsolete; a power cut that takes the newest must
    find the older one."""
    log = CompactedLog()
    log.data(100, (b"a", b"1"))
    log.data(-1, (b"a", b"2"))
    log.roll()
    log.log.flush()
    log.data(100, (b"b", b"1"))
    before = log.content()
    cleaning = CleanerPass(LogToClean.of(log.log, 0, NOW), DEFAULT_CLEANER, now_ms=NOW)
    while (piece := cleaning.begin()) is not None:
        perform(piece)
    assert (cleaning.is_over, cleaning.is_swapping) == (False, False), "it waits for a flush"
    assert log.content() == before
    log.log.flush()
    while (piece := cleaning.begin()) is not None:
        perform(piece)
    assert cleaning.stats is not None
    assert len(log.content()) < len(before)


def test_records_of_the_time_0_do_not_make_a_log_due() -> None:
    """As in Apache Kafka, a first timestamp of 0 or below does not give the age of a segment."""
    for timestamp, must_clean in ((0, False), (1, True)):
        log = CompactedLog(max_compaction_lag_ms=1000)
        log.now = timestamp
        log.data(-1, (b"a", b"1"))
        log.roll()
        log.log.flush()
        assert LogToClean.of(log.log, 0, NOW).must_clean is must_clean, timestamp
