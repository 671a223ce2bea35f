"""The producer table beyond Kafka's own list: retries after a restart, guards, bounds, damage, memory."""

from __future__ import annotations

import struct
import sys

import pytest

from tests.models.builder import Batch, PlainRecord, control_batch
from tests.models.headers import ABORT, COMMIT, encode
from tests.unit.core.producers import TIME, Partition
from txnkafka._core.producer_table import CLIENT, COORDINATOR, REPLICATION, ProducerTable
from txnkafka._core.scan import scan
from txnkafka._core.validate import read_batch
from txnkafka.errors import InvalidProducerEpochError
from txnkafka.storage.log.verification import NO_GUARD, VerificationState

OUT_OF_ORDER, INVALID_EPOCH, INVALID_TXN_STATE, INVALID_RECORD = 45, 47, 48, 87


@pytest.fixture
def partition() -> Partition:
    return Partition()


def test_duplicates_of_five_batches(partition: Partition) -> None:
    batches = [partition.data(0)]
    for number in range(6):
        header = partition.data(2 * number, records=2, max_timestamp=TIME + number)
        batches.append(header)
        partition.append(header)
    for number, header in enumerate(batches[2:], start=1):
        checked = partition.check(header)
        assert checked.is_duplicate
        assert (checked.code, checked.text, checked.search_below) == (0, "", -1)
        found = (checked.first_offset, checked.last_offset, checked.timestamp)
        assert found == (2 * number, 2 * number + 1, TIME + number)
    assert partition.check(batches[1]).code == OUT_OF_ORDER, "a sixth is forgotten"
    assert partition.check(partition.data(2)).code == OUT_OF_ORDER, "half of one is no duplicate"
    assert partition.check(batches[2], COORDINATOR).is_duplicate is False


def test_a_duplicate_dies_with_its_epoch(partition: Partition) -> None:
    """A retry of an aborted batch must not be answered with the aborted batch's offset."""
    first = partition.txn(0)
    partition.append(first)
    partition.end(ABORT, epoch=1, version=2)
    assert partition.check(first).code == INVALID_EPOCH
    assert not partition.check(first._replace(producer_epoch=1)).is_duplicate


def test_an_idempotent_duplicate_dies_with_its_epoch(partition: Partition) -> None:
    """The producer that comes after it begins with the same sequences."""
    first = partition.data(0)
    partition.append(first)
    partition.append(partition.data(0, epoch=1, records=2))
    assert partition.check(first).code == INVALID_EPOCH


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
@pytest.mark.parametrize("is_reloaded", [False, True])
def test_a_duplicate_dies_with_its_transaction(partition: Partition, kind: int, is_reloaded: bool) -> None:
    """With transaction version 1 the epoch stays. When librdkafka aborts, it purges messages that wait for
    their retry, and gives their sequences to the next ones."""
    partition.append(partition.txn(0))
    partition.append(partition.txn(1))
    partition.end(kind)
    if is_reloaded:
        partition.reload()
    for sequence in (0, 1):
        again = partition.check(partition.txn(sequence))
        assert (again.is_duplicate, again.code, again.search_below) == (False, OUT_OF_ORDER, -1)
    said = "sequence 1 is that of a batch in a transaction that has ended, 1 was the last"
    assert again.text == f"producer 1: {said}"
    assert partition.check(partition.txn(1), verified=False).code == INVALID_TXN_STATE
    partition.append(following := partition.txn(2))
    assert partition.check(following).is_duplicate
    assert partition.check(partition.txn(1)).code == OUT_OF_ORDER
    assert partition.check(partition.data(1)).is_duplicate, "plain data"


def test_a_duplicate_of_an_open_transaction_is_known_after_a_restart(partition: Partition) -> None:
    partition.append(partition.txn(0))
    partition.end()
    for sequence in (1, 2, 3):
        partition.append(partition.txn(sequence))
    partition.reload()
    assert partition.check(partition.txn(3)).is_duplicate
    assert partition.check(partition.txn(2)).search_below == 4
    partition.table.remember_older(scan(partition.log), 1)
    assert partition.check(partition.txn(1)).is_duplicate
    assert partition.check(partition.txn(0)).code == OUT_OF_ORDER


