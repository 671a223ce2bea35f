"""``History``: what the clients of a simulation did and saw, as plain data; what the checkers read.

Partitions are pairs of a topic and a number, times are microseconds, -1 stands for "never". A record is known
by its number, which is its place in ``sends``: it is sent once, whatever is repeated on the way.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = [
    "Ack",
    "Assignment",
    "Commit",
    "Fence",
    "FetchedOffset",
    "Group",
    "History",
    "LostMember",
    "Outcome",
    "Ownership",
    "Partition",
    "Poll",
    "Progress",
    "Send",
    "Topic",
    "Transaction",
]

Partition = tuple[str, int]


class Outcome(enum.Enum):
    """What is known of a transaction, or of a record without one."""

    OPEN = "nothing was decided"
    COMMITTED = "the commit was acknowledged"
    ABORTED = "it cannot have been committed"
    UNKNOWN = "a commit was requested, and its outcome is not known"


class Topic(NamedTuple):
    """``loses_old``: by retention. ``is_compacted``: of a key, only the newest record stays.
    ``is_deletable``: the topic may be deleted at any time."""

    name: str
    partitions: int
    loses_old: bool = False
    is_compacted: bool = False
    is_deletable: bool = False


class Group(NamedTuple):
    """A group. ``may_expire``: its offsets are kept for so short a time that they may be forgotten.
    ``copies_to`` is the topic that its members copy what they read to, each record once. ``protocols`` are
    those of its members, whom the group forgets when it has not heard of them for its session timeout."""

    group_id: str
    may_expire: bool = False
    copies_to: str | None = None
    protocols: tuple[str, ...] = ("classic",)
    session_timeout_ms: int = 45_000

    @property
    def is_classic(self) -> bool:
        """Whether there are generations, and no epochs of members."""
        return self.protocols == ("classic",)


@dataclass(slots=True)
class Send:
    """One record. ``transaction`` is a number in ``History.transactions``, or -1. ``may_repeat``: the engine
    may have forgotten the producer between two tries, as Kafka would. ``source`` is the partition and the
    offset of the record that this one is a copy of."""

    number: int
    process: str
    partition: Partition
    key: bytes
    transaction: int
    invoked_us: int
    may_repeat: bool = False
    acked_us: int = -1
    offset: int = -1  # that was acknowledged
    source: tuple[Partition, int] | None = None


@dataclass(slots=True)
class Transaction:
    """One transaction; ``end_us`` is when a commit was first asked for, ``polls`` are records that the
    producer read before that, read_committed."""

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
    """One answer of a fetch, as the consumer understands it: ``values`` are pairs of offset and record, from
    ``position`` to before ``end``. ``is_new``: the position was set anew before this poll."""

    process: str
    partition: Partition
    is_committed: bool
    position: int
    end: int
    values: list[tuple[int, int]]
    at_us: int
    is_new: bool = False


class Progress(NamedTuple):
    """The offsets that an answer of a fetch has shown to a process."""

    process: str
    partition: Partition
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    at_us: int


class Fence(NamedTuple):
    """InitProducerId was answered: older epochs of the producer are fenced."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    at_us: int


class Ack(NamedTuple):
    """A request of a producer was answered without an error."""

    api: str
    producer_id: int
    producer_epoch: int
    invoked_us: int


class Assignment(NamedTuple):
    """A member was told, by the answer to SyncGroup, what it owns in a generation."""

    process: str
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    partitions: tuple[Partition, ...]
    at_us: int


class Ownership(NamedTuple):
    """A request of a member was answered without an error. It is sure to have had ``owned`` until it sent the
    request, and to have ``assigned`` from the answer on; in between, the group may have thought so or not.
    ``is_joining``: it was no member before, as far as it knew."""

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
    """The group does not know a member that had nothing to give up. ``silent_ms`` is for how long it
    has said nothing at most, whatever the broker's clock was set to meanwhile."""

    process: str
    group_id: str
    member_id: str
    silent_ms: int


@dataclass(slots=True)
class Commit:
    """Offsets that a process wanted to be committed, -1 for one that is to be deleted; in a transaction, or
    in none (-1). ``generation`` is -1 for one that is no member."""

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
    """A committed offset as it was shown to a process; -1 when there was none."""

    process: str
    group_id: str
    partition: Partition
    offset: int
    requires_stable: bool
    invoked_us: int
    at_us: int


@dataclass(slots=True)
class History:
    """``final`` are the records of each partition in the end, by isolation: (is_committed, partition) to
    pairs of offset and record; ``log_starts`` the first offsets then, ``final_offsets`` what groups have
    committed, ``final_settings`` the settings of topics. ``settings`` are those that a topic may have: one,
    unless the outcome of a change is not known. ``deletions`` are two offsets: the records below the first
    were deleted, the second is the largest that a deletion was asked for."""

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
        """A new record, about to be sent."""
        send = Send(len(self.sends), process, partition, key, transaction, at_us)
        self.sends.append(send)
        if transaction >= 0:
            self.transactions[transaction].sends.append(send.number)
        return send

    def begin(
        self, process: str, transactional_id: str, producer_id: int, producer_epoch: int
    ) -> Transaction:
        """A new transaction."""
        number = len(self.transactions)
        transaction = Transaction(number, process, transactional_id, producer_id, producer_epoch)
        self.transactions.append(transaction)
        return transaction

    def group_of(self) -> dict[str, str]:
        """The groups of the processes that were members."""
        found = {each.process: each.group_id for each in self.assignments}
        return found | {each.process: each.group_id for each in self.ownerships}

    def outcome(self, send: Send) -> Outcome:
        """What is known of a record: by its transaction, or by its acknowledgement."""
        if send.transaction >= 0:
            outcome = self.transactions[send.transaction].outcome
            if outcome is Outcome.COMMITTED and send.acked_us < 0:
                return Outcome.UNKNOWN
            return Outcome.ABORTED if outcome is Outcome.OPEN else outcome
        return Outcome.UNKNOWN if send.acked_us < 0 else Outcome.COMMITTED
