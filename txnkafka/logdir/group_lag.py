"""Joins the committed offsets of groups with the ends of the partitions: the lag of each group, and the
transaction that a group at the last stable offset waits for.

A group below the last stable offset does not wait: it can read on. An offset committed in an open transaction
is pending: a consumer that requires stable offsets (read_committed) does not get its committed offset until
the transaction ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from txnkafka.logdir.explain import Explanation, JudgedTransaction
    from txnkafka.logdir.group_members import GroupMember
    from txnkafka.logdir.groups import GroupsView
    from txnkafka.model import TopicPartition
    from txnkafka.wire.records import GroupOffset


class PendingCommit(NamedTuple):
    """An offset committed in an open transaction; ``transaction`` is that transaction in
    ``__consumer_offsets``, None if unknown."""

    offset: int
    producer_id: int
    transactional_id: str | None
    transaction: JudgedTransaction | None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        verdict = None if self.transaction is None else self.transaction.verdict.value
        return {
            "offset": self.offset,
            "producer_id": self.producer_id,
            "transactional_id": self.transactional_id,
            "verdict": verdict,
        }


class GroupLag(NamedTuple):
    """A group in one partition. None: ``committed`` without an offset or with only a pending one, ``member``
    if the partition is unassigned, ``report`` if the partition is not here."""

    group: str
    topic_partition: TopicPartition
    committed: GroupOffset | None
    pending: tuple[PendingCommit, ...]
    member: GroupMember | None
    report: Explanation | None

    @property
    def lag(self) -> int | None:
        """Return the number of offsets up to the log end."""
        if self.committed is None or self.report is None:
            return None
        return max(self.report.log_end_offset - self.committed.offset, 0)

    @property
    def stable_lag(self) -> int | None:
        """Return the number of offsets up to the last stable offset, which a read_committed consumer can
        read."""
        if self.committed is None or self.report is None:
            return None
        return max(self.report.last_stable_offset - self.committed.offset, 0)

    @property
    def waits_behind(self) -> JudgedTransaction | None:
        """Return the transaction that a read_committed consumer of the group waits for, if it has read up to
        the last stable offset; this is the transaction that holds that offset."""
        if self.report is None or not self.report.open_transactions:
            return None
        return self.report.open_transactions[0] if self.lag and not self.stable_lag else None

    @property
    def is_stuck(self) -> bool:
        """Return True if the group needs an operator: the transaction that it waits for hangs, is overdue,
        waits for its end marker, or is of unknown state."""
        transactions = [self.waits_behind, *(each.transaction for each in self.pending)]
        verdicts = [each.verdict for each in transactions if each is not None]
        return any(verdict.is_stuck or verdict.is_unknown for verdict in verdicts)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values; unknown fields are None."""
        committed, report, behind = self.committed, self.report, self.waits_behind
        member = self.member
        leader_epoch = -1 if committed is None else committed.leader_epoch
        return {
            "group": self.group,
            "topic": self.topic_partition.topic,
            "partition": self.topic_partition.partition,
            "current_offset": None if committed is None else committed.offset,
            "log_end_offset": None if report is None else report.log_end_offset,
            "lag": self.lag,
            "last_stable_offset": None if report is None else report.last_stable_offset,
            "stable_lag": self.stable_lag,
            "consumer_id": None if member is None else member.consumer_id,
            "host": None if member is None else member.host,
            "client_id": None if member is None else member.client_id,
            "leader_epoch": None if leader_epoch < 0 else leader_epoch,
            "metadata": None if committed is None else committed.metadata,
            "commit_timestamp": None if committed is None else committed.commit_timestamp,
            "pending_offsets": [each.as_dict() for each in self.pending],
            "waits_behind": None if behind is None else behind.to_dict(),
            "is_stuck": self.is_stuck,
        }


def group_lags(
    groups: GroupsView,
    report_of: Callable[[TopicPartition], Explanation | None],
    pending_in: Callable[[int], tuple[str | None, JudgedTransaction | None]],
) -> Iterator[GroupLag]:
    """Yield each group in each partition, sorted. ``report_of`` returns the report on a partition (None if it
    is not here), ``pending_in`` returns a producer's transactional id and its open transaction in
    ``__consumer_offsets``."""
    for group, topic_partition in sorted({*groups.committed, *groups.pending, *groups.members}):
        key = group, topic_partition
        pending = tuple(
            PendingCommit(each.committed.offset, each.producer_id, *pending_in(each.producer_id))
            for each in groups.pending.get(key, ())
        )
        committed, member = groups.committed.get(key), groups.members.get(key)
        yield GroupLag(group, topic_partition, committed, pending, member, report_of(topic_partition))
