"""Recovery rebuilds derived files that are missing, empty, damaged or stale, exactly as the log implies."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.storage.logs import DIRECTORY, NOW, append, content, end, opened
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.recovery.log_end import Repair
from txnkafka.storage.recovery.log_loader import OpenedLog, Start, open_log

EPOCHS = "leader-epoch-checkpoint"


def closed_log() -> PartitionLog:
    """Return a closed log of several segments, two with aborted transactions, one with an open one."""
    log = opened(segment_bytes=250)
    for round_ in range(3):
        append(log, NOW + round_, producer_id=1, sequence=round_, transactional=True)
        append(log, NOW + round_, producer_id=2, sequence=round_)
        end(log, 1, commit=round_ == 1)
    append(log, producer_id=3, transactional=True)
    append(log)
    log.flush()
    log.close()
    assert len(log.segments) > 3
    return log


def names(log: PartitionLog, ending: str) -> list[str]:
    """Return the files of closed segments with this ending; those of the last segment are written when it is
    closed."""
    last = f"{log.active.base_offset:020}"
    found = sorted(name for name in content(log.files) if name.endswith(ending))
    return [name for name in found if not name.startswith(last)]


def put(log: PartitionLog, name: str, data: bytes) -> None:
    file = log.files.open_to_write(f"{DIRECTORY}/{name}")
    file.truncate(0)
    file.write(0, [data])
    file.close()


def again(log: PartitionLog, start: Start) -> OpenedLog:
    return open_log(log.files, DIRECTORY, log.topic_partition, log.config, start, now_ms=NOW)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda data: b"",
    "cut": lambda data: data[:-3],
    "another's": lambda data: bytes([data[0] ^ 0x7F]) + data[1:],
    "stale": lambda data: data + data,
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("ending", [".index", ".timeindex", ".txnindex", ".snapshot"])
def test_recovery_rebuilds_them(ending: str, damage: str) -> None:
    """Recovery trusts only the log from the recovery point on."""
    log = closed_log()
    before = content(log.files)
    found = [name for name in names(log, ending) if before[name]]
    assert len(found) >= 2
    for name in found:
        put(log, name, DAMAGE[damage](before[name]))
    recovered = again(log, Start(clean_shutdown=False, recovery_point=0)).log
    recovered.close()
    after = content(log.files)
    assert {name: after.get(name) for name in found} == {name: before[name] for name in found}


@pytest.mark.parametrize("ending", [".index", ".timeindex", ".txnindex"])
def test_missing_files_below_the_recovery_point_are_rebuilt(ending: str) -> None:
    log = closed_log()
    before = content(log.files)
    found = [name for name in names(log, ending) if before[name]]
    for name in found:
        log.files.remove(f"{DIRECTORY}/{name}")
        if ending == ".txnindex":  # a missing .txnindex alone is not detected, as in Kafka
            log.files.remove(f"{DIRECTORY}/{name.removesuffix(ending)}.index")
    opened_again = again(log, Start(clean_shutdown=True, recovery_point=log.log_end_offset))
    opened_again.log.close()
    after = content(log.files)
    assert {name: after.get(name) for name in found} == {name: before[name] for name in found}
    told = " ".join(map(str, opened_again.repairs))
    assert all(name.removesuffix(ending) in told for name in found)


def test_an_emptied_time_index_below_the_recovery_point_is_rebuilt() -> None:
    """Also of a segment that nobody looks into: Apache Kafka, which may open the log next, believes it."""
    log = closed_log()
    before = content(log.files)
    found = [name for name in names(log, ".timeindex") if before[name]]
    assert len(found) >= 2
    for name in found:
        put(log, name, b"")
    opened_again = again(log, Start(clean_shutdown=True, recovery_point=log.log_end_offset))
    opened_again.log.close()
    after = content(log.files)
    assert {name: after.get(name) for name in found} == {name: before[name] for name in found}
    told = " ".join(map(str, opened_again.repairs))
    assert all(name.removesuffix(".timeindex") in told for name in found)


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_time_index_of_timestamp_0_is_sound(is_closed: bool) -> None:
    """Its entry has twelve zeros, and zeros at the end of a file are no entries otherwise."""
    log = opened(segment_bytes=120 if is_closed else 300)
    for _ in range(2):
        append(log, 0)
    log.flush()
    log.close()
    before = content(log.files)
    assert before[f"{0:020}.timeindex"] == bytes(12)
    for repair in (None, Repair(full=True)):
        start = Start(clean_shutdown=True, recovery_point=log.log_end_offset, repair=repair)
        opened_again = again(log, start)
        segment = opened_again.log.segments[0]
        segment.load()
        assert (opened_again.repairs, segment.max_timestamp) == ([], 0)
        opened_again.log.close()
        assert content(log.files) == before


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_epochs_that_the_checkpoint_lacks_are_taken_from_what_is_recovered(kept: int) -> None:
    """An older version of the file may remain after a power cut."""
    log = opened(segment_bytes=250)
    for epoch in range(3):
        append(log, leader_epoch=epoch)
        append(log, leader_epoch=epoch)
    log.flush()
    log.close()
    entries = log.epochs.entries
    assert [entry.epoch for entry in entries] == [0, 1, 2]
    lines = "".join(f"{each.epoch} {each.start_offset}\n" for each in entries[:kept])
    put(log, EPOCHS, f"0\n{kept}\n{lines}".encode())
    recovered = again(log, Start(clean_shutdown=False, recovery_point=0)).log
    assert recovered.epochs.entries == entries
    recovered.close()
    assert content(log.files)[EPOCHS] == f"0\n3\n{_lines(entries)}".encode()


def _lines(entries: list[tuple[int, int]]) -> str:
    return "".join(f"{epoch} {offset}\n" for epoch, offset in entries)
