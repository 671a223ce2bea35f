"""Which transactions that are open in a partition the coordinator ends, and which it can only learn of."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.transition_cases import ANOTHER, EPOCH, FOREIGN, INSIDE, PRODUCER, state_of
from txnkafka.coordinator.txn.open_transactions import is_next_of, will_end
from txnkafka.model import ProducerStateEntry
from txnkafka.wire.records import TransactionState

S = TransactionState
IDLE = (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)
PREPARED = (S.PREPARE_COMMIT, S.PREPARE_ABORT)


def entry(producer_id: int = PRODUCER, epoch: int = EPOCH) -> ProducerStateEntry:
    """A producer with a transaction that is open from offset 3 on."""
    return ProducerStateEntry(producer_id, epoch, 0, 0, 3, 0, 3, 0)


def test_an_open_transaction_ends_where_it_has_its_partition() -> None:
    ongoing = state_of(S.ONGOING)
    assert will_end(ongoing, INSIDE, entry())
    assert not will_end(ongoing, ANOTHER, entry())
    assert not will_end(ongoing, INSIDE, entry(FOREIGN))
    for state in IDLE:
        assert not will_end(state_of(state), INSIDE, entry())


@pytest.mark.parametrize("state", PREPARED)
@pytest.mark.parametrize(("version", "ends_equal"), [(0, True), (2, False)])
def test_markers_end_what_has_an_older_epoch(state: S, version: int, ends_equal: bool) -> None:
    """Below transaction version 2 the markers have the epoch of the data, and the next transaction waits."""
    prepared = state_of(state)._replace(client_transaction_version=version)
    assert will_end(prepared, INSIDE, entry(epoch=EPOCH - 1))
    assert will_end(prepared, INSIDE, entry()) == ends_equal
    assert not will_end(prepared, INSIDE, entry(epoch=EPOCH + 1))


@pytest.mark.parametrize("state", [*IDLE, *PREPARED, S.ONGOING])
@pytest.mark.parametrize("version", [0, 2])
def test_the_next_transaction_is_known_by_an_epoch_of_its_own(state: S, version: int) -> None:
    owner = state_of(state)._replace(client_transaction_version=version)
    assert is_next_of(owner, entry()) == (version == 2 or state == S.EMPTY)
    for epoch in (EPOCH - 1, EPOCH + 1):
        assert not is_next_of(owner, entry(epoch=epoch))
    assert not is_next_of(owner, entry(FOREIGN))


def test_the_next_producer_id_begins_with_epoch_0() -> None:
    owner = state_of(S.PREPARE_COMMIT)._replace(next_producer_id=99)
    assert is_next_of(owner, entry(99, 0))
    assert not is_next_of(owner, entry(99, 1))
    assert not will_end(owner, INSIDE, entry(99, 0))