def test_a_duplicate_is_known_after_a_restart(partition: Partition) -> None:
    for sequence in range(7):
        partition.append(partition.data(sequence))
    partition.reload()
    third, last = partition.data(3), partition.data(6)
    assert partition.check(last).is_duplicate
    checked = partition.check(third)
    assert (checked.code, checked.search_below) == (OUT_OF_ORDER, 6)
    assert partition.check(partition.data(8)).search_below == -1, "a gap ahead is no duplicate"
    assert partition.table.misses_older(1)
    partition.table.remember_older(scan(partition.log), 1)
    assert not partition.table.misses_older(1)
    assert [each.first_sequence for each in partition.table.known_batches(1)] == [2, 3, 4, 5, 6]
    checked = partition.check(third)
    assert (checked.is_duplicate, checked.first_offset, checked.timestamp) == (True, 3, TIME)


def test_a_search_ends_where_the_epoch_began(partition: Partition) -> None:
    partition.append(partition.txn(0))
    partition.end(ABORT, epoch=1, version=2)
    for sequence in range(2):
        partition.append(partition.txn(sequence, epoch=1))
    partition.reload()
    assert partition.check(partition.txn(0, epoch=1)).search_below == 3
    partition.table.remember_older(scan(partition.log), 1)
    assert not partition.table.misses_older(1)
    assert [each.first_offset for each in partition.table.known_batches(1)] == [2, 3]
    assert partition.check(partition.txn(0, epoch=1)).is_duplicate


def test_a_search_can_be_given_up(partition: Partition) -> None:
    partition.append(partition.data(8))
    partition.reload()
    assert partition.check(partition.data(5)).search_below == 0
    partition.table.end_search(1)
    assert partition.check(partition.data(5)).search_below == -1


def test_transactional_data_needs_a_verified_request(partition: Partition) -> None:
    assert partition.check(partition.txn(0), verified=0).code == INVALID_TXN_STATE
    partition.append(partition.txn(0), verified=1)
    partition.append(partition.txn(1), verified=0)
    partition.end()
    assert partition.check(partition.txn(2), verified=0).code == INVALID_TXN_STATE
    assert partition.check(partition.data(2), verified=0).code == 0
    assert partition.check(partition.marker(), COORDINATOR, verified=0, transaction_version=1).code == 0


def test_a_verification_ends_with_the_first_batch_or_a_marker(partition: Partition) -> None:
    state = VerificationState()

    def start(epoch: int) -> int:
        return state.maybe_start(partition.table, 1, epoch, 0, supports_epoch_bump=True, now_ms=0)

    assert start(1) != NO_GUARD
    state.on_append(read_batch(encode([partition.marker(epoch=1)])))
    assert len(state) == 1, "that marker ended the transaction before"
    state.on_append(read_batch(encode([partition.marker(epoch=2)])))
    assert len(state) == 0
    start(1)
    partition.append(partition.txn(0, epoch=1))
    state.on_append(read_batch(encode([partition.txn(1, epoch=1)])))
    assert len(state) == 0
    assert start(1) == NO_GUARD, "the transaction is open"
    with pytest.raises(InvalidProducerEpochError, match="epoch 0 is older than epoch 1"):
        start(0)


def test_a_marker_needs_the_version_of_its_request(partition: Partition) -> None:
    checked = partition.check(partition.marker(), COORDINATOR)
    text = "producer 1: a marker needs the transaction version of its request"
    assert (checked.code, checked.text) == (-1, text)
    assert partition.check(partition.marker(), REPLICATION).code == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"\0\0\0\7", b"\0" * 6), (b"\0\0\0\1", b"\0" * 5), (b"\xff\xff\0\1", b"\0" * 6), (b"", b"\0" * 6)],
)
def test_a_control_batch_that_ends_nothing(partition: Partition, key: bytes, value: bytes) -> None:
    batch = control_batch(key, value, producer_id=1, producer_epoch=0, base_offset=0)
    checked = partition.table.check(read_batch(batch), COORDINATOR, transaction_version=1)
    text = "producer 1: the control batch is no readable end marker"
    assert (checked.code, checked.text) == (INVALID_RECORD, text)


