"""``ConsumerCore``: the consumer as coroutines, which ``Consumer`` and ``txnkafka.aio`` run.

All methods are called under the reactor's lock, by one caller at a time. A caller of ``poll`` that gets a
``ListenerCall`` makes it, ends it with ``called``, and polls again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from txnkafka.client.cluster import Cluster
from txnkafka.client.consumer.classic_group import ClassicGroup
from txnkafka.client.consumer.commits import Commits, Offsets
from txnkafka.client.consumer.consumer_errors import WakeupError
from txnkafka.client.consumer.consumer_group import ConsumerGroup
from txnkafka.client.consumer.fetcher import Fetcher
from txnkafka.client.consumer.list_offsets import EARLIEST, LATEST, OffsetAndTimestamp, OffsetLookup
from txnkafka.client.consumer.membership import ListenerCall
from txnkafka.client.consumer.positions import Positions
from txnkafka.client.consumer.record_reader import RecordReader, failure_of
from txnkafka.client.consumer.signal import Signal
from txnkafka.client.consumer.subscription import Place, Subscription
from txnkafka.client.group_metadata import ConsumerGroupMetadata
from txnkafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    import re

    from txnkafka.client.consumer.consumer_config import ConsumerConfig
    from txnkafka.client.consumer.membership import Membership
    from txnkafka.client.promise import Promise, Task
    from txnkafka.client.transport import Transport

T = TypeVar("T")
LOG = logging.getLogger("txnkafka.client")
Deserializer = Callable[[bytes], Any]


class ConsumerCore:
    """``read`` of ``poll`` is a function of the reader: which records, in which form."""

    def __init__(
        self,
        transport: Transport,
        config: ConsumerConfig,
        key: Deserializer | None,
        value: Deserializer | None,
    ) -> None:
        self.config = config
        self.reactor = transport.reactor
        self.cluster = Cluster(transport, config, allow_auto_creation=config.allow_auto_create_topics)
        self.subscription = Subscription()
        self.commits = Commits(self.cluster, config, self.subscription)
        self.lookup = OffsetLookup(self.cluster, config.isolation)
        self.reader = RecordReader(self.subscription, key, value)
        self.membership: Membership | None = None
        self._changed = Signal()
        self._fetcher = Fetcher(self.cluster, config, self.subscription, self._changed)
        self._positions = Positions(self.cluster, self.subscription, self.commits, self.lookup, self._changed)
        self._wakes = False
        self._is_refreshing = False
        self._refresh_ms = -1
        self._matched = -1  # number of the metadata that the pattern was matched with

    # Records

    async def poll(
        self, read: Callable[[RecordReader], list[T]], timeout_ms: float
    ) -> list[T] | ListenerCall:
        """Return records as soon as there are some, a call of the listener, or nothing after the time. Raises
        failures of partitions and of the group, and WakeupError."""
        if self.subscription.is_empty:
            raise IllegalStateError("the consumer reads nothing yet: call subscribe or assign before poll")
        until_ms = self.reactor.now_ms() + timeout_ms
        membership = self.membership
        self.commits.commit_if_due()
        if membership is None:
            return await self._poll(read, until_ms, None)
        membership.on_poll()
        membership.is_polled = True
        try:
            return await self._poll(read, until_ms, membership)
        finally:
            membership.is_polled = False

    async def _poll(
        self, read: Callable[[RecordReader], list[T]], until_ms: float, membership: Membership | None
    ) -> list[T] | ListenerCall:
        failure = failure_of(self.subscription)
        if failure is not None:
            raise failure.with_traceback(None)
        is_last = False
        while True:
            self._check_wakeup()
            if membership is not None:
                membership.take_failure()
                if membership.calls:
                    return membership.calls.popleft()
            changed = self._changed.next
            self._refresh()
            self._positions.update()
            is_held = membership is not None and membership.holds_records
            found = [] if is_held else read(self.reader)
            self._fetcher.send()  # after hidden records, too
            if found:
                return found
            left_ms = until_ms - self.reactor.now_ms()
            if is_last:
                return []
            is_last = left_ms <= 0
            await self.reactor.first(changed, max(0, int(left_ms)))

    def called(self, call: ListenerCall) -> None:
        """End a call of the listener."""
        call.done.set(None)

    def undo_poll(self, poll: Task[Any], positions: Mapping[TopicPartition, tuple[int, int]]) -> None:
        """End a ``poll`` whose result nobody gets, and go back to the positions before it."""
        poll.cancel(WakeupError("poll was interrupted"))
        found = poll.result() if poll.error is None else None
        if isinstance(found, ListenerCall) and self.membership is not None:
            self.membership.calls.appendleft(found)
        for partition, (offset, epoch) in positions.items():
            state = self.subscription.assigned.get(partition)
            if state is not None and state.position > offset:
                state.seek(offset, epoch)

    def wakeup(self) -> None:
        """End the call that waits, or the next one that would, with WakeupError."""
        self._wakes = True
        self._changed.notify()

    def _check_wakeup(self) -> None:
        if self._wakes:
            self._wakes = False
            raise WakeupError("wakeup was called")

    def _refresh(self) -> None:
        """Look up the metadata again, if they are old or a leader has changed."""
        cluster = self.cluster
        subscribed = self.subscription
        cluster.wants_all = subscribed.pattern is not None
        cluster.want(subscribed.topics)
        cluster.want({each.topic for each in subscribed.assigned})
        if self._matched != cluster.changes and subscribed.pattern is not None and cluster.changes:
            self._matched = cluster.changes
            hides = self.config.exclude_internal_topics
            if subscribed.match(
                each.name for each in cluster.topics.values() if not (hides and each.is_internal)
            ):
                LOG.info("the pattern matches %s", ", ".join(sorted(subscribed.topics)) or "no topic")
        now_ms = self.reactor.now_ms()
        if cluster.is_stale and not self._is_refreshing and now_ms >= self._refresh_ms:
            self._is_refreshing = True
            self._refresh_ms = now_ms + self.config.retry_backoff_ms
            self.reactor.spawn(self._refresh_quietly())

    async def _refresh_quietly(self) -> None:
        try:
            await self.cluster.refresh()
        except KafkaError as error:
            LOG.debug("metadata: %s", error)
            self.cluster.updated_ms = -1
        finally:
            self._is_refreshing = False
            if self.cluster.is_stale:
                self.reactor.call_at(self._refresh_ms, self._changed.notify)
            self._changed.notify()

    # Subscriptions

    def subscribe(self, topics: Collection[str], pattern: re.Pattern[str] | None) -> None:
        """Subscribe; the group is joined by ``poll``."""
        if not self.config.group_id:
            raise IllegalStateError("subscribe needs group.id; without a group, use assign")
        self.subscription.subscribe(topics, pattern)
        self._matched = -1
        self.cluster.updated_ms = -1
        if self.membership is None:
            kind = ConsumerGroup if self.config.group_protocol == "consumer" else ClassicGroup
            self.membership = kind(self.cluster, self.config, self.subscription, self.commits, self._changed)
            self.commits.membership = self.membership

    async def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Assign partitions, after an automatic commit of the positions before."""
        if (
            self.config.commits_automatically
            and self.subscription.assigned
            and not self.subscription.is_group
        ):
            await self.commits.commit_quietly(self.commits.positions())
        self.subscription.assign(partitions)
        self.cluster.updated_ms = -1

    async def leaving(self) -> ListenerCall | None:
        """Begin to give up subscription and assignment; return the last call of the listener."""
        if self.membership is not None:
            return await self.membership.leaving()
        if self.config.commits_automatically:
            await self.commits.commit_quietly(self.commits.positions(), self.config.request_timeout_ms)
        return None

    async def leave(self) -> None:
        """Leave the group, and clear the subscription."""
        membership, self.membership = self.membership, None
        if membership is not None:
            await membership.leave()
        self.commits.membership = None
        self.subscription.clear()
        self.cluster.wants_all = False

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the membership, for ``send_offsets_to_transaction``."""
        if not self.config.group_id:
            raise IllegalStateError("group.id is not set: the consumer belongs to no group")
        if self.membership is not None:
            return self.membership.identity()
        return ConsumerGroupMetadata(
            self.config.group_id, group_instance_id=self.config.group_instance_id or None
        )

    # Positions

    async def position(self, partition: TopicPartition, timeout_ms: int) -> int:
        """Return the position, looked up if it is unknown. Raises KafkaTimeoutError."""
        state = self.subscription.of(partition)
        until_ms = self.reactor.now_ms() + timeout_ms
        while state.place is not None:
            self._check_wakeup()
            if state.failure is not None:
                raise state.failure.with_traceback(None)
            changed = self._changed.next
            self._refresh()
            self._positions.update()
            if state.place is None:
                break
            left_ms = until_ms - self.reactor.now_ms()
            if left_ms <= 0:
                raise KafkaTimeoutError(f"{partition}: the position was not found within {timeout_ms} ms")
            await self.reactor.first(changed, left_ms)
        return state.position

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record at each time or later, None if there is none."""
        found = await self.lookup.all(times, timeout_ms)
        return {partition: each if each.offset >= 0 else None for partition, each in found.items()}

    async def limits(
        self, partitions: Collection[TopicPartition], timeout_ms: int, *, is_end: bool
    ) -> dict[TopicPartition, int]:
        """Return the first offsets, or the offsets after the last records that can be read."""
        found = await self.lookup.all(dict.fromkeys(partitions, LATEST if is_end else EARLIEST), timeout_ms)
        return {partition: each.offset for partition, each in found.items()}

    async def lag(self, partition: TopicPartition, timeout_ms: int) -> int:
        """Return the offsets between the position and the end that can be read; the end of the last response,
        or looked up before one."""
        position = await self.position(partition, timeout_ms)
        lag = self.subscription.of(partition).lag
        if lag is not None:
            return lag
        return max(0, (await self.limits([partition], timeout_ms, is_end=True))[partition] - position)

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int | None = None) -> None:
        """Continue at an offset."""
        self.subscription.of(partition).seek(offset, -1 if leader_epoch is None else leader_epoch)

    def seek_to(self, partitions: Collection[TopicPartition], place: Place) -> None:
        """Continue at the beginning or the end; all partitions if none is given."""
        for partition in partitions or list(self.subscription.assigned):
            self.subscription.of(partition).look_up(place)

    def set_paused(self, partitions: Collection[TopicPartition], *, is_paused: bool) -> None:
        """Pause or resume partitions."""
        for partition in partitions:
            self.subscription.of(partition).is_paused = is_paused

    # Commits

    async def commit(self, offsets: Offsets | None, timeout_ms: int) -> None:
        """Commit offsets, by default the positions."""
        await self.commits.commit(self.commits.positions() if offsets is None else offsets, timeout_ms)

    def commit_async(self, offsets: Offsets | None) -> tuple[Offsets, Promise[None]]:
        """Begin a commit without retries."""
        chosen = self.commits.positions() if offsets is None else offsets
        return chosen, self.reactor.spawn(self.commits.commit_once(chosen))

    async def partitions_for(self, topic: str, timeout_ms: int) -> list[int]:
        """Return the numbers of a topic's partitions."""
        found = await self.cluster.retried(
            lambda: self.cluster.topic(topic), timeout_ms, f"the lookup of topic {topic}"
        )
        return sorted(found.partitions)
