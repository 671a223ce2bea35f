"""``Member``: a program's consumer as a member of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.testing.simulation.group_history import GroupHistory
from txnkafka.testing.simulation.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.model import TopicPartition
    from txnkafka.testing.simulation.history import Topic
    from txnkafka.testing.simulation.program import Program

_POLL_SLACK_MS: Final = 700
"""Longer than a rest in a calm time: a client that polls too rarely leaves its group."""


class Member:
    """One for all processes of a program. ``read`` has the end of the last read of each partition."""

    def __init__(
        self, program: Program, topics: Sequence[Topic], group_id: str, instance_id: str | None,
        protocols: Sequence[str],
    ) -> None:  # fmt: skip
        self.group_id = group_id
        self.instance_id = instance_id
        self.read: dict[TopicPartition, int] = {}
        self.messages: GroupHistory
        self._program = program
        self._topics = [topic.name for topic in topics]
        self._protocols = protocols
        self._reading: Reading | None = None

    def join(self, **settings: Any) -> Reading:
        """Create the consumer of a new process, and subscribe."""
        reading = self._reading = Reading(self._program, self.read, **{**self._settings(), **settings})
        self.messages = GroupHistory(self._program, reading)
        reading.core.subscribe(self._topics, None)
        return reading

    def _settings(self) -> dict[str, Any]:
        """Draw the settings. All processes of an instance use one protocol, and all members of a group one
        assignor."""
        random, swarm, protocols = self._program.random, self._program.world.swarm, self._protocols
        if self.instance_id is None:
            protocol = random.choice(protocols)
        else:
            protocol = protocols[sum(self.instance_id.encode()) % len(protocols)]
        settings = {
            "group.id": self.group_id,
            "group.protocol": protocol,
            "group.instance.id": self.instance_id or "",
            "max.poll.interval.ms": swarm.rebalance_timeout_ms + _POLL_SLACK_MS,
        }
        if protocol == "consumer":
            return settings | {"group.remote.assignor": random.choice(("", "uniform", "range"))}
        return settings | {
            "session.timeout.ms": swarm.session_timeout_ms,
            "heartbeat.interval.ms": max(1, swarm.session_timeout_ms // 4),
            "partition.assignment.strategy": swarm.assignor if len(protocols) == 1 else "range",
        }

    async def leave(self) -> None:
        """Close the consumer."""
        if self._reading is not None:
            core = self._reading.core
            call = await core.leaving()
            if call is not None:
                core.called(call)
            await core.leave()
            self._program.world.counts["member left"] += 1

    @property
    def assigned(self) -> set[TopicPartition]:
        """The partitions of the running process."""
        if self._reading is None or self._program.reactor.is_closed:
            return set()
        return set(self._reading.core.subscription.assigned)

    # The messages

    def sent(self, name: str, message: Any) -> None:
        """A request leaves the process."""
        if self._reading is not None:
            self.messages.sent(name, message)

    def answered(self, name: str, version: int, message: Any, response: Any, sent_us: int) -> None:
        """The response to a request has arrived."""
        if self._reading is not None:
            self.messages.answered(name, version, message, response, sent_us)
            if name == "Fetch":
                self._reading.fetched(message, response, sent_us)

    def can_be_late(self, name: str, message: Any) -> bool:
        """Return False for heartbeats with partitions, whose late copy would release partitions."""
        return name != "ConsumerGroupHeartbeat" or message.topic_partitions is None
