"""What the checkpoints of a data directory keep for partitions that are not open."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from tests.unit.storage.client import NOW, Log, data
from txnkafka.broker.log_manager import LogManager
from txnkafka.config import LogConfig
from txnkafka.env import DataFiles, write_durably
from txnkafka.errors import KafkaStorageError, LogDirError
from txnkafka.model import TopicPartition
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.formats import parse_offset_checkpoint
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

DAMAGED, SOUND, OTHER = (TopicPartition("t", number) for number in range(3))
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"
MARKER = "/data/.kafka_cleanshutdown"
SEGMENT = "/data/t-0/00000000000000000000.log"
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


def opened(files: DataFiles, *, holds_recovery_points: bool = False, **configs: object) -> LogManager:
    config = LogConfig(**configs)  # type: ignore[arg-type]
    return LogManager(
        DataDirectory(
            files, "/data", lambda _: config, now_ms=NOW, holds_recovery_points=holds_recovery_points
        )
    )


def said_of(files: MemoryFiles, partition: TopicPartition) -> list[int | None]:
    """Return recovery point, log start, high watermark and cleaner offset."""
    contents = [parse_offset_checkpoint(files.read(f"/data/{name}", 1000)) for name in CHECKPOINTS]
    return [content.get(partition) for content in contents]


@pytest.fixture
def files() -> MemoryFiles:
    """Three partitions of 8 offsets whose logs start at 5; then the first one is damaged below 5."""
    files = MemoryFiles()
    directory = opened(files)
    for partition in (DAMAGED, SOUND, OTHER):
        log = Log(directory.create(partition, TOPIC_ID, now_ms=NOW))
        for _ in range(4):
            log.plain()
    directory.flush()
    for partition in (DAMAGED, SOUND, OTHER):
        directory.delete_records(partition, 5)
        directory.data.checkpoints.cleaner_offsets[partition] = 6
    directory.data.checkpoints.write_cleaner_offsets()
    directory.close()
    files.remove(MARKER)
    change(files, 70)
    return files


def change(files: MemoryFiles, position: int) -> None:
    """Flip a byte of the damaged partition, or flip it back."""
    byte = files.read(SEGMENT, 10_000)[position]
    file = files.open_to_write(SEGMENT)
    file.write(position, [bytes([byte ^ 0xFF])])
    file.close()


EVENTS: dict[str, Callable[[LogManager], object]] = {
    "nothing": lambda directory: None,
    "a checkpoint": lambda directory: directory.data.checkpoint(),
    "maintenance": lambda directory: directory.maintain(NOW),
    "another is deleted": lambda directory: directory.delete(OTHER),
    "records of another are deleted": lambda directory: directory.delete_records(SOUND, 7),
    "another is truncated": lambda directory: directory.truncate(SOUND, 3, now_ms=NOW),
    "another is created": lambda directory: directory.create(
        TopicPartition("new", 0), TOPIC_ID, now_ms=NOW
    ),
}


@pytest.mark.parametrize("event", EVENTS)
def test_a_refused_partition_keeps_what_is_known_of_it(files: MemoryFiles, event: str) -> None:
    """When it is restored, it has the same log start, log end and recovery point."""
    known = said_of(files, DAMAGED)
    assert known == [8, 5, 8, 6]
    for _ in range(3):
        directory = opened(files)
        assert list(directory.data.refused) == [DAMAGED]
        assert said_of(files, DAMAGED) == known
        if OTHER in directory.logs and TopicPartition("new", 0) not in directory.logs:
            EVENTS[event](directory)
        Log(directory.logs[SOUND]).plain()
        assert said_of(files, DAMAGED) == known
        directory.close()
        assert said_of(files, DAMAGED) == known
    change(files, 70)
    log = opened(files).logs[DAMAGED]
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (5, 8, 8)


def test_a_deletion_of_segments_that_fails_brings_no_deleted_records_back() -> None:
    files, plan = MemoryFiles(), FaultPlan(call="rename")
    directory = opened(FaultyFiles(files, plan), segment_bytes=100)
    log = Log(directory.create(SOUND, TOPIC_ID, now_ms=NOW))
    for _ in range(4):
        log.plain()
    directory.flush()
    assert directory.delete_records(SOUND, 4) == 4
    plan.fails = plan.counted + 1
    with pytest.raises(KafkaStorageError):
        directory.maintain(NOW)
    directory.data.abandon()
    assert opened(files).logs[SOUND].log_start_offset == 4


def test_a_refused_partition_that_is_deleted_leaves_nothing(files: MemoryFiles) -> None:
    """A new partition of its name must not get the old log start, which would lose the records below it."""
    directory = opened(files)
    directory.delete(DAMAGED)
    log = directory.create(DAMAGED, TOPIC_ID, now_ms=NOW)
    assert said_of(files, DAMAGED) == [None] * 4
    Log(log).plain()
    directory.close()
    assert said_of(files, DAMAGED) == [2, None, 2, None]
    log = opened(files).logs[DAMAGED]
    assert (log.log_start_offset, log.log_end_offset) == (0, 2)


def test_a_partition_that_cannot_be_deleted_is_as_it_was(files: MemoryFiles) -> None:
    """Refused or open: its checkpoints must not be removed before the partition is."""
    plan = FaultPlan()
    directory = opened(FaultyFiles(files, plan))
    for partition in (DAMAGED, SOUND):
        plan.__init__(1, errno.EIO, "rename")
        with pytest.raises(OSError, match="t-"):
            directory.delete(partition)
        plan.__init__()
    assert list(directory.data.refused) == [DAMAGED]
    Log(directory.logs[SOUND]).plain()
    directory.close()
    assert said_of(files, DAMAGED) == [8, 5, 8, 6]
    assert said_of(files, SOUND) == [10, 5, 10, 6]


def test_the_cleaner_offset_of_a_deleted_log_is_removed_also_after_a_crash(files: MemoryFiles) -> None:
    """The cleaner must not skip the beginning of a new partition of that name."""
    opened(files).close()
    files.rename("/data/t-1", "/data/t-1.0123456789abcdef0123456789abcdef-delete")  # then it was killed
    directory = opened(files)
    directory.create(SOUND, TOPIC_ID, now_ms=NOW)
    assert SOUND not in directory.data.checkpoints.cleaner_offsets
    assert said_of(files, SOUND)[3] is None


# Creating


@pytest.mark.parametrize("topic_id", ["not an id", "", TOPIC_ID[1:], "?" + TOPIC_ID[1:], "A" * 22])
def test_a_topic_id_that_is_none_is_refused_before_anything_is_made(topic_id: str) -> None:
    files = MemoryFiles()
    directory, before = opened(files), len(files.journal)
    with pytest.raises(ValueError, match=r"not an id|id is zero"):
        directory.create(SOUND, topic_id, now_ms=NOW)
    assert len(files.journal) == before
    assert SOUND not in directory.logs
    directory.create(SOUND, TOPIC_ID, now_ms=NOW)


def test_a_create_that_fails_leaves_nothing_behind() -> None:
    """Whichever call fails; the directory stays only if it cannot be removed, as after a crash."""
    failures = 0
    for number in range(1, 40):
        plan, files = FaultPlan(), MemoryFiles()
        directory = opened(FaultyFiles(files, plan))
        Log(directory.create(OTHER, TOPIC_ID, now_ms=NOW)).plain()
        plan.__init__(number, errno.EIO)
        try:
            directory.create(SOUND, TOPIC_ID, now_ms=NOW)
        except (OSError, KafkaStorageError):
            failures += 1
            plan.__init__()
            assert (SOUND in directory.logs, SOUND in directory.data.topic_ids) == (False, False)
            assert not files.exists("/data/t-1")
            Log(directory.create(SOUND, TOPIC_ID, now_ms=NOW)).plain()
        else:
            break
        directory.close()
        assert sorted(opened(files).logs) == [SOUND, OTHER]
    assert failures > 5


def test_a_partition_that_is_there_is_not_created() -> None:
    files = MemoryFiles()
    directory = opened(files)
    Log(directory.create(SOUND, TOPIC_ID, now_ms=NOW)).plain()
    with pytest.raises(LogDirError, match="exists already"):
        directory.create(SOUND, TOPIC_ID, now_ms=NOW)
    assert directory.logs[SOUND].log_end_offset == 2
    assert files.exists("/data/t-1/partition.metadata")


def durable_partitions() -> MemoryFiles:
    """Two partitions that end at 4, of which a checkpoint was written at 2, by an owner that has died."""
    files = MemoryFiles()
    directory = opened(files)
    logs = [Log(directory.create(partition, TOPIC_ID, now_ms=NOW)) for partition in (SOUND, OTHER)]
    for _ in range(2):
        for log in logs:
            log.plain()
        directory.flush()
        if logs[0].log.log_end_offset == 2:
            directory.data.checkpoint()
    directory.data.abandon()
    return files


def recovery_points(files: MemoryFiles, *partitions: TopicPartition) -> list[int | None]:
    points = parse_offset_checkpoint(files.read("/data/recovery-point-offset-checkpoint", 1000))
    return [points.get(partition) for partition in partitions or (SOUND, OTHER)]


@pytest.mark.parametrize("holds", [False, True])
def test_recovery_points_that_are_held_stay_on_the_disk_until_they_are_released(holds: bool) -> None:
    files = durable_partitions()
    directory = opened(files, holds_recovery_points=holds)
    assert [directory.logs[each].recovery_point for each in (SOUND, OTHER)] == [4, 4]
    assert recovery_points(files) == ([2, 2] if holds else [4, 4])
    Log(directory.logs[SOUND]).plain()
    directory.flush()
    directory.data.checkpoint()
    assert recovery_points(files) == ([2, 2] if holds else [6, 4])
    directory.data.checkpoints.release()
    directory.data.checkpoint()
    assert recovery_points(files) == [6, 4]


def test_the_next_owner_holds_the_same_recovery_points_again() -> None:
    files = durable_partitions()
    for _ in range(3):
        directory = opened(files, holds_recovery_points=True)
        assert directory.data.recovered_from == {SOUND: 2, OTHER: 2}
        Log(directory.logs[SOUND]).plain()
        directory.flush()
        directory.data.checkpoint()
        directory.data.abandon()
    assert directory.logs[SOUND].log_end_offset == 10


def test_a_truncation_below_a_held_recovery_point_lowers_it() -> None:
    files = durable_partitions()
    directory = opened(files, holds_recovery_points=True)
    directory.truncate(SOUND, 0, now_ms=NOW)
    directory.data.checkpoint()
    assert recovery_points(files) == [0, 2]


def test_a_new_partition_has_its_own_recovery_point_while_others_are_held() -> None:
    files = durable_partitions()
    directory = opened(files, holds_recovery_points=True)
    Log(directory.create(DAMAGED, TOPIC_ID, now_ms=NOW)).plain()
    directory.flush()
    directory.data.checkpoint()
    assert recovery_points(files, DAMAGED, SOUND, OTHER) == [2, 2, 2]


def test_after_a_clean_stop_no_recovery_point_is_held() -> None:
    files = durable_partitions()
    opened(files).close()
    directory = opened(files, holds_recovery_points=True)
    Log(directory.logs[SOUND]).plain()
    directory.flush()
    directory.data.checkpoint()
    assert recovery_points(files) == [6, 4]


@pytest.mark.parametrize("marker", [True, False])
def test_a_log_start_below_the_first_segment_is_kept(files: MemoryFiles, marker: bool) -> None:
    """Of a log with tiered storage: without it, all that tiered storage has is there again, or gone."""
    change(files, 70)
    if marker:
        opened(files).close()
    elif True:
        pass


def tiered() -> MemoryFiles:
    """A log that begins at 2, of which the segments below 6 are in tiered storage only; it ends at 10."""
    files = MemoryFiles()
    directory = opened(files, segment_bytes=100)
    log = Log(directory.create(SOUND, TOPIC_ID, now_ms=NOW))
    for _ in range(5):
        log.plain()
    directory.flush()
    directory.delete_records(SOUND, 2)
    directory.close()
    for entry in files.list("/data/t-1"):
        if entry.name[:20].isdigit() and int(entry.name[:20]) < 6:
            files.remove(f"/data/t-1/{entry.name}")
    note_log_start(files, 2)
    return files


def note_log_start(files: MemoryFiles, offset: int) -> None:
    write_durably(files, f"/data/{CHECKPOINTS[1]}", b"0\n1\nt 1 %d\n" % offset)


def noted_log_start(files: MemoryFiles) -> int | None:
    return parse_offset_checkpoint(files.read(f"/data/{CHECKPOINTS[1]}", 1000)).get(SOUND)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("noted", [2, 6])
def test_a_log_start_in_tiered_storage_stays_noted(clean: bool, noted: int) -> None:
    """Without the entry Apache Kafka has 0, and what was deleted is there again."""
    files = tiered()
    note_log_start(files, noted)
    if not clean:
        files.remove(MARKER)
    for _ in range(2):
        directory = opened(files)
        assert directory.logs[SOUND].log_start_offset == 6
        assert noted_log_start(files) == noted
        directory.close()
        assert noted_log_start(files) == noted


def test_a_log_start_moves_on_from_one_in_tiered_storage() -> None:
    files = tiered()
    directory = opened(files, file_delete_delay_ms=0)
    directory.delete_records(SOUND, 7)
    assert noted_log_start(files) == 7
    directory.delete_records(SOUND, 8)
    directory.maintain(NOW)  # deletes the segment
    directory.data.checkpoint()
    assert directory.logs[SOUND].segments[0].base_offset == 8
    assert noted_log_start(files) == 8


def test_a_noted_log_start_that_a_log_of_its_name_has_not_is_forgotten() -> None:
    """Else the next start would delete what was appended below it."""
    files = tiered()
    directory = opened(files)
    directory.truncate(SOUND, 1, now_ms=NOW)
    directory.data.checkpoint()
    assert directory.logs[SOUND].segments[0].base_offset == 1
    assert noted_log_start(files) is None


def test_a_recovery_point_waits_for_the_leader_epochs_below_it() -> None:
    """A crash may follow: recovery takes epochs from the batches at and after the recovery point only."""
    plan = FaultPlan(error=errno.ENOSPC, call="create", for_ever=True)
    memory = MemoryFiles()
    directory = opened(FaultyFiles(memory, plan))
    log = Log(directory.create(SOUND, TOPIC_ID, now_ms=NOW))
    log.plain()
    directory.flush()
    plan.fails = plan.counted + 1
    log.append(data(), leader_epoch=3)
    directory.flush()
    assert log.log.recovery_point == 4
    plan.fails = 0
    directory.data.checkpoint()
    points = parse_offset_checkpoint(memory.read("/data/recovery-point-offset-checkpoint", 1000))
    assert points == {SOUND: 2}
    directory.data.abandon()
    again = opened(memory)
    assert again.logs[SOUND].epochs.entries == [(0, 0), (3, 2)]