@pytest.mark.parametrize("size", [0, 1, 60])
def test_bytes_that_are_no_batch(partition: Partition, size: int) -> None:
    batch = read_batch(encode([partition.data(0)])[:size])
    checked = partition.table.check(batch, CLIENT)
    assert (checked.code, checked.text) == (2, "there is no whole batch here")
    with pytest.raises(ValueError, match="the bytes that were written are not a whole batch"):
        partition.table.append(batch)
    assert len(partition.table) == 0


def test_a_marker_whose_checksum_is_wrong(partition: Partition) -> None:
    batch = bytearray(encode([partition.marker()]))
    batch[-1] ^= 1
    assert partition.table.check(read_batch(batch), COORDINATOR, transaction_version=1).code == 2


def test_batches_without_a_producer(partition: Partition) -> None:
    batch = read_batch(Batch(records=[PlainRecord(None, b"v", 0)]).encode())
    assert partition.table.check(batch, CLIENT).code == 0
    assert partition.table.append(batch) is None
    assert len(partition.table) == 0


def test_the_number_of_idle_producers_is_bounded(partition: Partition) -> None:
    for producer_id in range(600):
        timestamp = TIME + (producer_id * 7919) % 600
        partition.append(partition.data(0, producer_id=producer_id, max_timestamp=timestamp))
    partition.append(partition.txn(0, producer_id=1000, max_timestamp=0))
    table = partition.table
    assert table.evict(600) == 0
    assert table.evict(10) == table.evicted == 590
    assert sorted(each.last_timestamp for each in table.entries()) == [0, *range(TIME + 590, TIME + 600)]
    assert (len(table), table.open_count, table.first_unstable_offset) == (11, 1, 600)
    assert table.evict(0) == 10
    assert [each.producer_id for each in table.entries()] == [1000]


@pytest.mark.parametrize("now_ms", [-(2**63), 2**63 - 1])
def test_clocks_at_the_end_of_time(partition: Partition, now_ms: int) -> None:
    partition.append(partition.data(0, max_timestamp=-(2**63)))
    partition.append(partition.data(0, producer_id=2, max_timestamp=2**63 - 1))
    partition.table.expire(now_ms, 1000)
    assert [each.producer_id for each in partition.table.entries()] == ([1, 2] if now_ms < 0 else [2])


HEADER = struct.Struct(">qiibIhiqqqhii")


def test_a_producer_costs_less_than_200_bytes() -> None:
    assert sys.getsizeof(ProducerTable()) < 300
    for count, most in ((1, 1300), (1000, 200), (100_000, 200), (150_000, 200)):
        table = ProducerTable()
        headers = (HEADER.pack(i, 49, 0, 2, 0, 0, 0, TIME, TIME, i, 0, 0, 1) for i in range(count))
        table.replay(scan(b"".join(headers)), 0, [])
        assert len(table) == count
        assert sys.getsizeof(table) / count < most


def test_the_smallest_first_offset_of_many_that_ended(partition: Partition) -> None:
    """Transactions that began in one order and ended in another."""
    began = [3, 0, 4, 1, 5, 2]
    for producer_id in sorted(began):
        partition.append(partition.txn(0, producer_id=producer_id))
    for producer_id in began:
        partition.end(producer_id=producer_id)
    unstable = []
    for high_watermark in range(6, 13):
        partition.table.on_high_watermark(high_watermark)
        unstable.append(partition.table.first_unstable_offset)
    assert unstable == [0, 0, 1, 1, 2, 2, None]
