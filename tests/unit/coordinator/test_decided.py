"""The decision for an open transaction that its coordinator completed without a marker."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.transition_cases import EPOCH, INSIDE, PRODUCER, state_of
from txnkafka.coordinator.txn.decided import Decision, History, OpenTransaction, Seen, decide
from txnkafka.coordinator.txn.txn_image import completed, prepared
from txnkafka.wire.records import TransactionMetadata, TransactionState

S = TransactionState
OPEN = OpenTransaction(INSIDE, PRODUCER, EPOCH)
START, DECIDED, DONE = 1_000, 2_000, 3_000


def records(state: S, version: int, start: int = START) -> list[TransactionMetadata]:
    """The records of a transaction that ends with ``state``."""
    ongoing = state_of(S.ONGOING)._replace(start_timestamp=start, client_transaction_version=version)
    ending = prepared(ongoing, state, now_ms=start + 1_000, client_transaction_version=version)
    return [ongoing, ending, completed(ending, start + 2_000)]


def decision(log: list[TransactionMetadata], seen: Seen, wanted: OpenTransaction = OPEN) -> Decision | None:
    history = History([wanted])
    for each in log:
        history.take(each)
    return decide(*history.found(wanted), seen)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_the_log_of_the_coordinator_decides(version: int, state: S) -> None:
    """The first record is often older than the transaction: a client creates it before it joins."""
    found = decision(records(state, version), Seen(START - 5, -1, True))
    assert found is not None
    assert found.is_clear
    assert found.ended.committed == (state == S.PREPARE_COMMIT)
    assert found.ended.marker_epoch == EPOCH + (version == 2)


def test_a_marker_after_the_decision_belongs_to_it() -> None:
    assert decision(records(S.PREPARE_COMMIT, 0), Seen(START, DECIDED, True)) is None


def test_another_epoch_is_another_transaction() -> None:
    older = OPEN._replace(producer_epoch=EPOCH - 1)
    assert decision(records(S.PREPARE_COMMIT, 2), Seen(START, -1, True), older) is None


def test_data_of_two_epochs_is_not_clear() -> None:
    found = decision(records(S.PREPARE_COMMIT, 2), Seen(START, -1, False))
    assert found is not None
    assert not found.is_clear


@pytest.mark.parametrize(("first", "is_clear"), [(START, True), (START - 1, False)])
def test_of_a_compacted_log_the_start_time_counts_below_version_2(first: int, is_clear: bool) -> None:
    found = decision(records(S.PREPARE_COMMIT, 0)[-1:], Seen(first, -1, True))
    assert found is not None
    assert found.is_clear == is_clear


def test_two_outcomes_without_a_marker_between_them_are_not_clear() -> None:
    log = records(S.PREPARE_ABORT, 0) + records(S.PREPARE_COMMIT, 0, start=10_000)
    found = decision(log, Seen(START, -1, True))
    assert found is not None
    assert not found.is_clear
    found = decision(log, Seen(10_000, DECIDED, True))
    assert found is not None
    assert found.is_clear
    assert found.ended.committed


@pytest.mark.parametrize("version", [0, 2])
def test_a_marker_in_the_millisecond_of_the_decision(version: int) -> None:
    """From version 2 on it can only be that of an earlier transaction: no data of an epoch follows its
    marker. Below, it may be the marker of this one, and the data after it another transaction."""
    found = decision(records(S.PREPARE_COMMIT, version), Seen(DECIDED, DECIDED, True))
    assert (found is not None) == (version == 2)
