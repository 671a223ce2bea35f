"""``ConsumerGroup``: membership of KIP-848: the broker assigns, and heartbeats carry everything.

A member confirms an assignment only after it has given up the partitions that it lost; partitions that
another member still has arrive later. Source: ``ConsumerMembershipManager``,
``ConsumerHeartbeatRequestManager``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.cluster import GROUP, backoff
from txnkafka.client.consumer.membership import Membership
from txnkafka.client.consumer.signal import Signal
from txnkafka.client.group_metadata import ConsumerGroupMetadata
from txnkafka.env import unique_name
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError, error_for
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

if TYPE_CHECKING:
    from txnkafka.client.promise import Task
    from txnkafka.wire.messages.consumer_group_heartbeat import Assignment, ConsumerGroupHeartbeatResponse

LOG = logging.getLogger("txnkafka.client")
_JOINING: Final = 0
_LEAVING: Final = -1
_LEAVING_FOR_A_TIME: Final = -2  # a static member, which may come back
_FENCED: Final = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}
_FIRST_MS: Final = 5_000  # between heartbeats, until the broker has named its interval


class ConsumerGroup(Membership):
    """``member_epoch`` is 0 until the group has accepted the member."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.member_id = unique_name()
        self.member_epoch = _JOINING
        self._interval_ms = _FIRST_MS
        self._target: dict[str, tuple[int, ...]] | None = None  # by topic id, as the broker assigned it last
        self._sent: dict[str, Any] = {}  # fields of the last heartbeat that the broker has taken
        self._is_lost = False
        self._due = Signal()

    @property
    def is_member(self) -> bool:
        """Return whether the group has accepted the member."""
        return self.member_epoch > _JOINING

    def identity(self) -> ConsumerGroupMetadata:
        """Return group, member epoch and member id."""
        instance = self.config.group_instance_id or None
        epoch = self.member_epoch if self.is_member else -1
        return ConsumerGroupMetadata(
            self.config.group_id, epoch, self.member_id if self.is_member else "", instance
        )

    def epoch_identity(self) -> ConsumerGroupMetadata | None:
        """Return the identity of a member."""
        return self.identity() if self.is_member else None

    def on_lost(self, code: ErrorCode) -> None:
        """Join again as a new incarnation, without the partitions."""
        self.member_epoch = _JOINING
        self._sent, self._target = {}, None
        self._is_lost = True
        self._due.notify()
        self._changed.notify()

    def check(self) -> None:
        """Send a heartbeat if the topics have changed, and look for topics whose name was unknown."""
        if self.is_member and self._sent.get("subscribed_topic_names") != self._topics():
            self._due.notify()

    async def leave(self) -> None:
        """Leave the group; a static member only for a time."""
        if not self.is_member:
            return
        self.member_epoch = _LEAVING_FOR_A_TIME if self.config.group_instance_id else _LEAVING
        message = ConsumerGroupHeartbeatRequest(
            group_id=self.config.group_id,
            member_id=self.member_id,
            member_epoch=self.member_epoch,
            instance_id=self.config.group_instance_id or None,
        )
        try:
            await self._send(message)
        except KafkaError as error:
            LOG.info("group %s: the member did not leave: %s", self.config.group_id, error)
        self.on_lost(ErrorCode.NONE)

    async def _poll_expired(self) -> None:
        await self.leave()

    def _start(self) -> list[Task[Any]]:
        spawn = self.reactor.spawn
        return [spawn(self.run(self._beat())), spawn(self.run(self._reconcile()))]

    # Heartbeats

    async def _beat(self) -> None:
        """Send heartbeats: regularly, and at once when there is news."""
        failures = 0
        while True:
            due = self._due.next
            if self._is_lost:
                await self.reactor.first(self._due.next, self._interval_ms)
                continue
            try:
                await self._heartbeat()
            except KafkaError as error:
                if not error.retriable:
                    self.on_lost(error.code)
                    raise
                self.forget_coordinator(error)
                failures += 1
                config = self.config
                await self.reactor.sleep(
                    backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, failures)
                )
                continue
            failures = 0
            await self.reactor.first(due, self._interval_ms)

    async def _heartbeat(self) -> None:
        epoch, fields = self.member_epoch, self._fields()
        changed = {
            name: value
            for name, value in fields.items()
            if epoch == _JOINING or self._sent.get(name) != value
        }
        message = ConsumerGroupHeartbeatRequest(
            group_id=self.config.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.config.group_instance_id or None,
            **changed,
        )
        response = await self._send(message)
        code = ErrorCode.of(response.error_code)
        if self.member_epoch != epoch:
            return  # lost or left meanwhile
        if code in _FENCED:
            LOG.info("group %s: %s: the consumer joins again", self.config.group_id, code.name)
            self.on_lost(code)
            return
        if code != ErrorCode.NONE:
            text = response.error_message or code.name
            raise error_for(code, f"group {self.config.group_id!r}: {text}")
        self._sent = fields
        self.member_epoch = response.member_epoch
        self.member_id = response.member_id or self.member_id
        self._interval_ms = response.heartbeat_interval_ms or self._interval_ms
        if response.assignment is not None:
            self._take(response.assignment)

    def _fields(self) -> dict[str, Any]:
        config = self.config
        owned: dict[str, list[int]] = {}
        for each in self.subscription.assigned:
            topic_id = self._topic_id(each.topic)
            if topic_id is not None:
                owned.setdefault(topic_id, []).append(each.partition)
        partitions = (
            ()
            if self.member_epoch == _JOINING
            else tuple(
                TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(numbers)))
                for topic_id, numbers in sorted(owned.items())
            )
        )
        return {
            "rack_id": config.client_rack or None,
            "rebalance_timeout_ms": config.max_poll_interval_ms,
            "subscribed_topic_names": self._topics(),
            "server_assignor": config.group_remote_assignor or None,
            "topic_partitions": partitions,
        }

    def _topics(self) -> tuple[str, ...]:
        return tuple(sorted(self.subscription.topics))

    def _topic_id(self, name: str) -> str | None:
        topic = self.cluster.topics.get(name)
        return None if topic is None else topic.topic_id

    async def _send(self, message: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        connection = await self.cluster.coordinator(GROUP, self.config.group_id)
        version = connection.versions.pick("ConsumerGroupHeartbeat")
        response: ConsumerGroupHeartbeatResponse = await self.cluster.request(
            connection, "ConsumerGroupHeartbeat", version, message
        )
        return response

    # Assignments

    def _take(self, assignment: Assignment) -> None:
        self._target = {each.topic_id: each.partitions for each in assignment.topic_partitions}
        self._changed.notify()

    async def _reconcile(self) -> None:
        """Bring the assignment to the target, whenever they differ."""
        while True:
            if self._is_lost:
                await self.poll_point()
                await self.revoke(list(self.subscription.assigned), "lost")
                self._is_lost = False
                self.release()
                self._due.notify()
            elif self._target is not None:
                target, self._target = self._target, None
                await self._move_to(target)
            else:
                await self._changed.next

    async def _move_to(self, target: dict[str, tuple[int, ...]]) -> None:
        """Give up partitions, confirm that, and take the new ones."""
        if not set(target) <= set(self.cluster.names):
            self.cluster.want(self.subscription.topics)
            await self._refresh_names()
        names = self.cluster.names
        wanted = [
            TopicPartition(names[topic_id], number)
            for topic_id, numbers in sorted(target.items())
            for number in numbers
            if topic_id in names
        ]
        if not set(target) <= set(names):  # a new topic, whose name the next metadata will have
            self.reactor.call_at(
                self.reactor.now_ms() + self.config.retry_backoff_max_ms, lambda: self._again(target)
            )
        gone = [each for each in self.subscription.assigned if each not in set(wanted)]
        if gone:
            await self.poll_point()
            await self.commit_before()
            await self.revoke(gone)
            self.release()
        if not self._is_lost:
            await self.assign(wanted)
            self._due.notify()
            self._changed.notify()

    def _again(self, target: dict[str, tuple[int, ...]]) -> None:
        if self._target is None and not self._is_lost:
            self._target = target
            self._changed.notify()

    async def _refresh_names(self) -> None:
        try:
            await self.cluster.refresh()
        except KafkaError as error:
            LOG.debug("metadata: %s", error)
