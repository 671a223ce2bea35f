"""``History``: the actions and observations of a simulation's clients, as plain data for the checkers.

Partitions are (topic, number) pairs, times are microseconds, -1 means "never". A record is identified by its
number, its index in ``sends``: it is sent once, although requests may be repeated.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import NamedTuple

Partition = tuple[str, int]


class Outcome(enum.Enum):
    """The known outcome of a transaction, or of a record outside transactions."""

    OPEN = "nothing was decided"
    COMMITTED = "the commit was acknowledged"
    ABORTED = "it cannot have been committed"
    UNKNOWN = "a commit was requested, and its outcome is not known"


class Topic(NamedTuple):
    """A topic. ``loses_old``: retention applies. ``is_compacted``: only the newest record of a key stays.
    ``is_deletable``: the topic may be deleted at any time."""

    name: str
    partitions: int
    loses_old: bool = False
    is_compacted: bool = False
    is_deletable: bool = False


class Group(NamedTuple):
    """A group. ``may_expire``: its offsets may expire during the run. ``copies_to`` is the topic that its
    members copy each record to, exactly once. ``protocols`` are the members' protocols; a member without a
    heartbeat for the session timeout is removed."""

    group_id: str
    may_expire: bool = False
    copies_to: str | None = None
    protocols: tuple[str, ...] = ("classic",)
    session_timeout_ms: int = 45_000

    @property
    def is_classic(self) -> bool:
        """True for groups with generations, without member epochs."""
        return self.protocols == ("classic",)


@dataclass(slots=True)
class Send:
    """One record. ``transaction`` is an index in ``History.transactions``, or -1. ``may_repeat``: the
    producer may have expired between two attempts, as in Kafka. ``source`` is the partition and offset of the
    original of a copy."""

    number: int
    process: str
    partition: Partition
    key: bytes
    transaction: int
    invoked_us: int
    may_repeat: bool = False
    acked_us: int = -1
    offset: int = -1  # acknowledged offset
    source: tuple[Partition, int] | None = None


@dataclass(slots=True)
class Transaction:
    """One transaction; ``end_us`` is the time of the first commit request, ``polls`` are the producer's
    earlier read_committed reads."""

    number: int
    process: str
    transactional_id: str
    producer_id: int
    producer_epoch: int
    sends: list[int] = field(default_factory=list)
    polls: list[int] = field(default_factory=list)
    outcome: Outcome = Outcome.OPEN
    end_us: int = -1
    ended_us: int = -1


class Poll(NamedTuple):
    """The visible records of a fetch response: ``values`` are (offset, record) pairs in [``position``,
    ``end``). ``is_new``: a seek preceded this poll."""

    process: str
    partition: Partition
    is_committed: bool
    position: int
    end: int
    values: list[tuple[int, int]]
    at_us: int
    is_new: bool = False


class Progress(NamedTuple):
    """The log offsets in a fetch response."""

    process: str
    partition: Partition
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    at_us: int


class Fence(NamedTuple):
    """A response to InitProducerId, which fences older epochs of the producer."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    at_us: int


class Ack(NamedTuple):
    """A successful request of a producer."""

    api: str
    producer_id: int
    producer_epoch: int
    invoked_us: int


class Assignment(NamedTuple):
    """A member's partitions in a generation, from the response to SyncGroup."""

    process: str
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    partitions: tuple[Partition, ...]
    at_us: int


class Ownership(NamedTuple):
    """A successful request of a member. The member certainly owned ``owned`` until it sent the request, and
    owns ``assigned`` since the response; in between, its ownership is uncertain. ``is_joining``: it was not a
    member before, to its knowledge."""

    process: str
    group_id: str
    member_id: str
    epoch: int
    owned: frozenset[Partition]
    assigned: frozenset[Partition]
    sent_us: int
    at_us: int
    is_joining: bool = False


class LostMember(NamedTuple):
    """The group does not know a member that had no partition to revoke. ``silent_ms`` is the maximum time
    since its last request, regardless of changes of the broker's clock."""

    process: str
    group_id: str
    member_id: str
    silent_ms: int


@dataclass(slots=True)
class Commit:
    """A request to commit offsets (-1: to delete), in a transaction or in none (-1). ``generation`` is -1 for
    a non-member."""

    process: str
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    offsets: dict[Partition, int]
    transaction: int
    invoked_us: int
    acked_us: int = -1
    is_refused: bool = False


class FetchedOffset(NamedTuple):
    """A fetched committed offset; -1 for none."""

    process: str
    group_id: str
    partition: Partition
    offset: int
    requires_stable: bool
    invoked_us: int
    at_us: int


@dataclass(slots=True)
class History:
    """The history of a run. ``final`` maps (is_committed, partition) to the final (offset, record) pairs;
    ``log_starts`` are the final log starts, ``final_offsets`` the groups' final offsets, ``final_settings``
    the topics' final settings. ``settings`` are the possible settings of a topic: one, unless the outcome of
    a change is unknown. ``deletions`` are two offsets: records below the first were deleted; the second is
    the largest offset in a deletion request."""

    topics: dict[str, Topic] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    sends: list[Send] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    fences: list[Fence] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    ownerships: list[Ownership] = field(default_factory=list)
    lost_members: list[LostMember] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    fetched_offsets: list[FetchedOffset] = field(default_factory=list)
    final: dict[tuple[bool, Partition], list[tuple[int, int]]] = field(default_factory=dict)
    log_starts: dict[Partition, int] = field(default_factory=dict)
    final_offsets: dict[tuple[str, Partition], int] = field(default_factory=dict)
    settings: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    final_settings: dict[str, dict[str, str]] = field(default_factory=dict)
    deletions: dict[Partition, tuple[int, int]] = field(default_factory=dict)

    def send(self, process: str, partition: Partition, key: bytes, transaction: int, at_us: int) -> Send:
        """Add a new record, to be sent now."""
        send = Send(len(self.sends), process, partition, key, transaction, at_us)
        self.sends.append(send)
        if transaction >= 0:
            self.transactions[transaction].sends.append(send.number)
        return send

    def begin(
        self, process: str, transactional_id: str, producer_id: int, producer_epoch: int
    ) -> Transaction:
        """Add a new transaction."""
        number = len(self.transactions)
        transaction = Transaction(number, process, transactional_id, producer_id, producer_epoch)
        self.transactions.append(transaction)
        return transaction

    def group_of(self) -> dict[str, str]:
        """Return the group of each process that was a member."""
        found = {each.process: each.group_id for each in self.assignments}
        return found | {each.process: each.group_id for each in self.ownerships}

    def outcome(self, send: Send) -> Outcome:
        """Return the known outcome of a record, by its transaction or its acknowledgement."""
        if send.transaction >= 0:
            outcome = self.transactions[send.transaction].outcome
            if outcome is Outcome.COMMITTED and send.acked_us < 0:
                return Outcome.UNKNOWN
            return Outcome.ABORTED if outcome is Outcome.OPEN else outcome
        return Outcome.UNKNOWN if send.acked_us < 0 else Outcome.COMMITTED
