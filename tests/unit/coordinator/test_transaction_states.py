"""The last record of a transactional id is its state."""

from __future__ import annotations

from tests.models.coordinator_log import transaction_key, transaction_value
from txnkafka.coordinator import KEPT_RECORD, LogEvent, TransactionStates

A, B = transaction_key("a"), transaction_key("b")


def replayed(*records: tuple[bytes | None, bytes | None]) -> TransactionStates:
    states = TransactionStates()
    for i, (key, value) in enumerate(records):
        states.replay(LogEvent(i, -1, None, key, value))
    return states


def producer_ids(states: TransactionStates) -> dict[str, int]:
    decoded = [metadata for _, metadata in states.decoded() if metadata is not None]
    return {metadata.transactional_id: metadata.producer_id for metadata in decoded}


def test_the_last_record_counts_and_a_tombstone_forgets() -> None:
    states = replayed((A, transaction_value(1)), (B, transaction_value(2)), (A, transaction_value(3)))
    assert producer_ids(states) == {"a": 3, "b": 2}
    states.replay(LogEvent(3, -1, None, A, None))
    assert producer_ids(states) == {"b": 2}
    assert [record.is_tombstone for record, _ in states.decoded()] == [True, False]


def test_what_cannot_be_read_has_no_state_and_replaces_the_older_one() -> None:
    ((record, metadata),) = replayed((A, transaction_value(1)), (A, b"\0\x63what")).decoded()
    assert metadata is None
    assert record.error is not None
    assert "transaction_log version 99 is not known" in record.error


def test_an_end_marker_changes_nothing() -> None:
    states = replayed((A, transaction_value(1)))
    states.replay(LogEvent(1, 5, True, None, None))
    assert producer_ids(states) == {"a": 1}


def test_kept_bytes() -> None:
    states = replayed((A, transaction_value(1)), (A, b"xyz"), (B, None))
    assert states.kept_bytes() == 2 * KEPT_RECORD + len(A) + 3 + len(B)
