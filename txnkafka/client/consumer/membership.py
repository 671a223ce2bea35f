"""``Membership``: the common part of the two group protocols.

A membership runs in the background. It changes the assignment only while ``poll`` is called, because the
records of the last poll count as processed then: it waits for the next poll, commits, and has the listener
called, which ``poll`` does in the caller's thread.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from txnkafka.client.cluster import GROUP
from txnkafka.client.consumer.signal import Signal
from txnkafka.client.promise import Promise
from txnkafka.error_codes import Family
from txnkafka.errors import ClosedError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine, Iterable

    from txnkafka.client.cluster import Cluster
    from txnkafka.client.consumer.commits import Commits
    from txnkafka.client.consumer.consumer_config import ConsumerConfig
    from txnkafka.client.consumer.subscription import Subscription
    from txnkafka.client.group_metadata import ConsumerGroupMetadata
    from txnkafka.client.promise import Task
    from txnkafka.client.reactor import Timer
    from txnkafka.error_codes import ErrorCode
    from txnkafka.model import TopicPartition

LOG = logging.getLogger("txnkafka.client")
Kind = Literal["revoked", "assigned", "lost"]
_COMMIT_SHARE: Final = 2  # of request.timeout.ms, for the commit before a rebalance


class ListenerCall(NamedTuple):
    """A call of the listener, to be made by the caller of ``poll``; ``done`` ends it."""

    kind: Kind
    partitions: list[TopicPartition]
    done: Promise[None]


class Membership:
    """``calls`` are made by the next ``poll``; while ``holds_records``, it returns none. ``failure`` is
    raised by the next poll, after which the membership begins again. ``changed`` wakes a poll."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        subscription: Subscription,
        commits: Commits,
        changed: Signal,
    ) -> None:
        self.cluster = cluster
        self.reactor = cluster.reactor
        self.config = config
        self.subscription = subscription
        self.commits = commits
        self.calls: deque[ListenerCall] = deque()
        self.holds_records = False
        self.failure: Exception | None = None
        self.is_over = False
        self.is_polled = False  # a call of poll is under way
        self._changed = changed
        self._polled = Signal()
        self._poll_timer: Timer | None = None
        self._tasks: list[Task[Any]] = []

    # For the consumer

    @property
    @abstractmethod
    def is_member(self) -> bool:
        """Return whether the group counts this consumer as a member."""

    @abstractmethod
    def identity(self) -> ConsumerGroupMetadata:
        """Return group, generation or epoch, and member id."""

    @abstractmethod
    def epoch_identity(self) -> ConsumerGroupMetadata | None:
        """Return the identity for OffsetFetch, which only the consumer protocol has."""

    @abstractmethod
    def on_lost(self, code: ErrorCode) -> None:
        """Join again: a commit was refused because the group does not know the member."""

    @abstractmethod
    async def leave(self) -> None:
        """Leave the group, unless the member is static."""

    @abstractmethod
    def check(self) -> None:
        """Compare metadata and subscription with those of the assignment."""

    @abstractmethod
    def _start(self) -> list[Task[Any]]:
        """Start the tasks of the protocol."""

    @abstractmethod
    async def _poll_expired(self) -> None:
        """Leave the group, because ``poll`` was not called for ``max.poll.interval.ms``."""

    def on_poll(self) -> None:
        """Begin or continue: ``poll`` was called."""
        if self._poll_timer is not None:
            self._poll_timer.cancel()
        until_ms = self.reactor.now_ms() + self.config.max_poll_interval_ms
        self._poll_timer = self.reactor.call_at(until_ms, self._on_poll_timer)
        if not self._tasks or any(task.is_done for task in self._tasks):  # one ends only by an error
            _cancel(self._tasks)
            self._tasks = self._start()
        self.check()
        self._polled.notify()

    async def leaving(self) -> ListenerCall | None:
        """Stop the tasks, commit, and return the last call of the listener."""
        self.is_over = True
        self.stop()
        if self.config.commits_automatically and self.is_member:
            await self.commits.commit_quietly(self.commits.positions(), self.config.request_timeout_ms)
        partitions = list(self.subscription.assigned)
        kind: Kind = "revoked" if self.is_member else "lost"
        return ListenerCall(kind, partitions, Promise()) if partitions else None

    def stop(self) -> None:
        """Cancel all tasks and timers."""
        if self._poll_timer is not None:
            self._poll_timer.cancel()
        for task in self._tasks:
            task.cancel(ClosedError("the consumer leaves its group"))
        self._tasks = []
        self.calls.clear()

    def take_failure(self) -> None:
        """Raise the failure, once."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    # For the protocols

    async def poll_point(self) -> None:
        """Wait for the next poll, unless one waits for records; it returns none until they are released."""
        self.holds_records = True
        if not self.is_polled:
            await self._polled.next

    def release(self) -> None:
        """Let ``poll`` return records."""
        self.holds_records = False
        self._changed.notify()

    async def commit_before(self) -> None:
        """Commit the positions before a rebalance, if commits are automatic."""
        if self.config.commits_automatically and self.is_member:
            timeout_ms = self.config.request_timeout_ms // _COMMIT_SHARE
            await self.commits.commit_quietly(self.commits.positions(), timeout_ms)

    async def revoke(self, partitions: Collection[TopicPartition], kind: Kind = "revoked") -> None:
        """Have the listener called, and remove partitions."""
        gone = [each for each in self.subscription.assigned if each in set(partitions)]
        if gone:
            for partition in gone:
                self.subscription.assigned[partition].is_revoked = True
            await self._call(kind, gone)
            self.subscription.remove(gone)

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions, and have the listener called."""
        added = [each for each in partitions if each not in self.subscription.assigned]
        self.subscription.add(added)
        for partition in added:  # no Fetch before the listener has had its chance to seek
            self.subscription.assigned[partition].is_revoked = True
        await self._call("assigned", added)
        for partition in added:
            state = self.subscription.assigned.get(partition)
            if state is not None:
                state.is_revoked = False

    async def _call(self, kind: Kind, partitions: list[TopicPartition]) -> None:
        call = ListenerCall(kind, partitions, Promise())
        self.calls.append(call)
        self._changed.notify()
        await call.done

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the work of a task; an error fails the next poll, and ends the other tasks."""
        try:
            await work
        except ClosedError:
            raise
        except Exception as error:
            LOG.warning("group %s: %s", self.config.group_id, error)
            self.failure = error
            others, self._tasks = self._tasks, []
            self.reactor.soon(partial(_cancel, others))
            self.release()

    def forget_coordinator(self, error: KafkaError) -> None:
        """Find the coordinator again, if the error asks for it."""
        if error.code.family is Family.REFRESH:
            self.cluster.forget_coordinator(GROUP, self.config.group_id)

    def _on_poll_timer(self) -> None:
        if not self.is_over:
            LOG.warning(
                "group %s: poll was not called for max.poll.interval.ms (%d ms): the consumer leaves it, "
                "and joins again with the next poll; process fewer records in a poll (max.poll.records), or "
                "allow more time", self.config.group_id, self.config.max_poll_interval_ms,
            )  # fmt: skip
            self.reactor.spawn(self._poll_expired())


def _cancel(tasks: Iterable[Task[Any]]) -> None:
    for task in tasks:
        task.cancel(ClosedError("another task of the membership failed"))
