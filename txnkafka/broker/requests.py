"""Requests to a broker and its answers, as values. They are Kafka's requests without versions: handlers
translate between them and messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.error_codes import ErrorCode
from txnkafka.model import IsolationLevel, TopicPartition

if TYPE_CHECKING:
    from txnkafka.storage.formats.txn_index import AbortedTxn
    from txnkafka.storage.log.log_slice import LogSlice

NO_LEADER_EPOCH = -1


@dataclass(slots=True, eq=False)
class ProduceRequest:
    """At most one batch for each partition. The batches are views of the message, which must not change
    before the answer.

    ``version`` is the version of Produce: it decides how partitions join the transaction, and which error
    codes the client understands."""

    batches: Mapping[TopicPartition, memoryview | None]
    transactional_id: str | None = None
    acks: int = -1
    version: int = 13
    is_internal_allowed: bool = False

    @property
    def is_implicit_add(self) -> bool:
        """Return whether this request adds partitions to the transaction (KIP-890)."""
        return self.version >= 12


class ProduceResult(NamedTuple):
    """The answer for one partition. ``record_errors`` are pairs of a record's number and its error."""

    error: ErrorCode
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    message: str | None = None
    record_errors: Sequence[tuple[int, str]] = ()


class FetchPartition(NamedTuple):
    """A partition to fetch from ``offset`` on. ``current_leader_epoch`` is -1 if the client knows none.
    ``last_fetched_epoch`` is the epoch of the record before ``offset``, or -1 if the client does not ask
    whether the log still has this record (KIP-595)."""

    topic_partition: TopicPartition
    offset: int
    max_bytes: int
    current_leader_epoch: int = NO_LEADER_EPOCH
    last_fetched_epoch: int = NO_LEADER_EPOCH


@dataclass(slots=True, eq=False)
class FetchRequest:
    """Partitions in the order in which they are read, up to ``max_bytes``. The answer waits for
    ``min_bytes`` or ``max_wait_ms`` (KIP-74). ``room`` returns the limit of bytes at that time."""

    partitions: Sequence[FetchPartition]
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    min_bytes: int = 1
    max_bytes: int = 0x7FFFFFFF
    max_wait_ms: int = 0
    room: Callable[[], int] | None = None


class FetchedPartition(NamedTuple):
    """The answer for one partition. ``records``, if any, must be released. The aborted transactions are
    None unless the request was read_committed. ``diverging``, in place of records, is the largest epoch
    that log and client have in common, and its end offset in the log."""

    error: ErrorCode
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted_transactions: Sequence[AbortedTxn] | None = None
    records: LogSlice | None = None
    diverging: tuple[int, int] | None = None


class OffsetQuery(NamedTuple):
    """ListOffsets for one partition: a timestamp in milliseconds, or a special one."""

    topic_partition: TopicPartition
    timestamp: int
    current_leader_epoch: int = NO_LEADER_EPOCH


class OffsetAnswer(NamedTuple):
    """The offset for a timestamp; -1 if no record matches."""

    error: ErrorCode = ErrorCode.NONE
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = NO_LEADER_EPOCH


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; -1 means the default of the broker. ``assignments`` are the replicas of each
    partition, if the client has chosen them."""

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)


class TopicResult(NamedTuple):
    """The result for a topic that was to be created."""

    name: str
    error: ErrorCode
    message: str | None = None
    topic_id: str | None = None
    partition_count: int = -1
    configs: Mapping[str, str] = {}


class DeletedTopic(NamedTuple):
    """The result for a topic that was to be deleted."""

    name: str | None
    topic_id: str | None
    error: ErrorCode
    message: str | None = None
