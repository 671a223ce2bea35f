"""The producer table, line by line of what Kafka's ProducerStateManagerTest expects.

The numbers are those of the conformance checklist. Lines 29 and 31 (which snapshot files are deleted), and
the part of line 27 about using an older snapshot, concern files and belong to the log.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.models.builder import Batch
from tests.models.headers import ABORT, data, encode, marker
from tests.models.producer_state import write_snapshot
from tests.unit.core.producers import NEVER, TIME, Partition
from txnkafka._core.producer_table import COORDINATOR, REPLICATION, ProducerTable
from txnkafka._core.scan import scan
from txnkafka._core.validate import read_batch
from txnkafka.errors import CorruptFileError
from txnkafka.model import CompletedTxn
from txnkafka.storage.log.verification import NO_GUARD, VerificationState

LARGEST = 2**31 - 1
OUT_OF_ORDER, INVALID_EPOCH, INVALID_TXN_STATE, FENCED = 45, 47, 48, 52


@pytest.fixture
def partition() -> Partition:
    return Partition()


def test_psm_01_next_sequence_of_the_same_epoch(partition: Partition) -> None:
    partition.append(partition.data(0))
    partition.append(partition.data(1))
    assert partition.entry().last_sequence == 1


def test_psm_02_gap_in_the_sequence(partition: Partition) -> None:
    partition.append(partition.data(0))
    checked = partition.check(partition.data(2))
    assert (checked.code, checked.text) == (OUT_OF_ORDER, "producer 1: sequence 2 comes after 0")
    assert partition.entry().last_sequence == 0


def test_psm_03_lower_epoch(partition: Partition) -> None:
    partition.append(partition.data(0, epoch=5))
    checked = partition.check(partition.data(1, epoch=4))
    assert checked.code == INVALID_EPOCH
    assert checked.text == "producer 1: epoch 4 is older than epoch 5, which came before"


def test_psm_04_new_epoch_begins_with_sequence_0(partition: Partition) -> None:
    partition.append(partition.data(0))
    assert partition.check(partition.data(1, epoch=1)).code == OUT_OF_ORDER
    partition.append(partition.data(0, epoch=1))
    assert partition.entry()[:3] == (1, 1, -1)


def test_psm_05_unknown_producer_begins_anywhere(partition: Partition) -> None:
    partition.append(partition.data(17))
    assert partition.entry().last_sequence == 17


def test_psm_06_marker_of_an_unknown_producer(partition: Partition) -> None:
    assert partition.end(epoch=3) is None
    assert partition.entry() == (1, 3, 0, TIME, -1, -1, -1, 0)
    assert partition.check(partition.data(1, epoch=3)).code == OUT_OF_ORDER
    partition.append(partition.data(0, epoch=3))


def test_psm_07_sequence_wraps_between_batches(partition: Partition) -> None:
    partition.append(partition.data(LARGEST))
    partition.append(partition.data(0))


def test_psm_08_sequence_wraps_inside_a_batch(partition: Partition) -> None:
    partition.append(partition.data(LARGEST - 1, records=5))
    assert partition.entry()[5:] == (2, 4, 4)
    assert partition.entry().first_sequence == LARGEST - 1
    partition.append(partition.data(3))


def test_psm_09_sequence_wraps_to_0_only(partition: Partition) -> None:
    partition.append(partition.data(LARGEST))
    assert partition.check(partition.data(1)).code == OUT_OF_ORDER


def test_psm_10_first_batch_of_a_replay_is_not_checked(partition: Partition) -> None:
    partition.append(partition.data(7, epoch=3), REPLICATION)
    assert partition.entry()[:2] == (1, 3)


def test_psm_11_replicas_take_a_gap(partition: Partition) -> None:
    partition.append(partition.data(0))
    partition.append(partition.data(5), REPLICATION)
    assert partition.entry()[5:] == (5, 1, 0)


def test_psm_12_replicas_take_an_unknown_producer_midway(partition: Partition) -> None:
    partition.append(partition.data(100, producer_id=9), REPLICATION)
    assert partition.entry(9).last_sequence == 100


def test_psm_13_marker_with_a_higher_epoch(partition: Partition) -> None:
    partition.append(partition.txn(0))
    assert partition.end(epoch=1, version=2) == (1, 0, 1, False, 2)
    assert partition.entry() == (1, 1, 0, TIME, -1, -1, -1, 0)
    assert partition.table.known_batches(1) == []


def test_psm_14_sequence_after_the_epoch_moved_on(partition: Partition) -> None:
    partition.append(partition.txn(0))
    partition.end(epoch=1, version=2)
    assert partition.check(partition.txn(1, epoch=1)).code == OUT_OF_ORDER
    partition.append(partition.txn(0, epoch=1))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_psm_15_marker_with_a_lower_epoch(partition: Partition, version: int) -> None:
    partition.append(partition.txn(0, epoch=5))
    checked = partition.check(partition.marker(epoch=4), COORDINATOR, transaction_version=version)
    assert checked.code == INVALID_EPOCH


def test_psm_16_marker_with_a_lower_coordinator_epoch(partition: Partition) -> None:
    partition.end(coordinator_epoch=7)
    for _ in range(2):
        late = partition.marker(coordinator_epoch=6)
        checked = partition.check(late, COORDINATOR, transaction_version=1)
        text = "producer 1: coordinator epoch 6 is older than 7, which came before"
        assert (checked.code, checked.text) == (FENCED, text)
        partition.reload()


def test_psm_17_plain_data_during_a_transaction(partition: Partition) -> None:
    partition.append(partition.txn(0))
    checked = partition.check(partition.data(1))
    assert checked.code == INVALID_TXN_STATE
    assert checked.text.endswith("not transactional, but a transaction is open from offset 0 on")


def test_psm_18_offset_commits_have_no_sequence(partition: Partition) -> None:
    partition.append(partition.txn(-1), COORDINATOR)
    partition.append(partition.txn(-1), COORDINATOR)
    assert partition.entry()[4:] == (0, -1, 1, 0)
    assert partition.check(partition.txn(-1, epoch=-1), COORDINATOR).code == INVALID_EPOCH


def test_psm_19_empty_control_batch(partition: Partition) -> None:
    partition.append(partition.txn(0))
    before = partition.table.snapshot()
    emptied = Batch(producer_id=1, producer_epoch=3, control=True, last_offset_delta=0).encode()
    assert partition.table.check(read_batch(emptied), REPLICATION).code == 0
    assert partition.table.append(read_batch(emptied)) is None
    assert partition.table.snapshot() == before


def test_psm_20_empty_transaction(partition: Partition) -> None:
    partition.append(partition.txn(0, producer_id=2))
    assert partition.end(ABORT) is None
    assert partition.table.first_unstable_offset == 0


def test_psm_21_index_of_a_transaction_while_another_is_open(partition: Partition) -> None:
    partition.append(partition.txn(0))
    partition.append(partition.txn(0, producer_id=2))
    assert partition.end(ABORT) == CompletedTxn(1, 0, 2, True, 1)


def test_psm_22_index_of_the_only_transaction(partition: Partition) -> None:
    partition.append(partition.txn(0))
    assert partition.end() == CompletedTxn(1, 0, 1, False, 2)


def test_a_marker_that_claims_several_offsets_is_at_its_first() -> None:
    """No broker writes one; for Kafka it is at the offset of its record."""
    completed = list[CompletedTxn]()
    index = scan(encode([data(1, 0, 0), marker(1, 0, 1, ABORT, last_offset=3)]))
    ProducerTable().replay(index, 0, completed)
    assert completed == [CompletedTxn(1, 0, 1, True, 2)]


def test_psm_23_unstable_until_the_high_watermark_passes_the_marker(partition: Partition) -> None:
    partition.append(partition.data(0, producer_id=2))
    partition.append(partition.txn(0))
    partition.end()
    table = partition.table
    table.on_high_watermark(2)
    assert (table.first_undecided_offset, table.first_unstable_offset) == (None, 1)
    table.on_high_watermark(3)
    assert table.first_unstable_offset is None


def test_psm_24_last_timestamp_of_the_oldest_transaction(partition: Partition) -> None:
    """A transaction hangs when the clock is more than its timeout plus five minutes after this timestamp."""
    table = partition.table
    assert table.oldest_transaction_timestamp == -1
    partition.append(partition.txn(0, max_timestamp=500))
    partition.append(partition.txn(0, producer_id=2, max_timestamp=400))
    partition.append(partition.txn(1, max_timestamp=900))
    assert table.oldest_transaction_timestamp == 900
    partition.end(ABORT)
    assert table.oldest_transaction_timestamp == 400


def test_psm_25_open_transaction_in_a_snapshot(partition: Partition) -> None:
    partition.append(partition.txn(0, producer_id=2))
    partition.append(partition.txn(0))
    partition.reload()
    assert partition.table.first_unstable_offset == 0
    assert [each[0] for each in partition.table.open_transactions()] == [2, 1]
    assert partition.end(ABORT, producer_id=2) == CompletedTxn(2, 0, 2, True, 1)


def test_psm_26_a_snapshot_comes_back(partition: Partition) -> None:
    partition.append(partition.txn(7, records=3, epoch=4, producer_id=2**63 - 1))
    partition.append(partition.data(0))
    partition.end(coordinator_epoch=9, epoch=32767, producer_id=3)
    before = partition.table.entries()
    partition.reload()
    assert partition.table.entries() == before
    assert [each.producer_id for each in before] == [1, 3, 2**63 - 1]
    assert partition.table.snapshot() == write_snapshot(before)


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda content: b"", "0 bytes are not a producer snapshot"),
        (lambda content: content[:9], "9 bytes are not a producer snapshot"),
        (lambda content: content[:-1], "CRC is"),
        (lambda content: content + b"\0", "CRC is"),
        (lambda content: content[:20] + b"\7" + content[21:], "CRC is"),
        (lambda content: b"\0\2" + content[2:], "version 2 is not known"),
    ],
)
def test_psm_27_a_damaged_snapshot_changes_nothing(
    partition: Partition, damage: Callable[[bytes], bytes], text: str
) -> None:
    partition.append(partition.txn(0))
    before = partition.table.snapshot()
    with pytest.raises(CorruptFileError, match=text):
        partition.table.load(damage(before), now_ms=0, expiration_ms=NEVER)
    assert partition.table.snapshot() == before
    assert partition.table.first_unstable_offset == 0


def test_psm_28_expiry(partition: Partition) -> None:
    partition.append(partition.txn(0))
    partition.append(partition.data(0, producer_id=2, max_timestamp=TIME + 1))
    partition.append(partition.data(0, producer_id=3))
    content, table = partition.table.snapshot(), ProducerTable()
    table.load(content, now_ms=TIME + 50, expiration_ms=50)
    assert [each.producer_id for each in table.entries()] == [1, 2]
    assert partition.table.expire(TIME + 50, 50) == 1
    assert partition.table.snapshot() == table.snapshot()
    assert partition.table.expire(2**62, 50) == 1
    assert [each.producer_id for each in partition.table.entries()] == [1]
    assert partition.table.expired == 2
    partition.append(partition.data(99, producer_id=2))


def test_psm_30_clear(partition: Partition) -> None:
    partition.append(partition.txn(0))
    partition.append(partition.txn(0, producer_id=2))
    partition.end()
    partition.table.clear()
    assert partition.table.entries() == partition.table.open_transactions() == []
    assert partition.table.first_unstable_offset is None
    assert partition.table.snapshot() == write_snapshot([])


def test_psm_32_data_behind_a_marker_that_fenced(partition: Partition) -> None:
    partition.append(partition.txn(0))
    assert partition.end(ABORT, epoch=1) == CompletedTxn(1, 0, 1, True, 2)
    assert partition.check(partition.txn(1)).code == INVALID_EPOCH
    assert partition.check(partition.data(1)).code == INVALID_EPOCH


def test_psm_33_the_same_verification_is_joined(partition: Partition) -> None:
    state = VerificationState()

    def start(sequence: int, epoch: int) -> int:
        return state.maybe_start(partition.table, 1, epoch, sequence, supports_epoch_bump=True, now_ms=0)

    guard = start(5, 0)
    assert guard == start(7, 0) == start(3, 0)
    pending = state.pending(1)
    assert pending is not None
    assert (pending.lowest_sequence, pending.producer_epoch) == (3, 0)
    assert start(4, 1) == guard
    assert (pending.lowest_sequence, pending.producer_epoch) == (4, 1)
    assert start(0, 0) == guard
    assert (pending.lowest_sequence, pending.producer_epoch) == (4, 1)
    assert pending.matches(guard)
    assert not pending.matches(guard + 1)
    assert not pending.matches(NO_GUARD)
    assert state.pending(2) is None


def test_psm_34_nothing_overtakes_what_is_being_verified(partition: Partition) -> None:
    partition.append(partition.data(0))
    checked = partition.check(partition.txn(1), lowest_sequence=0)
    assert checked.code == OUT_OF_ORDER
    assert checked.text == "producer 1: sequence 1 comes before a smaller one, for which the partition waits"
    partition.append(partition.txn(1), lowest_sequence=1)


def test_psm_35_verifications_expire(partition: Partition) -> None:
    state = VerificationState()
    state.maybe_start(partition.table, 1, 0, 0, supports_epoch_bump=False, now_ms=100)
    state.expire(149, 50)
    assert len(state) == 1
    state.expire(150, 50)
    assert state.pending(1) is None


def test_psm_36_first_sequence_while_being_verified(partition: Partition) -> None:
    checked = partition.check(partition.txn(5), lowest_sequence=5, supports_epoch_bump=1)
    assert checked.code == OUT_OF_ORDER
    assert checked.text.endswith("sequence 5 comes where nothing is known of the producer and 0 is next")
    assert partition.check(partition.txn(0), lowest_sequence=0, supports_epoch_bump=1).code == 0
    partition.append(partition.txn(5), lowest_sequence=5)


def test_psm_37_marker_with_the_epoch_of_the_data(partition: Partition) -> None:
    partition.append(partition.txn(0))
    assert partition.check(partition.marker(), COORDINATOR, transaction_version=2).code == INVALID_EPOCH
    partition.end(epoch=1, version=2)
    before = partition.entry()
    assert partition.end(epoch=1, version=2) is None
    assert partition.entry() == before


def test_psm_37_the_last_epoch_has_no_next(partition: Partition) -> None:
    partition.append(partition.txn(0, epoch=32767))
    assert partition.end(ABORT, epoch=32767, version=2) == CompletedTxn(1, 0, 1, True, 2)


def test_psm_38_markers_of_version_2_count_up(partition: Partition) -> None:
    partition.append(partition.txn(0, epoch=5))
    for epoch in (4, 5):
        checked = partition.check(partition.marker(epoch=epoch), COORDINATOR, transaction_version=2)
        assert checked.code == INVALID_EPOCH
    partition.end(epoch=6, version=2)
