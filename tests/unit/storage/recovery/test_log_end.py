"""Logs that end where they must not, and bytes that only look like a log end."""

from __future__ import annotations

import struct

import pytest

from txnkafka import CorruptRecordError, TopicPartition
from txnkafka._core.encode import assign, encode_batch
from txnkafka.config import LogConfig
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.recovery.log_loader import OpenedLog, Repair, Start, open_log
from txnkafka.testing.memory_files import MemoryFiles

NOW = 1_700_000_000_000
DIRECTORY = "/data/t-0"
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"
CONFIG = LogConfig(index_interval_bytes=100)


def batch(base_offset: int, value: bytes = b"value", records: int = 2) -> bytes:
    content = encode_batch([(b"key", value, NOW)] * records)
    assign(content, base_offset=base_offset, partition_leader_epoch=0)
    return bytes(content)


def written(**segments: bytes) -> MemoryFiles:
    """Write the segments of a partition, by base offset, without derived files."""
    files = MemoryFiles()
    for path in ("/data", DIRECTORY):
        files.make_directory(path)
    for name, content in segments.items():
        files.create(f"{DIRECTORY}/{int(name[1:]):020}.log").write(0, [content])
    return files


def opened(files: MemoryFiles, start: Start) -> OpenedLog:
    return open_log(files, DIRECTORY, TopicPartition("t", 0), CONFIG, start, now_ms=NOW)


def test_a_record_that_contains_a_batch_is_not_the_log_end() -> None:
    """A record contains a batch, and an index entry points to it."""
    inner = batch(1000)
    files = written(s0=batch(0) + batch(2, inner, records=1) + batch(3))
    opened(files, Start()).log.close()
    log = b"".join([batch(0), batch(2, inner, records=1), batch(3)])
    place = log.index(inner)
    path = f"{DIRECTORY}/{0:020}.index"
    files.remove(path)
    files.create(path).write(0, [struct.pack(">ii", 500, place)])
    found = opened(files, Start(clean_shutdown=True, recovery_point=5))
    assert found.log.log_end_offset == 5
    assert files.read(f"{DIRECTORY}/{0:020}.log", 10_000) == log


@pytest.mark.parametrize("clean", [True, False])
def test_offsets_that_no_index_can_hold(clean: bool) -> None:
    files = written(s0=batch(0) + batch(3_000_000_000))
    before = files.disk()
    with pytest.raises(CorruptRecordError, match="offset 3000000001 exceeds the segment's index") as caught:
        opened(files, Start(clean_shutdown=clean))
    assert (caught.value.position, caught.value.offset) == (len(batch(0)), 3_000_000_000)
    assert files.disk() == before


@pytest.mark.parametrize("clean", [True, False])
def test_a_tail_whose_offsets_go_back_in_a_segment_without_indexes(clean: bool) -> None:
    """It is cut behind the recovery point, and refused below, with the place."""
    sound = batch(10) + batch(12)
    files = written(s10=sound + batch(2))
    with pytest.raises(CorruptRecordError, match=r"contradict those around it.* durable up to offset 16"):
        opened(files, Start(clean_shutdown=clean, recovery_point=16))
    found = opened(files, Start(clean_shutdown=clean, recovery_point=14))
    assert found.log.log_end_offset == 14
    assert files.read(f"{DIRECTORY}/{10:020}.log", 10_000) == sound


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_that_ends_below_what_was_durable(clean: bool) -> None:
    """The log ends between two batches: no byte is wrong, but acknowledged records are missing."""
    files = written(s0=batch(0) + batch(2))
    start = Start(clean_shutdown=clean, recovery_point=6)
    before = files.disk()
    with pytest.raises(CorruptRecordError, match="the log ends here, and was durable up to offset 6"):
        opened(files, start)
    assert files.disk() == before
    deleted = Start(clean_shutdown=clean, recovery_point=6, log_start_offset=6)
    assert opened(written(s0=batch(0) + batch(2)), deleted).log.log_end_offset == 6
    given_up = Start(clean, 6, 0, Repair(truncate_corrupt=True))
    found = opened(files, given_up)
    assert (found.log.log_end_offset, found.log.recovery_point <= 4) == (4, True)
    assert "the log ends at 4: offsets up to 5 were durable, and are lost" in map(str, found.repairs)


@pytest.mark.parametrize("tail", [b"", bytes(100)])
@pytest.mark.parametrize("recovery_point", [0, 2, 4, None])
@pytest.mark.parametrize("clean", [True, False])
def test_a_log_start_beyond_everything_that_is_known_of_the_log(
    clean: bool, recovery_point: int | None, tail: bytes
) -> None:
    """With one digit too many in the checkpoint all records would count as deleted."""
    start = Start(clean, recovery_point, 60, high_watermark=4)
    files = written(s0=batch(0), s2=batch(2) + tail)
    before = files.disk()
    with pytest.raises(CorruptRecordError, match=r"the log ends at offset 4, .* begins at 60") as caught:
        opened(files, start)
    assert caught.value.file == "/data/log-start-offset-checkpoint"
    assert files.disk() == before
    given_up = Start(clean, recovery_point, 60, Repair(truncate_corrupt=True), high_watermark=4)
    found = opened(written(s0=batch(0), s2=batch(2)), given_up).log
    assert (found.log_start_offset, found.log_end_offset) == (60, 60)


