"""A coordinator with topics, and members of the consumer protocol that do what they are told (KIP-848)."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.unit.coordinator.group_clients import Node
from txnkafka.coordinator.group.consumer.consumer_config import ConsumerGroupConfig
from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.group_requests import ConsumerHeartbeat, HeartbeatAnswer
from txnkafka.coordinator.registry import metadata_records
from txnkafka.error_codes import ErrorCode

__all__ = ["Consumer", "ConsumerNode", "config", "state_of", "subscription", "topic_id"]

NONE = ErrorCode.NONE


def topic_id(number: int) -> str:
    """An id of a topic."""
    return urlsafe_b64encode(number.to_bytes(16, "big"))[:22].decode()


def config(**changes: Any) -> ConsumerGroupConfig:
    """Settings without a pause between two assignments."""
    return ConsumerGroupConfig()._replace(**{"assignment_interval_ms": 0, **changes})


class ConsumerNode(Node):
    """A coordinator with topics; the n-th one that is created has the id ``topic_id(n)``."""

    def __init__(self, topics: Mapping[str, int] | None = None, **changes: Any) -> None:
        super().__init__(**{"consumer": config(), **changes})
        self._created = 0
        for name, partitions in (topics or {}).items():
            self.create(name, partitions)

    def create(self, name: str, partitions: int) -> None:
        self._created += 1
        self.image.replay(metadata_records.topic(name, topic_id(self._created)))
        for number in range(partitions):
            self.grow(name, number)

    def grow(self, name: str, number: int) -> None:
        """One more partition."""
        self.image_version += 1
        of = self.image.topics[name].topic_id
        self.image.replay(metadata_records.partition(of, number, 1, topic_id(0)))

    def delete(self, name: str) -> None:
        self.image_version += 1
        self.image.replay(metadata_records.remove_topic(self.image.topics[name].topic_id))

    def consumers(self, name: str = "g") -> ConsumerGroup:
        found = self.coordinator.partitions.find(name)
        assert isinstance(found, ConsumerGroup), found
        return found

    def ask(self, request: ConsumerHeartbeat) -> list[HeartbeatAnswer]:
        """The answer, if there is one yet."""
        answers: list[HeartbeatAnswer] = []
        self.coordinator.consumer_heartbeat(request, answers.append, self.now_ms)
        self.settle()
        return answers


def subscription(*topics: str, owned: Sequence[int] | None = None) -> bytes:
    """What a classic member says, in version 0 of the embedded protocol; in version 1 with the partitions of
    its first topic that it owns."""
    names = [len(each).to_bytes(2, "big") + each.encode() for each in topics]
    found = len(topics).to_bytes(4, "big") + b"".join(names) + b"\xff" * 4
    if owned is None:
        return b"\0\0" + found
    numbers = b"".join(each.to_bytes(4, "big") for each in (len(owned), *owned))
    return b"\0\1" + found + (1).to_bytes(4, "big") + names[0] + numbers


def state_of(group: ConsumerGroup) -> dict[str, Any]:
    """Everything that the log has of a group."""
    left_out = {"checked", "resolved"}
    return {name: value for name, value in vars(group).items() if name not in left_out}


@dataclass
class Consumer:
    """One client. ``owned`` are the partitions that it has, by topic id; ``answers`` those that it got."""

    node: ConsumerNode
    member_id: str
    topics: Sequence[str] | None = ("t",)
    group: str = "g"
    instance: str | None = None
    regex: str | None = None
    assignor: str | None = None
    rebalance_ms: int = 60_000
    epoch: int = 0
    owned: dict[str, list[int]] = field(default_factory=dict)
    answers: list[HeartbeatAnswer] = field(default_factory=list)

    def join(self, **changes: Any) -> Consumer:
        """Say everything, without any partition."""
        self.epoch, self.owned = 0, {}
        everything = {
            "rebalance_timeout_ms": self.rebalance_ms,
            "topics": None if self.topics is None else tuple(self.topics),
            "regex": self.regex, "assignor": self.assignor, "owned": {},
        }  # fmt: skip
        return self.beat(**{**everything, **changes})

    def beat(self, **fields: Any) -> Consumer:
        """Send a heartbeat with these fields, and take the partitions that the answer has."""
        request = ConsumerHeartbeat(
            self.group, self.member_id, fields.pop("epoch", self.epoch), self.instance,
            client_id="client", client_host="/127.0.0.1",
        )  # fmt: skip
        self.answers += self.node.ask(request._replace(**fields))
        answer = self.answers[-1] if self.answers else None
        if answer is not None and answer.error == NONE:
            self.epoch = answer.epoch
            if answer.assignment is not None:
                self.owned = {name: list(numbers) for name, numbers in answer.assignment.items()}
        return self

    def follow(self) -> Consumer:
        """Say what it has: partitions that it was to give up are given up."""
        return self.beat(owned=self.owned)

    def leave(self, epoch: int = -1) -> Consumer:
        return self.beat(epoch=epoch)

    @property
    def error(self) -> ErrorCode:
        return self.answers[-1].error

    @property
    def has(self) -> list[tuple[int, int]]:
        """The partitions as numbers of topics and partitions."""
        numbers = {topic_id(number): number for number in range(1, 100)}
        return sorted((numbers[name], each) for name, owned in self.owned.items() for each in owned)
