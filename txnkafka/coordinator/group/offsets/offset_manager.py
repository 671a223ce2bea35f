"""``OffsetManager``: commits, fetches, deletes and expires the offsets of groups.

Source: OffsetMetadataManager, ClassicGroup.validateOffsetCommit; kafka-protocol 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from txnkafka.coordinator.group.classic.classic_group import CONSUMER, ClassicGroup, GroupState
from txnkafka.coordinator.group.classic.classic_rebalance import ClassicRebalance
from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.group_log import GroupLog
from txnkafka.coordinator.group.group_partition import AnyGroup, GroupPartition
from txnkafka.coordinator.group.group_requests import CommittedOffset, Identity, Offsets
from txnkafka.coordinator.group.offsets.group_offsets import ends_of
from txnkafka.coordinator.group.offsets.member_offsets import consumer_refusal, fetch_refusal
from txnkafka.coordinator.runtime import append_error
from txnkafka.error_codes import ErrorCode
from txnkafka.model import NO_TIMESTAMP, ProducerIdAndEpoch, TopicPartition
from txnkafka.wire.records.consumer_protocol import decode_subscription
from txnkafka.wire.records.group_log import (
    GroupOffset,
    encode_offset_commit_key,
    encode_offset_commit_value,
)

E = ErrorCode
Errors = dict[TopicPartition, ErrorCode]
Fetched = dict[TopicPartition, CommittedOffset]


class OffsetManager:
    """Handler of offsets: one method for each request; ``reply`` is called once, now or later. Time comes
    from ``rebalance``."""

    def __init__(self, log: GroupLog, rebalance: ClassicRebalance) -> None:
        self._log = log
        self._rebalance = rebalance

    def commit(
        self,
        identity: Identity,
        offsets: Offsets,
        reply: Callable[[Errors], None],
        *,
        version: int = 9,
        producer: ProducerIdAndEpoch | None = None,
    ) -> None:
        """Commit offsets; with ``producer``, as part of its transaction. ``version`` is the version of
        OffsetCommit."""
        refused = self._refusal(identity, version, offsets, is_transactional=producer is not None)
        if refused is not None:
            reply(dict.fromkeys(offsets, refused))
            return
        errors: Errors = {}
        records: list[tuple[bytes, bytes | None]] = []
        for partition, wanted in offsets.items():
            if len(wanted.metadata) > self._rebalance.config.metadata_max_bytes:
                errors[partition] = E.OFFSET_METADATA_TOO_LARGE
                continue
            value = GroupOffset(
                identity.group_id, *partition, wanted.offset, wanted.leader_epoch, wanted.metadata,
                self._rebalance.now_ms, wanted.expire_timestamp,
                wanted.topic_id if wanted.stores_topic_id else None,
            )  # fmt: skip
            key = encode_offset_commit_key(identity.group_id, *partition)
            records.append((key, encode_offset_commit_value(value)))
        accepted = [partition for partition in offsets if partition not in errors]
        if not records:
            reply(errors)
            return
        self._log.append_offsets(
            identity.group_id,
            records,
            lambda error: reply({**errors, **dict.fromkeys(accepted, _commit_error(error))}),
            producer,
        )

    def _refusal(
        self, identity: Identity, version: int, offsets: Offsets, *, is_transactional: bool
    ) -> ErrorCode | None:
        here = self._log.of(identity.group_id, may_be_empty=not is_transactional)
        if isinstance(here, ErrorCode):
            return here
        group = here.groups.get(identity.group_id)
        if group is None:
            if identity.generation >= 0:
                is_told = is_transactional or version >= 9  # TxnOffsetCommit translates it for old clients
                return E.GROUP_ID_NOT_FOUND if is_told else E.ILLEGAL_GENERATION
            here.groups[identity.group_id] = ClassicGroup(identity.group_id, self._rebalance.now_ms)
            return None
        if isinstance(group, ConsumerGroup):
            checked = None if is_transactional else version
            return consumer_refusal(group, identity, offsets, checked)
        refused = _refusal(group, identity, is_transactional)
        is_alive = group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE)
        if refused is None and is_alive and not is_transactional:
            self._rebalance.expect(group, group.members[identity.member_id])
        return refused

    def fetch(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition] | None,
        reply: Callable[[ErrorCode, Fetched], None],
        *,
        require_stable: bool,
        member: tuple[str | None, int] = (None, -1),
    ) -> None:
        """Answer with the committed offsets of partitions, or of all partitions that have one. An unknown
        group has none. ``member`` is the id and epoch of the requesting member of a consumer group."""
        here = self._log.of(group_id, may_be_empty=True)
        if isinstance(here, ErrorCode):
            reply(here, {})
            return
        group = here.groups.get(group_id)
        refused = fetch_refusal(group, *member) if isinstance(group, ConsumerGroup) else None
        if refused is not None:
            reply(refused, {})
            return
        offsets = here.offsets
        if partitions is None:
            found = offsets.committed(group_id)
            partitions = [TopicPartition(each.topic, each.partition) for each in found]
        fetched = {
            partition: offsets.fetch(group_id, partition, is_stable_wanted=require_stable)
            for partition in partitions
        }
        self._log.when_durable(group_id, lambda error: reply(append_error(error), {} if error else fetched))

    def delete(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition],
        reply: Callable[[ErrorCode, Errors], None],
    ) -> None:
        """Delete committed offsets, except for topics that a member is subscribed to (KIP-496). The answer
        is sent when the deletion is durable, also for offsets that are already deleted."""
        group, here = self._log.find(group_id), self._log.of(group_id)
        if group == E.GROUP_ID_NOT_FOUND:
            self._log.when_durable(group_id, lambda error: reply(append_error(error) or group, {}))
            return
        if isinstance(group, ErrorCode) or isinstance(here, ErrorCode):
            reply(group if isinstance(group, ErrorCode) else E.NOT_COORDINATOR, {})
            return
        if isinstance(group, ClassicGroup) and group.members and group.protocol_type != CONSUMER:
            reply(E.NON_EMPTY_GROUP, {})
            return
        subscribed = subscribed_topics(group)
        errors = {
            each: E.GROUP_SUBSCRIBED_TO_TOPIC if subscribed is None or each.topic in subscribed else E.NONE
            for each in partitions
        }
        there = set(here.offsets.keys(group_id))
        keys = [encode_offset_commit_key(group_id, *each) for each, error in errors.items() if not error]
        records = [(key, None) for key in keys if key in there]

        def durable(error: ErrorCode) -> None:
            reply(append_error(error), {} if error else errors)

        if records:
            self._log.append_offsets(group_id, records, durable)
        else:
            self._log.when_durable(group_id, durable)

    def delete_partitions(self, topic: str, numbers: Iterable[int]) -> None:
        """Write tombstones for the offsets of a deleted topic's partitions, including pending offsets of
        open transactions (``OffsetMetadataManager.onPartitionsDeleted``)."""
        ends = ends_of(topic, numbers)
        for number, here in list(self._log.loaded.items()):
            self._log.drop_offsets(number, here.offsets.keys_of(ends))

    def delete_removed(self, removed: Mapping[str, str], there: Container[str]) -> None:
        """Delete offsets that a crash has left of removed topics; see ``GroupOffsets.keys_of_removed``."""
        for number, here in list(self._log.loaded.items()):
            self._log.drop_offsets(number, here.offsets.keys_of_removed(removed, there))

    def delete_keys(self, number: int, keys: Sequence[bytes], call: Callable[[ErrorCode], None]) -> bool:
        """Write tombstones to a partition; see ``GroupLog.append_tombstones``."""
        return self._log.append_tombstones(number, keys, call)

    def expire(self, here: GroupPartition, group: AnyGroup) -> bool:
        """Write tombstones for offsets that were not used for the retention time; return whether no offset
        is left."""
        expired = self._expired(here, group)
        is_last = len(expired) == len(here.offsets.keys(group.group_id))
        self._log.drop_offsets(self._log.number_of(group.group_id), expired)
        return is_last

    def _expired(self, here: GroupPartition, group: AnyGroup) -> list[bytes]:
        """Return the keys of expired offsets (``offsetExpirationCondition``)."""
        subscribed = subscribed_topics(group)
        if subscribed is None:
            return []
        emptied = None  # the time from which on the commit timestamps no longer matter
        if isinstance(group, ClassicGroup):
            is_empty, is_simple = group.state is GroupState.EMPTY, group.protocol_type is None
            is_followed = group.protocol_type == CONSUMER and group.state is GroupState.STABLE
            if not (is_empty or is_simple or is_followed):
                return []
            is_known = group.state_timestamp != NO_TIMESTAMP
            emptied = group.state_timestamp if is_empty and is_known and not is_simple else None
        found = []
        now_ms, retention_ms = self._rebalance.now_ms, self._rebalance.config.retention_ms
        for each in here.offsets.committed(group.group_id):
            since = each.commit_timestamp if emptied is None else emptied
            end = each.expire_timestamp
            end = since + retention_ms if end < 0 else end
            if now_ms < end or each.topic in subscribed:
                continue
            partition = TopicPartition(each.topic, each.partition)
            if not here.offsets.is_pending(group.group_id, partition):
                found.append(encode_offset_commit_key(group.group_id, *partition))
        return found


def subscribed_topics(group: AnyGroup) -> set[str] | None:
    """Return the topics that consumers of a group are subscribed to; None if a member's subscription is
    malformed."""
    if isinstance(group, ConsumerGroup):
        return group.subscriptions().topics
    topics: set[str] = set()
    for member in group.members.values() if group.protocol_type == CONSUMER else ():
        fields = decode_subscription(member.metadata(group.protocol), version=0)
        if fields is None:
            return None
        topics.update(fields["topics"])
    return topics


def _refusal(group: ClassicGroup, identity: Identity, is_transactional: bool) -> ErrorCode | None:
    if identity.generation < 0 and group.state is GroupState.EMPTY:
        return None
    if identity.generation >= 0 or identity.member_id or identity.group_instance_id is not None:
        refused = group.refusal(identity)
        if refused is not None:
            return refused
        if identity.generation != group.generation:
            return E.ILLEGAL_GENERATION
    elif not is_transactional and group.state is not GroupState.EMPTY:
        return E.UNKNOWN_MEMBER_ID
    if not is_transactional and group.state is GroupState.COMPLETING_REBALANCE:
        return E.REBALANCE_IN_PROGRESS
    return None


def _commit_error(error: ErrorCode) -> ErrorCode:
    """Return the error of a commit; a batch that is too large has too much metadata."""
    is_too_large = error in (E.MESSAGE_TOO_LARGE, E.RECORD_LIST_TOO_LARGE)
    return E.INVALID_COMMIT_OFFSET_SIZE if is_too_large else append_error(error)
