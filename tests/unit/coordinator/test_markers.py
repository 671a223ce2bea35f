"""Markers on their way: what is sent, tried again, given up and never forgotten."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.world import T0, T1, T2
from txnkafka.coordinator.txn.markers import Marker, Markers
from txnkafka.coordinator.txn.txn_events import MarkersWritten, WriteMarkers
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

NONE = ErrorCode.NONE
RETRIED = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.REQUEST_TIMED_OUT,
)
FATAL_IN_KAFKA = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


def effect(
    *partitions: TopicPartition, tid: str = "tx", epoch: int = 1, committed: bool = True
) -> WriteMarkers:
    return WriteMarkers(tid, 7, epoch, committed, frozenset(partitions), 2)


def begun(*partitions: TopicPartition) -> tuple[Markers, list[Marker]]:
    markers = Markers()
    assert markers.begin(effect(*partitions), 3, 0) is None
    return markers, markers.due(0)


def test_a_marker_says_all_that_its_partition_needs() -> None:
    _, (marker,) = begun(T0)
    assert marker == Marker("tx", T0, 7, 1, 3, True, 2)


def test_a_transaction_without_partitions_is_written_at_once() -> None:
    markers = Markers()
    assert markers.begin(effect(), 0, 0) == MarkersWritten("tx", 7, 1)
    assert (len(markers), markers.due(0), markers.deadline()) == (0, [], None)


def test_the_markers_of_all_transactions_are_due_together() -> None:
    markers = Markers()
    markers.begin(effect(T0, T1), 0, 0)
    markers.begin(effect(T1, T2, tid="other"), 0, 0)
    sent = [(marker.transactional_id, marker.partition) for marker in markers.due(0)]
    assert sent == [("tx", T0), ("tx", T1), ("other", T1), ("other", T2)]
    assert markers.due(10**9) == []


def test_the_last_partition_completes_the_transaction_once() -> None:
    markers, (first, second) = begun(T0, T1)
    assert markers.acknowledge(first, NONE, 0) is None
    assert markers.acknowledge(first, NONE, 0) is None
    assert markers.remaining("tx") == {T1}
    assert markers.acknowledge(second, NONE, 0) == MarkersWritten("tx", 7, 1)
    assert markers.acknowledge(second, NONE, 0) is None
    assert (len(markers), markers.remaining("tx")) == (0, frozenset())


@pytest.mark.parametrize("error", RETRIED + FATAL_IN_KAFKA)
def test_only_the_partition_that_failed_is_tried_again_and_for_ever(error: ErrorCode) -> None:
    markers, (first, second) = begun(T0, T1)
    assert markers.acknowledge(first, NONE, 0) is None
    now, waits = 0, []
    for _ in range(50):
        assert markers.acknowledge(second, error, now) is None
        deadline = markers.deadline()
        assert deadline is not None
        assert markers.due(deadline - 1) == []
        waits.append(deadline - now)
        now = deadline
        assert markers.due(now) == [second]
    assert waits == [20, 40, 80, 160, 320, 640, *[1_000] * 44]
    assert markers.acknowledge(second, NONE, now) == MarkersWritten("tx", 7, 1)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, id="format"),
        pytest.param(ErrorCode.UNSUPPORTED_VERSION, id="version"),
        pytest.param(ErrorCode.INVALID_PRODUCER_EPOCH, id="the partition has had it"),
    ],
)
def test_a_partition_that_needs_no_marker_counts_as_done(error: ErrorCode) -> None:
    markers, (marker,) = begun(T0)
    assert markers.acknowledge(marker, error, 0) == MarkersWritten("tx", 7, 1)


def test_a_fenced_coordinator_epoch_blocks_nobody_for_ever() -> None:
    markers, (marker, other) = begun(T0, T1)
    assert markers.acknowledge(other, NONE, 0) is None
    now, written = 0, None
    while written is None:
        written = markers.acknowledge(marker, ErrorCode.TRANSACTION_COORDINATOR_FENCED, now)
        deadline = markers.deadline()
        assert (written is None) == (deadline is not None)
        now = deadline or now
        assert now < 10_000
        assert markers.due(now) == ([] if written else [marker])
    assert written == MarkersWritten("tx", 7, 1)


def test_a_deleted_topic_holds_up_no_sibling() -> None:
    markers, (_, second) = begun(T0, T1)
    assert markers.partition_deleted(T0) == []
    assert markers.acknowledge(second, NONE, 0) == MarkersWritten("tx", 7, 1)
    markers.begin(effect(T0), 0, 0)
    markers.begin(effect(T0, tid="other"), 0, 0)
    written = {event.transactional_id for event in markers.partition_deleted(T0)}
    assert written == {"tx", "other"}
    assert markers.due(10**6) == []


def test_a_transaction_that_another_coordinator_has_is_forgotten() -> None:
    markers, (marker,) = begun(T0)
    markers.acknowledge(marker, ErrorCode.KAFKA_STORAGE_ERROR, 0)
    markers.forget("tx")
    assert (markers.due(10**6), markers.deadline(), len(markers)) == ([], None, 0)
    assert markers.acknowledge(marker, NONE, 0) is None


def test_an_acknowledgement_of_before_a_restart_removes_nothing() -> None:
    markers, (old,) = begun(T0)
    markers.begin(effect(T0), 4, 0)
    assert markers.acknowledge(old, NONE, 0) is None
    (new,) = markers.due(0)
    assert new.coordinator_epoch == 4
    assert markers.acknowledge(new, NONE, 0) == MarkersWritten("tx", 7, 1)


def test_an_acknowledgement_of_an_earlier_transaction_completes_no_later_one() -> None:
    markers, (old,) = begun(T0)
    markers.acknowledge(old, NONE, 0)
    markers.begin(effect(T0, epoch=2), 3, 0)
    assert markers.acknowledge(old, NONE, 0) is None
    assert markers.remaining("tx") == {T0}


def test_a_marker_that_is_tried_again_is_not_sent_twice_at_a_time() -> None:
    markers, (marker,) = begun(T0)
    markers.acknowledge(marker, ErrorCode.REQUEST_TIMED_OUT, 0)
    assert markers.due(20) == [marker]
    assert markers.due(10**6) == []
