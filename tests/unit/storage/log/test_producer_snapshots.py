"""The producer snapshots of a partition: written, loaded, removed."""

from __future__ import annotations

import errno

import pytest

from tests.models.producer_state import write_snapshot
from tests.unit.storage.client import NOW, PATH, Log
from txnkafka.env import make_directories
from txnkafka.errors import TransactionCoordinatorFencedError
from txnkafka.storage.formats import parse_producer_snapshot
from txnkafka.storage.log.producer_snapshots import ProducerSnapshots
from txnkafka.storage.log.truncation import truncate_to
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles


def snapshots(*offsets: int, plan: FaultPlan | None = None) -> ProducerSnapshots:
    files = FaultyFiles(MemoryFiles(), plan or FaultPlan())
    make_directories(files, PATH)
    found = ProducerSnapshots(files, PATH)
    for offset in offsets:
        found.write(offset, b"state %d" % offset)
    return found


def test_the_newest_below_an_offset() -> None:
    found = snapshots(20, 0, 10)
    assert found.offsets == [0, 10, 20]
    assert [found.newest(offset) for offset in (0, 9, 10, 99)] == [0, 0, 10, 20]
    assert snapshots(5).newest(4) is None
    assert found.read(10) == b"state 10"
    found.write(10, b"another")
    assert (found.read(10), found.offsets) == (b"another", [0, 10, 20])


def test_psm_29_snapshots_above_the_log_end_are_removed() -> None:
    found = snapshots(0, 10, 20)
    found.remove_above(10)
    found.remove(5)
    found.remove_below(10)
    assert found.offsets == [10]
    assert not found._files.exists(found.path(20))


@pytest.mark.parametrize(
    ("bases", "left"), [([0, 10], [0, 10, 30]), ([0, 30], [0, 30]), ([0, 40], [0]), ([], [30])]
)
def test_psm_31_strays(bases: list[int], left: list[int]) -> None:
    """Snapshots that belong to no segment are removed, except the newest if it is above the last base
    offset."""
    found = snapshots(0, 10, 20, 30)
    found.remove_strays(bases)
    assert found.offsets == left


@pytest.mark.parametrize("short", [False, True])
def test_a_write_that_fails_leaves_none(short: bool) -> None:
    plan = FaultPlan()
    found = snapshots(5, plan=plan)
    plan.__init__(1, errno.ENOSPC, "write", short=short)
    with pytest.raises(OSError, match="planned"):
        found.write(9, b"state")
    assert found.offsets == [5]
    assert not found._files.exists(found.path(9))


def test_ul_60_the_state_at_an_offset_is_that_of_the_log_below_it() -> None:
    """Tests it with the snapshots and without them."""
    states = []
    for removed in (False, True):
        log = Log(segment_bytes=300)
        for number in range(8):
            log.idempotent(7, 2 * number)
            log.transactional(8, 2 * number)
        log.log.flush()
        if removed:
            for offset in list(log.log.snapshots.offsets):
                log.log.snapshots.remove(offset)
        truncate_to(log.log, 14, now_ms=NOW)
        states.append(log.log.producers.entries())
    assert states[0] == states[1]
    assert [entry.last_offset for entry in states[0]] == [13, 11]


def test_ul_63_a_snapshot_beyond_the_log_end_is_deleted() -> None:
    log = Log()
    log.idempotent(7, 0)
    log.log.snapshots.write(99, log.log.producers.snapshot())
    log.restart()
    assert log.log.snapshots.offsets == [2]


@pytest.mark.parametrize("clean", [False, True])
def test_ul_64_a_start_without_any_snapshot(clean: bool) -> None:
    """Kafka assumes after a clean stop without snapshots that there are no producers; here they are read from
    the log."""
    log = Log(segment_bytes=300)
    for number in range(6):
        log.transactional(7, 2 * number)
    before = log.log.producers.entries()
    log.log.close()
    for offset in list(log.log.snapshots.offsets):
        log.log.snapshots.remove(offset)
    log.restart(clean=clean)
    assert log.log.producers.entries() == before
    assert log.log.last_stable_offset == 0
    (entry,) = parse_producer_snapshot(log.log.snapshots.read(12))
    assert entry == before[0]


def test_a_snapshot_that_does_not_hold_gives_way_to_an_older_one() -> None:
    log = Log(segment_bytes=300)
    for number in range(6):
        log.idempotent(7, 2 * number)
    before = log.log.producers.entries()
    log.log.close()
    newest = log.log.snapshots.offsets[-1]
    log.log.files.open_to_write(log.log.snapshots.path(newest)).truncate(9)
    log.restart()
    assert log.log.producers.entries() == before
    assert len(parse_producer_snapshot(log.log.snapshots.read(newest))) == 1


@pytest.mark.parametrize("clean", [False, True])
def test_a_transaction_above_the_offset_of_its_snapshot_is_not_believed(clean: bool) -> None:
    log = Log()
    log.idempotent(7, 0)
    log.log.close()
    claimed = log.log.producers.entries()[0]._replace(current_txn_first_offset=2**61)
    log.log.snapshots.write(log.log.log_end_offset, write_snapshot([claimed]))
    log.restart(clean=clean)
    assert log.log.last_stable_offset == log.log.log_end_offset == 2
    assert log.log.producers.open_count == 0
    (entry,) = parse_producer_snapshot(log.log.snapshots.read(2))
    assert entry == claimed._replace(current_txn_first_offset=-1)


def test_a_producer_that_was_idle_for_long_and_writes_again_is_not_forgotten() -> None:
    """The newest snapshot may be from a time when the producer was idle; a zombie coordinator stays
    fenced."""
    log = Log(producer_id_expiration_ms=1000)
    log.end(7, coordinator_epoch=5)
    log.log.roll(NOW)
    log.now_ms += 2000
    log.transactional(7, 0, timestamp=log.now_ms)
    before = log.log.producers.entries()
    log.log.flush()
    log.restart(clean=False)
    assert log.log.producers.entries() == before
    with pytest.raises(TransactionCoordinatorFencedError):
        log.end(7, coordinator_epoch=4)


def test_psm_28_an_expired_producer_is_not_loaded() -> None:
    log = Log(producer_id_expiration_ms=1000)
    log.idempotent(7, 0)
    log.transactional(8, 0)
    log.now_ms += 1000
    log.restart()
    assert [entry.producer_id for entry in log.log.producers.entries()] == [8]
    assert log.idempotent(7, 40).first_offset == 4
