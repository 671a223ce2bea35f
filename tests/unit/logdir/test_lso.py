"""Verdicts about open transactions, one rule per test, and the rest of the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.builder import Batch, PlainRecord, end_marker
from tests.models.coordinator_log import transaction_key, transaction_value
from tests.unit.logdir.logs import write_log
from txnkafka import LogDir, TopicPartition
from txnkafka._core.read_committed import TransactionRange
from txnkafka.logdir.coordinator import CoordinatorView
from txnkafka.logdir.explain import Explanation, JudgedTransaction
from txnkafka.logdir.lso import explanation_of
from txnkafka.logdir.repair_advice import repair_advice
from txnkafka.logdir.verdict import Circumstances, Judgement, Verdict, judge
from txnkafka.model import ProducerStateEntry
from txnkafka.wire.records import TransactionMetadata, TransactionState

PARTITION = TopicPartition("orders", 3)
NOW = 10_000_000
ONGOING, PREPARE_COMMIT = TransactionState.ONGOING, TransactionState.PREPARE_COMMIT


def transaction(
    producer_id: int = 7, producer_epoch: int = 4, last_timestamp: int = 1000
) -> TransactionRange:
    return TransactionRange(
        producer_id, producer_epoch, 20, 29, 900, last_timestamp, 2, 10, 500, "open", 29, -1, -1
    )


def owner(
    state: TransactionState = ONGOING,
    *,
    producer_id: int = 7,
    producer_epoch: int = 4,
    previous_producer_id: int = -1,
    next_producer_id: int = -1,
    timeout_ms: int = 60_000,
    start_timestamp: int = NOW,
    topic_partitions: frozenset[TopicPartition] = frozenset([PARTITION]),
) -> TransactionMetadata:
    return TransactionMetadata(
        transactional_id="shop",
        producer_id=producer_id,
        previous_producer_id=previous_producer_id,
        next_producer_id=next_producer_id,
        producer_epoch=producer_epoch,
        next_producer_epoch=-1,
        transaction_timeout_ms=timeout_ms,
        state=state,
        topic_partitions=topic_partitions,
        last_update_timestamp=NOW - 5,
        start_timestamp=start_timestamp,
        client_transaction_version=2,
    )


# 50 partitions, the default number: all exist
WHOLE = tuple(range(50))
HOME = 12  # the partition of "shop"


def coordinator(
    *owners: TransactionMetadata, partitions: tuple[int, ...] = WHOLE, damaged: frozenset[int] = frozenset()
) -> CoordinatorView:
    transactions = {each.transactional_id: each for each in owners}
    return CoordinatorView(transactions, dict.fromkeys(transactions, HOME), partitions, damaged)


def verdict(
    view: CoordinatorView, open_transaction: TransactionRange | None = None, *, settled: bool = True
) -> Judgement:
    circumstances = Circumstances(NOW, settled=settled)
    return judge(PARTITION, open_transaction or transaction(), view, circumstances)


def test_the_id_of_these_tests_is_in_its_own_partition() -> None:
    assert coordinator(owner()).is_complete


# Open


def test_open_within_its_timeout_up_to_the_last_millisecond() -> None:
    assert verdict(coordinator(owner(start_timestamp=NOW - 60_000))).verdict is Verdict.OPEN_WITHIN_TIMEOUT
    assert verdict(coordinator(owner(start_timestamp=NOW - 60_001))).verdict is Verdict.OPEN_OVERDUE


def test_without_a_start_the_last_update_counts() -> None:
    view = coordinator(owner(start_timestamp=-1, timeout_ms=5))
    assert verdict(view).verdict is Verdict.OPEN_WITHIN_TIMEOUT
    view = coordinator(owner(start_timestamp=-1, timeout_ms=4))
    assert verdict(view).verdict is Verdict.OPEN_OVERDUE


def test_two_phase_commit_has_no_timeout() -> None:
    never = (1 << 31) - 1
    found = verdict(coordinator(owner(start_timestamp=NOW - 7_200_000, timeout_ms=never)))
    assert found.verdict is Verdict.OPEN_WITHIN_TIMEOUT
    assert found.reason == (
        "the coordinator has 'shop' (two-phase commit) in state Ongoing; it has no timeout, and has held "
        "readers back for 2 h"
    )
    hanging = verdict(coordinator(owner(topic_partitions=frozenset(), timeout_ms=never)))
    assert hanging.verdict is Verdict.HANGING_PARTITION_NOT_IN_TXN
    assert "'shop' (two-phase commit)" in hanging.reason
    assert "two-phase" not in verdict(coordinator(owner())).reason


def test_a_clock_before_the_transaction_is_no_age() -> None:
    found = verdict(coordinator(owner(start_timestamp=NOW + 1000)))
    assert found.verdict is Verdict.OPEN_WITHIN_TIMEOUT
    assert "open for 0 ms" in found.reason


@pytest.mark.parametrize("state", [PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
@pytest.mark.parametrize("producer_epoch", [4, 5])
def test_a_decision_whose_marker_is_on_its_way(state: TransactionState, producer_epoch: int) -> None:
    found = verdict(coordinator(owner(state, producer_epoch=producer_epoch)))
    assert found.verdict is Verdict.MARKER_PENDING
    assert ("commit" in found.reason) == (state is PREPARE_COMMIT)


# Hanging


def test_the_producer_id_has_no_owner() -> None:
    assert verdict(coordinator(owner(producer_id=8))).verdict is Verdict.HANGING_NO_TRANSACTIONAL_ID


@pytest.mark.parametrize("state", list(TransactionState))
def test_the_partition_is_not_in_the_transaction(state: TransactionState) -> None:
    for there in (frozenset[TopicPartition](), frozenset([TopicPartition("orders", 4)])):
        found = verdict(coordinator(owner(state, topic_partitions=there)))
        assert found.verdict is Verdict.HANGING_PARTITION_NOT_IN_TXN
        assert ("orders-4" in found.reason) == bool(there)


def test_records_of_an_earlier_epoch() -> None:
    found = verdict(coordinator(owner(producer_epoch=5)))
    assert found.verdict is Verdict.HANGING_EPOCH_MISMATCH


def test_a_producer_id_that_was_given_up() -> None:
    found = verdict(coordinator(owner(producer_id=8, previous_producer_id=7)))
    assert found.verdict is Verdict.HANGING_EPOCH_MISMATCH


# Unknown


def test_without_coordinator_data() -> None:
    assert verdict(coordinator(partitions=())).verdict is Verdict.UNKNOWN_NO_COORDINATOR_DATA


def test_with_some_partitions_an_owner_counts_but_not_its_absence() -> None:
    found = verdict(coordinator(partitions=(3, HOME)))
    assert found.verdict is Verdict.UNKNOWN_NO_COORDINATOR_DATA
    assert "missing: 0, 1, 2, 4" in found.reason
    assert "not all" in verdict(coordinator(partitions=(0, 1))).reason
    view = coordinator(owner(topic_partitions=frozenset()), partitions=(3, HOME))
    assert verdict(view).verdict is Verdict.HANGING_PARTITION_NOT_IN_TXN


@pytest.mark.parametrize(
    "newer", [owner(producer_epoch=3), owner(producer_id=6, next_producer_id=7, producer_epoch=9)]
)
def test_a_coordinator_log_older_than_the_records(newer: TransactionMetadata) -> None:
    assert verdict(coordinator(newer)).verdict is Verdict.UNKNOWN_NO_COORDINATOR_DATA


def test_damage_in_the_coordinators_log() -> None:
    nothing = owner(topic_partitions=frozenset())
    for damaged, expected in (
        (HOME, Verdict.UNKNOWN_NO_COORDINATOR_DATA),
        (HOME + 1, Verdict.HANGING_PARTITION_NOT_IN_TXN),
    ):
        found = verdict(coordinator(nothing, damaged=frozenset([damaged])))
        assert found.verdict is expected
    found = verdict(coordinator(damaged=frozenset([1])))
    assert found.verdict is Verdict.UNKNOWN_NO_COORDINATOR_DATA
    assert "damaged: 1" in found.reason


def test_after_an_unclean_stop_only_what_is_old_hangs() -> None:
    view = coordinator(owner(topic_partitions=frozenset()))
    for age, expected in (
        (15 * 60_000, Verdict.OPEN_WITHIN_TIMEOUT),
        (15 * 60_000 + 1, Verdict.HANGING_PARTITION_NOT_IN_TXN),
    ):
        old = transaction(last_timestamp=NOW - age)
        assert verdict(view, old, settled=False).verdict is expected
        assert verdict(view, old).verdict is Verdict.HANGING_PARTITION_NOT_IN_TXN


def test_what_does_not_hang_is_reported_for_incomplete_files() -> None:
    """The files need to be of one moment, and the coordinator's log complete, only for the verdict that a
    transaction will never end."""
    overdue = owner(start_timestamp=NOW - 60_001)
    recent = transaction()._replace(last_timestamp=NOW)
    assert verdict(coordinator(overdue), recent, settled=False).verdict is Verdict.OPEN_OVERDUE
    pending = owner(TransactionState.PREPARE_COMMIT)
    damaged = coordinator(pending, damaged=frozenset([HOME]))
    assert verdict(damaged, recent, settled=False).verdict is Verdict.MARKER_PENDING


def test_what_is_stuck() -> None:
    assert {each.value for each in Verdict if each.is_stuck} == {
        "OPEN_OVERDUE",
        "MARKER_PENDING",
        "HANGING_NO_TRANSACTIONAL_ID",
        "HANGING_PARTITION_NOT_IN_TXN",
        "HANGING_EPOCH_MISMATCH",
        "COMPLETED_WITHOUT_MARKER",
    }


# Repair


def repair(of: Verdict, producer: ProducerStateEntry | None = None) -> str | None:
    name = "it's"
    strange = TopicPartition("a topic", 3)
    return repair_advice(of, strange, transaction(), transactional_id=name, producer=producer).command


def entry(current_txn_first_offset: int) -> ProducerStateEntry:
    return ProducerStateEntry(7, 4, 0, 1000, current_txn_first_offset, 5, 29, 4)


def test_commands_are_safe_to_paste() -> None:
    tool = "kafka-transactions.sh --bootstrap-server HOST:PORT"
    abort = f"{tool} abort --topic 'a topic' --partition 3 --start-offset"
    for each in Verdict:
        if each.is_hanging:
            assert repair(each) == f"{abort} 20"
            assert repair(each, entry(12)) == f"{abort} 12"  # its first offset before records were deleted
            assert repair(each, entry(-1)) == f"{abort} 20"
    name = "'it'\"'\"'s'"
    assert repair(Verdict.OPEN_OVERDUE) == f"{tool} forceTerminateTransaction --transactionalId {name}"


@pytest.mark.parametrize(
    "of", [Verdict.OPEN_WITHIN_TIMEOUT, Verdict.MARKER_PENDING, Verdict.UNKNOWN_NO_COORDINATOR_DATA]
)
def test_nothing_is_to_be_done_by_hand(of: Verdict) -> None:
    assert repair(of) is None


# Reports


def data(base_offset: int, count: int, producer_id: int = -1) -> bytes:
    records = [PlainRecord(None, b"v", 1000 + base_offset + i) for i in range(count)]
    transactional = producer_id >= 0
    return Batch(
        records=records,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0 if transactional else -1,
        base_sequence=0 if transactional else -1,
        transactional=transactional,
    ).encode()


def directory(folder: Path, *, high_watermark: int | None = None) -> LogDir:
    """Records without a transaction at 0 to 4, 10 and 11; an open transaction at 5, 6 and 12; an aborted one
    at 7 and 8."""
    segments = {
        0: [data(0, 5), data(5, 2, 7)],
        7: [data(7, 2, 8), end_marker(0, base_offset=9, producer_id=8, producer_epoch=0)],
        10: [data(10, 2), data(12, 1, 7)],
    }
    write_log(folder, "orders-3", segments)
    value = transaction_value(7, state=1, topics={"orders": [3]}, start_ms=NOW)
    record = PlainRecord(transaction_key("shop"), value)
    write_log(folder, "__transaction_state-0", {0: [Batch(records=[record]).encode()]})
    if high_watermark is not None:
        checkpoint = f"0\n1\norders 3 {high_watermark}\n"
        (folder / "replication-offset-checkpoint").write_text(checkpoint)
    return LogDir(str(folder))


def report(log_dir: LogDir) -> Explanation:
    return explanation_of(log_dir.partition("orders", 3), log_dir.coordinator, Circumstances(NOW))


def test_records_after_an_open_transaction_are_waiting(tmp_path: Path) -> None:
    found = report(directory(tmp_path, high_watermark=11))
    assert (found.last_stable_offset, found.log_end_offset, found.high_watermark) == (5, 13, 11)
    assert found.verdict is Verdict.OPEN_WITHIN_TIMEOUT
    sizes = [len(each) for each in (data(5, 2, 7), data(7, 2, 8), data(10, 2), data(12, 1, 7))]
    assert found.waiting == (7, sum(sizes), (f"{0:020}.log", f"{7:020}.log"))


def test_json_has_the_promised_fields(tmp_path: Path) -> None:
    reason = "the coordinator has 'shop' in state Ongoing, open for 0 ms of the 1 min it may take"
    assert report(directory(tmp_path)).to_dict() == {
        "topic": "orders",
        "partition": 3,
        "log_start_offset": 0,
        "log_end_offset": 13,
        "high_watermark": None,
        "last_stable_offset": 5,
        "verdict": "OPEN_WITHIN_TIMEOUT",
        "reason": reason,
        "is_stuck": False,
        "waiting_records": 7,
        "waiting_bytes": 300,
        "waiting_segments": [f"{0:020}.log", f"{7:020}.log"],
        "missing_offsets": None,
        "undecided_records": None,
        "judged_at": NOW,
        "open_transactions": [
            {
                "producer_id": 7,
                "producer_epoch": 0,
                "first_offset": 5,
                "first_timestamp": 1005,
                "last_timestamp": 1012,
                "records": 3,
                "bytes": len(data(5, 2, 7)) + len(data(12, 1, 7)),
                "transactional_id": "shop",
                "transaction_state": "Ongoing",
                "transaction_timeout_ms": 60_000,
                "current_transaction_start_time_ms": NOW,
                "verdict": "OPEN_WITHIN_TIMEOUT",
                "reason": reason,
                "advice": "nothing: the producer may still commit or abort it",
                "command": None,
                "risk": None,
                "condition": None,
            }
        ],
    }


@pytest.mark.parametrize(("first", "start", "since"), [(0, 5, 0), (-1, 0, 0), (-1, -1, None), (-1, 7, 7)])
def test_when_a_transaction_began(first: int, start: int, since: int | None) -> None:
    """Taken from its first record, else from the coordinator; 0 is a valid time."""
    found = transaction()._replace(first_timestamp=first)
    no_repair = repair_advice(Verdict.MARKER_PENDING, PARTITION, found, transactional_id=None, producer=None)
    judged = JudgedTransaction(found, owner(start_timestamp=start), Verdict.MARKER_PENDING, "", no_repair)
    assert judged.since_ms == since


def test_high_watermark_behind_a_log_without_open_transactions(tmp_path: Path) -> None:
    write_log(tmp_path, "orders-3", {0: [data(0, 5)], 5: [data(5, 4)]})
    checkpoint = tmp_path / "replication-offset-checkpoint"
    for high_watermark, expected, waiting in ((5, Verdict.HW_BEHIND, 4), (9, Verdict.NOT_STUCK, 0)):
        checkpoint.write_text(f"0\n1\norders 3 {high_watermark}\n")
        found = report(LogDir(str(tmp_path)))
        assert found.verdict is expected
        assert (found.last_stable_offset, found.waiting.records) == (9, waiting)
    checkpoint.unlink()
    assert report(LogDir(str(tmp_path))).verdict is Verdict.NOT_STUCK


def test_an_empty_partition(tmp_path: Path) -> None:
    write_log(tmp_path, "orders-3", {0: []})
    found = report(LogDir(str(tmp_path)))
    assert found.verdict is Verdict.NOT_STUCK
    assert (found.log_end_offset, found.waiting) == (0, (0, 0, ()))
