"""``Commits``: commits and fetches the offsets of a group, at its coordinator.

Commits are sent one after another, in the order of the calls. Source: ``CommitRequestManager``,
``ConsumerCoordinator``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from txnkafka.client.cluster import GROUP
from txnkafka.client.consumer.committed import (
    FIRST_WITH_IDS,
    read_commit,
    read_committed_offsets,
    write_commit,
    write_fetch,
)
from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.client.promise import Promise
from txnkafka.error_codes import ErrorCode, Family
from txnkafka.errors import CommitFailedError, IllegalStateError, KafkaError, error_for

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from txnkafka.client.cluster import Cluster
    from txnkafka.client.consumer.consumer_config import ConsumerConfig
    from txnkafka.client.consumer.subscription import Subscription
    from txnkafka.client.group_metadata import ConsumerGroupMetadata
    from txnkafka.client.transport import Connection
    from txnkafka.model import TopicPartition

LOG = logging.getLogger("txnkafka.client")
_LOST: Final = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_MEMBER_EPOCH}
_OLD_EPOCH: Final = {ErrorCode.STALE_MEMBER_EPOCH, *_LOST}

T = TypeVar("T")
Offsets = dict["TopicPartition", OffsetAndMetadata]


class Member(Protocol):
    """The part of a ``Membership`` that commits need."""

    @property
    def is_member(self) -> bool:
        """Return whether the group knows the consumer."""

    def identity(self) -> ConsumerGroupMetadata:
        """Return the membership for OffsetCommit."""

    def epoch_identity(self) -> ConsumerGroupMetadata | None:
        """Return the membership for OffsetFetch, None if it has no epochs."""

    def on_lost(self, code: ErrorCode) -> None:
        """Join again, because the group has answered with ``code``."""


class Commits:
    """``membership`` is None without a subscription: then the group does not check the member."""

    def __init__(self, cluster: Cluster, config: ConsumerConfig, subscription: Subscription) -> None:
        self.config = config
        self.membership: Member | None = None
        self._cluster = cluster
        self._subscription = subscription
        self._tail: Promise[None] = Promise.of(None)
        self._due_ms = cluster.reactor.now_ms() + config.auto_commit_interval_ms

    @property
    def has_group(self) -> bool:
        """Return whether ``group.id`` is set."""
        return bool(self.config.group_id)

    def positions(self) -> Offsets:
        """Return the positions of all partitions, as offsets to commit."""
        return {
            partition: OffsetAndMetadata(offset, "", None if epoch < 0 else epoch)
            for partition, (offset, epoch) in self._subscription.positions().items()
        }

    # Commits

    async def commit(self, offsets: Offsets, timeout_ms: int) -> None:
        """Commit with retries. Raises CommitFailedError for a member that is not in the group any more,
        RebalanceInProgressError during a rebalance, KafkaTimeoutError, and errors that do not pass."""
        self._check()
        if offsets:
            what = f"the commit of group {self.config.group_id!r}"
            await self._in_order(lambda: self._retried(lambda: self._commit(offsets), timeout_ms, what))

    async def commit_once(self, offsets: Offsets) -> None:
        """Commit without retries, as ``commit_async`` does. Raises like ``commit``."""
        self._check()
        if offsets:
            await self._in_order(lambda: self._once(lambda: self._commit(offsets)))

    async def commit_quietly(self, offsets: Offsets, timeout_ms: int | None = None) -> None:
        """Commit; a failure is logged. Without ``timeout_ms`` there are no retries."""
        try:
            if timeout_ms is None:
                await self.commit_once(offsets)
            else:
                await self.commit(offsets, timeout_ms)
        except KafkaError as error:
            LOG.warning("automatic commit of group %s failed: %s", self.config.group_id, error)

    def commit_if_due(self) -> None:
        """Begin an automatic commit of the positions, if ``auto.commit.interval.ms`` has passed."""
        now_ms = self._cluster.reactor.now_ms()
        if self.config.commits_automatically and now_ms >= self._due_ms:
            self._due_ms = now_ms + self.config.auto_commit_interval_ms
            offsets = self.positions()
            if offsets and (self.membership is None or self.membership.is_member):
                self._cluster.reactor.spawn(self.commit_quietly(offsets))

    async def _commit(self, offsets: Offsets) -> None:
        membership = self.membership
        if membership is not None and not membership.is_member:
            raise self._not_a_member("the consumer has not joined it yet, or has lost its place")
        connection = await self._coordinator()
        version = connection.versions.pick("OffsetCommit", at_most=self._most(offsets), at_least=2)
        identity = None if membership is None else membership.identity()
        ids = self._ids(offsets) if version >= FIRST_WITH_IDS else None
        message = write_commit(self.config, identity, offsets, ids)
        response = await self._cluster.request(connection, "OffsetCommit", version, message)
        for partition, code in read_commit(response, self._cluster.names, version):
            if code in _LOST:
                self._lost(code, identity)
                raise self._not_a_member(code.name)
            if code == ErrorCode.STALE_MEMBER_EPOCH and membership is not None:
                raise _StaleEpochError(
                    f"group {self.config.group_id!r}: the member epoch has changed meanwhile"
                )
            if code != ErrorCode.NONE:
                reason = f"the offset of {partition} was not committed: {code.name}"
                raise error_for(code, f"group {self.config.group_id!r}: {reason}")

    def _lost(self, code: ErrorCode, identity: ConsumerGroupMetadata | None) -> None:
        """Have the member join again, unless it has done that since the request."""
        if self.membership is not None and self.membership.identity() == identity:
            self.membership.on_lost(code)

    def _not_a_member(self, reason: str) -> CommitFailedError:
        return CommitFailedError(
            f"group {self.config.group_id!r}: offsets were not committed ({reason}): the consumer is not a "
            "member of the current generation, because it did not poll within max.poll.interval.ms or its "
            "session timed out; its partitions may belong to another member"
        )

    # Committed offsets

    async def committed(self, partitions: Collection[TopicPartition], timeout_ms: int) -> Offsets:
        """Return the committed offsets of the partitions that have one, with retries."""
        self._check()
        what = f"the lookup of the committed offsets of group {self.config.group_id!r}"
        return await self._retried(lambda: self._fetch(partitions), timeout_ms, what)

    async def fetch_once(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Return the committed offsets of the partitions that have one. Raises retriable errors too, such as
        UNSTABLE_OFFSET_COMMIT while a transaction with offsets is open (KIP-447)."""
        return await self._once(lambda: self._fetch(partitions))

    async def _fetch(self, partitions: Collection[TopicPartition]) -> Offsets:
        connection = await self._coordinator()
        version = connection.versions.pick("OffsetFetch", at_most=self._most(partitions), at_least=1)
        identity = None if self.membership is None else self.membership.epoch_identity()
        ids = self._ids(partitions) if version >= FIRST_WITH_IDS else None
        message = write_fetch(self.config, identity, partitions, ids, version)
        response = await self._cluster.request(connection, "OffsetFetch", version, message)
        try:
            return read_committed_offsets(response, self.config.group_id, self._cluster.names, version)
        except KafkaError as error:
            if self.membership is not None and error.code in _OLD_EPOCH:
                if error.code in _LOST:
                    self._lost(error.code, identity)
                raise _StaleEpochError(str(error)) from error
            raise

    # Shared parts

    def _check(self) -> None:
        if not self.has_group:
            raise IllegalStateError("group.id is not set: commits and committed offsets need one")

    async def _coordinator(self) -> Connection:
        return await self._cluster.coordinator(GROUP, self.config.group_id)

    def _ids(self, partitions: Collection[TopicPartition]) -> Mapping[str, str]:
        return {each.topic: self._cluster.topics[each.topic].topic_id for each in partitions}

    def _most(self, partitions: Collection[TopicPartition]) -> int:
        """Return the highest version: names are sent if an id is unknown."""
        topics = self._cluster.topics
        known = all(
            each.topic in topics and topics[each.topic].topic_id in self._cluster.names for each in partitions
        )
        return 1 << 15 if known else FIRST_WITH_IDS - 1

    async def _in_order(self, call: Callable[[], Awaitable[None]]) -> None:
        done = Promise[None]()
        before, self._tail = self._tail, done
        try:
            await before
            await call()
        finally:
            done.set(None)

    async def _retried(self, attempt: Callable[[], Awaitable[T]], timeout_ms: int, what: str) -> T:
        return await self._cluster.retried(
            attempt, timeout_ms, what, coordinator=(GROUP, self.config.group_id)
        )

    async def _once(self, attempt: Callable[[], Awaitable[T]]) -> T:
        try:
            return await attempt()
        except KafkaError as error:
            if error.code.family is Family.REFRESH:
                self._cluster.forget_coordinator(GROUP, self.config.group_id)
            raise


class _StaleEpochError(KafkaError):
    """The member epoch was old; the next attempt has the new one."""

    code = ErrorCode.STALE_MEMBER_EPOCH

    @property
    def retriable(self) -> bool:
        """Return True, unlike the code: this member stays in the group."""
        return True
