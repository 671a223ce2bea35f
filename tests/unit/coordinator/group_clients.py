"""A group coordinator on a log in memory, and members that remember what they were told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from txnkafka.coordinator.group.classic.classic_group import ClassicGroup
from txnkafka.coordinator.group.classic.classic_rebalance import GroupConfig
from txnkafka.coordinator.group.group_coordinator import GroupCoordinator
from txnkafka.coordinator.group.group_requests import (
    CommittedOffset,
    Identity,
    Joined,
    JoinGroup,
    OffsetToCommit,
    Protocol,
    Synced,
    SyncGroup,
)
from txnkafka.coordinator.log_event import LogEvent
from txnkafka.coordinator.registry.cluster_image import ClusterImage
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaStorageError, MessageTooLargeError
from txnkafka.model import NO_PRODUCER_ID, ProducerIdAndEpoch, TopicPartition

__all__ = ["START_MS", "Member", "Node", "stable"]

NONE = ErrorCode.NONE
START_MS = 1_700_000_000_000


class Node:
    """One coordinator. What was appended is durable at once, or with ``flush`` if ``waits``."""

    image_version = 0

    def __init__(self, *, waits: bool = False, max_bytes: int = 1 << 20, **config: Any) -> None:
        self.config = GroupConfig(**{"initial_rebalance_delay_ms": 0, **config})
        self.events: list[LogEvent] = []
        self.now_ms = START_MS
        self.waits, self.fails = waits, False
        self.accepts = 1 << 30  # batches
        self.max_keys = 1 << 20  # bytes of keys in a batch
        self._max_bytes = max_bytes  # of a batch
        self._waiting: list[Callable[[ErrorCode], None]] = []
        self._ids = 0
        self.image = ClusterImage()
        self.start()

    def start(self, *, count: int | None = None) -> None:
        """Load the log, or the first events of it."""
        self._waiting.clear()
        self.coordinator = GroupCoordinator(self, self, config=self.config, partition_count=1)
        self.coordinator.load(0, self.events[:count], self.now_ms)

    # GroupHost, TopicLog

    def append(
        self,
        partition: int,
        records: Sequence[tuple[bytes, bytes | None]],
        call: Callable[[ErrorCode], None],
        *,
        producer: ProducerIdAndEpoch | None = None,
        is_awaited: bool = True,
    ) -> int:
        self.accepts -= 1
        if self.fails or self.accepts < 0:
            raise KafkaStorageError("the disk is full")
        if sum(len(key) for key, _ in records) > self.max_keys:
            raise MessageTooLargeError("too many keys")
        first = len(self.events)
        producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id
        for i, (key, value) in enumerate(records):
            self.events.append(LogEvent(first + i, producer_id, None, key, value))
        self._waiting.append(call)
        return first

    def max_batch_bytes(self, partition: int) -> int:
        return self._max_bytes

    def when_durable(self, partition: int, call: Callable[[ErrorCode], None]) -> None:
        self._waiting.append(call)

    def new_id(self) -> str:
        self._ids += 1
        return f"id{self._ids}"

    # The world

    @property
    def waiting(self) -> int:
        """How many calls wait until something is durable."""
        return len(self._waiting)

    def flush(self, error: ErrorCode = NONE) -> None:
        """Everything that was appended is durable, or never will be."""
        while self._waiting:
            self._waiting.pop(0)(error)

    def settle(self) -> None:
        """What a broker does after each request."""
        if not self.waits:
            self.flush()

    def wait(self, ms: int) -> None:
        """Time passes, timer by timer."""
        until = self.now_ms + ms
        while (due := self.coordinator.advance(self.now_ms)) <= until:
            self.settle()
            self.now_ms = max(due, self.now_ms)
        self.settle()
        self.now_ms = until

    def end(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """An end marker."""
        offset = len(self.events)
        self.events.append(LogEvent(offset, producer.producer_id, committed, None, None))
        self.coordinator.end_transaction(0, offset, producer.producer_id, committed)

    def group(self, name: str = "g") -> ClassicGroup:
        found = self.coordinator.partitions.find(name)
        assert isinstance(found, ClassicGroup), found
        return found

    @property
    def state(self) -> str:
        return self.group().state.value

    def commit(
        self,
        offset: int,
        identity: Identity | None = None,
        *,
        topic: str = "t",
        producer: ProducerIdAndEpoch | None = None,
        version: int = 8,
        metadata: str = "",
        expire_timestamp: int = -1,
    ) -> ErrorCode | None:
        """The error of a commit for partition 0 of a topic; None while it waits."""
        answers: list[dict[TopicPartition, ErrorCode]] = []
        wanted = {TopicPartition(topic, 0): OffsetToCommit(offset, 0, metadata, expire_timestamp)}
        self.coordinator.commit(
            identity or Identity("g"), wanted, answers.append, self.now_ms, version=version, producer=producer
        )
        self.settle()
        return answers[0][TopicPartition(topic, 0)] if answers else None

    def fetched(self, *, stable: bool = False, topic: str = "t", group: str = "g") -> CommittedOffset:
        answers: list[tuple[ErrorCode, dict[TopicPartition, CommittedOffset]]] = []
        partition = TopicPartition(topic, 0)
        self.coordinator.fetch(group, [partition], lambda *each: answers.append(each), require_stable=stable)
        self.settle()
        ((error, found),) = answers
        return found[partition] if error == NONE else CommittedOffset(error=error)


@dataclass
class Member:
    """One client. ``joined`` and ``synced`` are the answers that it got, in their order."""

    node: Node
    instance: str | None = None
    member_id: str = ""
    group: str = "g"
    protocols: tuple[tuple[str, bytes], ...] = (("range", b"r"),)
    protocol_type: str = "consumer"
    session_ms: int = 10_000
    rebalance_ms: int = 60_000
    joined: list[Joined] = field(default_factory=list)
    synced: list[Synced] = field(default_factory=list)
    generation: int = -1

    @property
    def identity(self) -> Identity:
        return Identity(self.group, self.generation, self.member_id, self.instance)

    def join(self, *, needs_known_id: bool = False, may_skip: bool = True) -> Member:
        request = JoinGroup(
            self.identity, self.protocol_type, tuple(Protocol(*each) for each in self.protocols),
            self.session_ms, self.rebalance_ms, "client", "/127.0.0.1", needs_known_id, may_skip,
        )  # fmt: skip
        self.node.coordinator.join(request, self._joined, self.node.now_ms)
        self.node.settle()
        return self

    def _joined(self, answer: Joined) -> None:
        self.joined.append(answer)
        self.member_id = answer.member_id or self.member_id
        if answer.error == NONE:
            self.generation = answer.generation

    def sync(self, **assignments: bytes) -> Member:
        wanted = {name.replace("_", "-"): value for name, value in assignments.items()}
        request = SyncGroup(self.identity, wanted, self.protocol_type, None)
        self.node.coordinator.sync(request, self.synced.append, self.node.now_ms)
        self.node.settle()
        return self

    def heartbeat(self) -> ErrorCode:
        return self.node.coordinator.heartbeat(self.identity, self.node.now_ms)

    def leave(self) -> ErrorCode | None:
        """The error, which may be that of the member alone; None while it waits."""
        answers: list[ErrorCode] = []
        self.node.coordinator.leave(
            self.group, [self.identity], lambda error, errors: answers.append(error or errors[0]),
            self.node.now_ms,
        )  # fmt: skip
        self.node.settle()
        return answers[0] if answers else None

    @property
    def error(self) -> ErrorCode | None:
        """Of the last JoinGroup; None while it waits."""
        return self.joined[-1].error if self.joined else None


def stable(node: Node, *members: Member) -> list[Member]:
    """The members form a generation: the first one leads, and gives each its own name."""
    for member in members:
        member.join()
    node.wait(0)
    leader = next(member for member in members if member.joined[-1].leader == member.member_id)
    for member in members:
        if member is not leader:
            member.sync()
    leader.sync(**{member.member_id.replace("-", "_"): member.member_id.encode() for member in members})
    assert node.state == "Stable"
    return [leader, *(member for member in members if member is not leader)]