@pytest.mark.parametrize(("segment", "high_watermark"), [(batch(0) + batch(2), 6), (b"", 0), (bytes(9), 0)])
def test_deleted_records_whose_end_a_power_cut_took(segment: bytes, high_watermark: int) -> None:
    """The high watermark tells that the log did go on up to its start, so everything in it was deleted; where
    there is nothing in it no file has to tell that."""
    recovery_point = 2 if high_watermark else 0
    start = Start(recovery_point=recovery_point, log_start_offset=6, high_watermark=high_watermark)
    found = opened(written(s0=segment), start).log
    assert (found.log_start_offset, found.log_end_offset) == (6, 6)


def test_an_unknown_recovery_point_protects_closed_segments() -> None:
    damaged = bytearray(batch(0) + batch(2))
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecordError, match="do not match its CRC"):
        opened(written(s0=bytes(damaged), s4=batch(4)), Start(recovery_point=None))
    damaged = bytearray(batch(4) + batch(6))
    damaged[-1] ^= 1
    found = opened(written(s0=batch(0) + batch(2), s4=bytes(damaged)), Start(recovery_point=None))
    assert found.log.log_end_offset == 6


def test_a_batch_beyond_the_next_segment() -> None:
    """The flipped base offset makes this batch the damaged one; the following data was not durable either."""
    found = opened(written(s0=batch(0) + batch(1 << 20), s4=batch(4)), Start())
    assert found.log.log_end_offset == 2
    assert [segment.base_offset for segment in found.log.segments] == [0]


def test_a_refused_partition_stays_refused_and_others_work() -> None:
    """The partition also stays refused when the recovery point checkpoint is damaged and rewritten."""
    files = MemoryFiles()
    names = [TopicPartition("t", number) for number in range(2)]

    def start() -> DataDirectory:
        return DataDirectory(files, "/data", lambda _: CONFIG, now_ms=NOW)

    directory = start()
    for name in names:
        log = directory.create(name, TOPIC_ID, now_ms=NOW)
        for _ in range(3):
            log.append(encode_batch([(b"key", b"value", NOW)]), now_ms=NOW)
        log.roll(NOW)
        log.append(encode_batch([(b"key", b"value", NOW)]), now_ms=NOW)
    directory.close()
    path = f"{DIRECTORY}/{0:020}.log"
    files.open_to_write(path).write(len(files.read(path, 10_000)) - 1, [b"?"])
    files.remove("/data/.kafka_cleanshutdown")
    files.remove("/data/recovery-point-offset-checkpoint")
    files.create("/data/recovery-point-offset-checkpoint").write(0, [b"garbage"])
    for _ in range(3):
        directory = start()
        assert list(directory.refused) == [names[0]]
        directory.logs[names[1]].append(encode_batch([(b"key", b"value", NOW)]), now_ms=NOW)
        directory.close()
        assert not files.exists("/data/.kafka_cleanshutdown")
    assert directory.logs[names[1]].log_end_offset == 7


@pytest.mark.parametrize("base_offset", [38, 1 << 40])
@pytest.mark.parametrize("recovery_point", [0, 4])
@pytest.mark.parametrize("clean", [True, False])
def test_a_segment_under_the_name_of_a_later_one_is_refused(
    clean: bool, recovery_point: int, base_offset: int
) -> None:
    """No crash gives a file another name: its sound records are not truncated, durable or not."""
    files = written(**{f"s{base_offset}": batch(0) + batch(2)})
    before = files.disk()
    for _ in range(2):
        with pytest.raises(CorruptRecordError):
            opened(files, Start(clean_shutdown=clean, recovery_point=recovery_point))
    assert files.disk() == before


def test_a_torn_segment_behind_what_was_durable_is_cut() -> None:
    """The batch has too low an offset and a wrong CRC: stale bytes in a place that was never written."""
    torn = bytearray(batch(0) + batch(2))
    torn[30] ^= 1
    files = written(s0=batch(0) + batch(2), s4=bytes(torn))
    assert opened(files, Start(recovery_point=4)).log.log_end_offset == 4


def test_a_damaged_epoch_file_of_an_empty_log_is_replaced() -> None:
    """Every start would otherwise rebuild the file, and report that."""
    files = written(s0=b"")
    path = f"{DIRECTORY}/leader-epoch-checkpoint"
    files.create(path).write(0, [b"0\n2\n0 0\n"])
    first = opened(files, Start())
    assert [each.action for each in first.log.repairs if each.what == path] == ["rebuilt from the log"]
    first.log.close()
    assert files.read(path, 100) == b"0\n0\n"
    assert opened(files, Start(clean_shutdown=True)).log.repairs == []
