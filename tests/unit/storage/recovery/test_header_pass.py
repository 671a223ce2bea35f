"""An unflushed log is read once: the pass that checks the batches also builds the derived state, and gets the
same result as a second pass."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.unit.storage.logs import DIRECTORY, NOW, append, content, end, opened
from txnkafka.errors import CorruptRecordError
from txnkafka.storage.formats import segment_reader
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.recovery import header_pass
from txnkafka.storage.recovery.log_loader import Start, open_log
from txnkafka.testing.memory_files import MemoryFiles


def unflushed(*, snapshots: bool = True, epochs: bool = True) -> MemoryFiles:
    """Return the files that a killed process leaves: segments with aborted, committed and open transactions,
    idempotent producers and two leader epochs. All segments have their final names; the checkpoint is
    older."""
    log = opened(segment_bytes=400)
    for number in range(3):
        epoch = number // 2
        append(log, producer_id=1, transactional=True, sequence=number, leader_epoch=epoch)
        append(log, producer_id=2, sequence=number, leader_epoch=epoch)
        append(log, producer_id=3 + number, transactional=True, leader_epoch=epoch)
        end(log, 1, commit=number == 1, leader_epoch=epoch)
    assert len(log.segments) > 3
    log.flush()
    assert isinstance(log.files, MemoryFiles)
    files = MemoryFiles(base=log.files.disk())
    for name in content(files):
        if (name.endswith(".snapshot") and not snapshots) or ("epoch" in name and not epochs):
            files.remove(f"{DIRECTORY}/{name}")
    return files


def recovered(files: MemoryFiles, start: Start | None = None) -> PartitionLog:
    config, partition = opened(segment_bytes=400).config, opened().topic_partition
    return open_log(files, DIRECTORY, partition, config, start or Start(), now_ms=NOW).log


def known(log: PartitionLog) -> tuple[object, ...]:
    batches = [log.producers.known_batches(number) for number in range(1, 6)]
    snapshots, epochs = log.snapshots.offsets, log.epochs.entries
    return log.producers.snapshot(), batches, log.last_stable_offset, epochs, snapshots


def sizes_of_logs(files: MemoryFiles) -> dict[str, int]:
    found = content(files)
    return {f"{DIRECTORY}/{name}": len(found[name]) for name in found if name.endswith(".log")}


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the bytes of each log file that are scanned for batches."""
    found: Counter[str] = Counter()
    windows = segment_reader.SegmentReader._windows

    def counted(self: segment_reader.SegmentReader, *arguments: object) -> object:
        for window in windows(self, *arguments):  # type: ignore[arg-type]
            found[self.path] += window[2].end_position - window[0]
            yield window

    monkeypatch.setattr(segment_reader.SegmentReader, "_windows", counted)
    return found


@pytest.mark.parametrize("epochs", [True, False])
@pytest.mark.parametrize("snapshots", [True, False])
def test_every_byte_of_an_unflushed_log_is_scanned_once(
    scanned: Counter[str], snapshots: bool, epochs: bool
) -> None:
    files = unflushed(snapshots=snapshots, epochs=epochs)
    sizes = sizes_of_logs(files)
    scanned.clear()
    recovered(files)
    assert scanned == sizes


def test_what_is_durable_is_scanned_for_producers_and_what_is_not_once(scanned: Counter[str]) -> None:
    files = unflushed(snapshots=False)
    sizes = sizes_of_logs(files)
    bases = sorted(int(path[-24:-4]) for path in sizes)
    scanned.clear()
    recovered(files, Start(recovery_point=bases[2]))
    assert scanned == sizes


@pytest.mark.parametrize("recovery_point", [0, 5, 11])
@pytest.mark.parametrize("snapshots", [True, False])
def test_two_passes_make_the_same(
    monkeypatch: pytest.MonkeyPatch, scanned: Counter[str], snapshots: bool, recovery_point: int
) -> None:
    """When the unwritten snapshots exceed the memory limit, the segments are read a second time."""
    files = unflushed(snapshots=snapshots)
    again = MemoryFiles(base=files.disk())
    log = recovered(files, Start(recovery_point=recovery_point))
    once = scanned.total()
    monkeypatch.setattr(header_pass, "MOST_KEPT", 0)
    scanned.clear()
    log_again = recovered(again, Start(recovery_point=recovery_point))
    assert scanned.total() > once
    assert known(log_again) == known(log)
    log.close()
    log_again.close()
    assert content(again) == content(files)


def test_a_batch_that_is_there_twice_counts_once() -> None:
    """A repeated batch is out of order, but no damage: the segment is read again, and the result of the first
    pass is discarded."""
    files = unflushed()
    name = max(name for name in content(files) if name.endswith(".log"))
    expected = recovered(MemoryFiles(base=files.disk()))
    file, data = files.open_to_write(f"{DIRECTORY}/{name}"), content(files)[name]
    last = bytes(data[expected.segments[-1].batch_before(len(data) - 1) :])
    file.write(len(data), [last])
    file.close()
    log = recovered(files)
    assert log.active.size > expected.active.size
    assert (log.log_end_offset, known(log)[2:]) == (expected.log_end_offset, known(expected)[2:])
    assert log.producers.snapshot() == expected.producers.snapshot()


def test_a_refused_partition_stays_as_it_is_although_its_producers_were_followed() -> None:
    files = unflushed()
    name = sorted(name for name in content(files) if name.endswith(".log"))[-2]
    data = content(files)[name]
    file = files.open_to_write(f"{DIRECTORY}/{name}")
    file.write(len(data) - 1, [bytes([data[-1] ^ 1])])
    file.close()
    before = files.disk()
    with pytest.raises(CorruptRecordError, match="do not match its CRC"):
        recovered(files, Start(recovery_point=None))
    assert files.disk() == before


def test_a_damaged_snapshot_goes_when_the_log_end_is_certain() -> None:
    files = unflushed()
    expected = recovered(MemoryFiles(base=files.disk()))
    bases = [segment.base_offset for segment in expected.segments]
    path = f"{DIRECTORY}/{bases[2]:020}.snapshot"
    file = files.open_to_write(path)
    file.write(8, [b"\xff\xff"])
    file.close()
    log = recovered(files, Start(recovery_point=bases[2]))
    assert [each.action for each in log.repairs if each.what == path] == ["removed"]
    assert known(log) == known(expected)
    assert content(files)[path.rpartition("/")[2]] == content(expected.files)[path.rpartition("/")[2]]
