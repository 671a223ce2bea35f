"""Advice about an open transaction: the command of Kafka's own tool, and its risk.

Only a hanging transaction may be aborted by hand. The tool writes an ABORT marker into one partition without
informing the coordinator, so it breaks the atomicity of a transaction that is still alive.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.logdir.verdict import Verdict

if TYPE_CHECKING:
    from txnkafka._core.read_committed import TransactionRange
    from txnkafka.model import ProducerStateEntry, TopicPartition

TOOL = "kafka-transactions.sh --bootstrap-server HOST:PORT"


class RepairAdvice(NamedTuple):
    """The advice in words; the command (None if no manual action is needed), its risk, and the condition for
    running it."""

    advice: str
    command: str | None = None
    risk: str | None = None
    condition: str | None = None


_WAIT = {
    Verdict.OPEN_WITHIN_TIMEOUT: "nothing: the producer may still commit or abort it",
    Verdict.MARKER_PENDING: "start the broker that leads the coordinator's partition and wait: it sends the "
    "end marker again. Do not abort by hand: the decision is made, and other partitions may have it already",
    Verdict.COMPLETED_WITHOUT_MARKER: "stop the broker, and run 'txnkafka handover' on its directory: it "
    "writes the end marker where the coordinator's log proves the outcome. Do not abort by hand: the outcome "
    "was acknowledged to the producer, and may be a commit",
    Verdict.UNKNOWN_LOG_CUT_SHORT: "restore the end of the log from a replica or a backup, and look "
    "again. Do not abort by hand: the transaction may have ended",
    Verdict.UNKNOWN_NO_COORDINATOR_DATA: "look again with all partitions of __transaction_state (name the "
    "directories that contain them as well), or ask a running cluster with find-hanging before anything else",
}


_NAMELESS = (
    "find out which partition this is, and give its directory that name, as in orders-3; then look again, "
    "with the partitions of __transaction_state"
)


def repair_advice(
    verdict: Verdict,
    topic_partition: TopicPartition | None,
    transaction: TransactionRange,
    *,
    transactional_id: str | None,
    producer: ProducerStateEntry | None,
) -> RepairAdvice:
    """Return the advice for a transaction with this verdict; ``producer`` is the partition's own state of its
    producer. A partition of unknown name (None) gets no command: it would name another partition."""
    if topic_partition is None and (verdict.is_hanging or verdict.is_unknown):
        return RepairAdvice(_NAMELESS)
    if topic_partition is not None and verdict.is_hanging:
        return _abort(topic_partition, transaction, producer)
    if verdict is Verdict.OPEN_OVERDUE and transactional_id is not None:
        return _terminate(transactional_id)
    return RepairAdvice(_WAIT[verdict])


def _abort(
    topic_partition: TopicPartition, transaction: TransactionRange, producer: ProducerStateEntry | None
) -> RepairAdvice:
    # The broker identifies the transaction by its first offset, even if that record is already deleted.
    begin = transaction.first_offset
    if producer is not None and producer.has_open_transaction:
        begin = producer.current_txn_first_offset
    topic, partition = topic_partition
    return RepairAdvice(
        "abort it in this partition, once it is certain that its producer is gone and that these files are "
        "not older than the cluster",
        f"{TOOL} abort --topic {quote(topic)} --partition {partition} --start-offset {begin}",
        "the command below writes an ABORT marker into this partition only, and the coordinator does not "
        "learn of it: if the producer still runs, it can go on and even commit, and its records here "
        "are lost",
        "its producer is gone, and find-hanging on the cluster says the same",
    )


def _terminate(transactional_id: str) -> RepairAdvice:
    return RepairAdvice(
        "start the coordinator's broker and wait: a running coordinator aborts it by itself within seconds",
        f"{TOOL} forceTerminateTransaction --transactionalId {quote(transactional_id)}",
        "the command below fences that producer and aborts its whole transaction in every partition",
        "the coordinator runs and does not abort it (Kafka 4.0 and newer)",
    )
