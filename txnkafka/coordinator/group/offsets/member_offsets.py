"""Checks which members of consumer groups may commit and fetch offsets.

A member commits with its current epoch; with an older one, only for partitions that it has owned since then.

Source: ConsumerGroup.validateOffsetCommit and validateOffsetFetch, OffsetMetadataManager (KIP-848, KIP-1251).
"""

from __future__ import annotations

from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.group_requests import Identity, Offsets
from txnkafka.error_codes import ErrorCode

E = ErrorCode
_WITH_EPOCHS = 9  # the first version of OffsetCommit for members of the consumer protocol


def consumer_refusal(
    group: ConsumerGroup, identity: Identity, offsets: Offsets, version: int | None
) -> ErrorCode | None:
    """Return the error for a commit, else None; ``version`` is the version of OffsetCommit, None in a
    transaction."""
    is_nobody = identity.generation == -1 and not identity.member_id and identity.group_instance_id is None
    if (identity.generation < 0 and not group.members) or (version is None and is_nobody):
        return None
    member = group.members.get(identity.member_id)
    if member is None:
        return E.UNKNOWN_MEMBER_ID
    if version is not None and version < _WITH_EPOCHS and member.classic is None:
        return E.UNSUPPORTED_VERSION
    if identity.generation == member.epoch:
        return None
    refused = E.STALE_MEMBER_EPOCH if member.classic is None else E.ILLEGAL_GENERATION
    if identity.generation > member.epoch:
        return refused
    for partition, offset in offsets.items():
        given = member.epoch_of(offset.topic_id or "", partition.partition)
        if given is None or identity.generation < given:
            return refused
    return None


def fetch_refusal(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode | None:
    """Return the error for a fetch, else None. Administrators and old clients have no id and no epoch."""
    if member_id is None and epoch < 0:
        return None
    member = group.members.get(member_id or "")
    if member is None:
        return E.UNKNOWN_MEMBER_ID
    if epoch == member.epoch:
        return None
    return E.STALE_MEMBER_EPOCH if member.classic is None else E.ILLEGAL_GENERATION
