"""Finds the decision for a transaction that is open in a partition although its coordinator completed it.

Apache Kafka writes COMPLETE_* without the markers when its marker sender finds no leader for a partition, as
during a clean stop (``TransactionMarkerChannelManager``: "can be skipped"). The partition then keeps an open
transaction whose outcome was acknowledged. The coordinator's log still has the decision: its records give the
producer id, the epoch and, until compaction, the partitions of each transaction.

Pure: records and facts of the partition in, a decision out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from txnkafka.coordinator.txn.txn_image import COMPLETE, COMPLETE_COMMIT, LARGEST_EPOCH, ONGOING, PREPARED
from txnkafka.model import NO_PRODUCER_ID, TopicPartition
from txnkafka.wire.records import TransactionMetadata


class OpenTransaction(NamedTuple):
    """A transaction without a marker in a partition; ``producer_epoch`` is its last batch's."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int


class Seen(NamedTuple):
    """An open transaction in the partition's log: the timestamp of its first batch, the timestamp of the
    producer's last marker before it (-1: none), and whether all its batches have one epoch."""

    first_timestamp: int
    marker_timestamp: int
    has_one_epoch: bool


class Ended(NamedTuple):
    """A transaction that the coordinator completed. ``producer_epoch`` is the epoch of its data,
    ``marker_epoch`` the epoch of its markers; ``partitions`` is None where the log has only COMPLETE_*.
    Its marker is not older than ``decided_ms``; its data is not newer than ``completed_ms``."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    marker_epoch: int
    committed: bool
    version: int
    partitions: frozenset[TopicPartition] | None
    started_ms: int
    decided_ms: int
    completed_ms: int

    def may_contain(self, transaction: OpenTransaction) -> bool:
        """Return False only if the open transaction must be a different one."""
        return (
            (self.producer_id, self.producer_epoch) == transaction[1:]
            and (self.partitions is None or transaction.partition in self.partitions)
        )  # fmt: skip


class Decision(NamedTuple):
    """The newest completed transaction that an open one may be. ``is_clear`` means that no transaction
    with another outcome is possible, so that its marker may be written."""

    ended: Ended
    is_clear: bool


class History:
    """Reads the records of a coordinator's log in order, for the given open transactions. Keeps two completed
    transactions for each: the newest, and the newest with another outcome."""

    def __init__(self, wanted: Iterable[OpenTransaction]) -> None:
        nothing: tuple[Ended | None, Ended | None] = (None, None)
        self._found = dict.fromkeys(wanted, nothing)
        self._states: dict[str, tuple[TransactionMetadata | None, TransactionMetadata | None]] = {}

    def take(self, metadata: TransactionMetadata) -> None:
        """Take the next record of a transactional id."""
        ongoing, prepared = self._states.pop(metadata.transactional_id, (None, None))
        if metadata.state == ONGOING:
            self._states[metadata.transactional_id] = metadata, None
        elif metadata.state in PREPARED:
            self._states[metadata.transactional_id] = ongoing, metadata
        elif metadata.state in COMPLETE:
            ended = ended_by(ongoing, prepared, metadata)
            for each, (newest, contradicting) in self._found.items():
                if ended.may_contain(each):
                    changes = newest is not None and newest.committed != ended.committed
                    self._found[each] = ended, newest if changes else contradicting

    def found(self, transaction: OpenTransaction) -> tuple[Ended | None, Ended | None]:
        """Return the newest completed transaction that this one may be, and the newest one with another
        outcome; None for a missing one."""
        return self._found[transaction]


def ended_by(
    ongoing: TransactionMetadata | None, prepared: TransactionMetadata | None, complete: TransactionMetadata
) -> Ended:
    """Combine the records of a transaction; after compaction only COMPLETE_* may be left.

    Without the others the epoch follows from the version: KIP-890 increments it at each end, and continues
    with another producer id after the last epoch."""
    version = complete.client_transaction_version
    bump = 1 if version >= 2 else 0
    if prepared is not None:
        producer_id, marker_epoch = prepared.producer_id, prepared.producer_epoch
    elif bump and complete.producer_epoch == 0 and complete.previous_producer_id != NO_PRODUCER_ID:
        producer_id, marker_epoch = complete.previous_producer_id, LARGEST_EPOCH
    else:
        producer_id, marker_epoch = complete.producer_id, complete.producer_epoch
    return Ended(
        complete.transactional_id,
        producer_id,
        marker_epoch - bump if ongoing is None else ongoing.producer_epoch,
        marker_epoch,
        complete.state == COMPLETE_COMMIT,
        version,
        None if prepared is None else prepared.topic_partitions,
        complete.start_timestamp,
        complete.start_timestamp if prepared is None else prepared.last_update_timestamp,
        complete.last_update_timestamp,
    )


def decide(newest: Ended | None, contradicting: Ended | None, seen: Seen) -> Decision | None:
    """Return the decision for an open transaction; None if it is undecided.

    It is undecided if no completed transaction matches, or if the partition already has the marker of the
    newest one. Below version 2, where transactions share an epoch, a marker written at or after the decision
    counts as this marker. From version 2 on no data with the epoch of a transaction follows its marker."""
    if newest is None or (newest.version < 2 and seen.marker_timestamp >= newest.decided_ms):
        return None
    return Decision(newest, _is_clear(newest, contradicting, seen))


def _is_clear(newest: Ended, contradicting: Ended | None, seen: Seen) -> bool:
    if not seen.has_one_epoch:  # data of two transactions, which end with the same marker
        return False
    if newest.partitions is None and newest.version < 2 and seen.first_timestamp < newest.started_ms:
        return False  # below version 2 transactions share an epoch, and this one may have begun earlier
    if contradicting is None or seen.marker_timestamp >= contradicting.decided_ms:
        return True
    return contradicting.partitions is None and seen.first_timestamp >= contradicting.completed_ms
