"""Names of the topics, groups and transactional ids of check-back, and the partition of a half."""

from __future__ import annotations

from typing import Final

from txnkafka._core.key_partition import partition_of

HALF_TOPIC: Final = "__txn_half"
CHECK_TOPIC: Final = "__txn_check"
PARKED_TOPIC: Final = "__txn_check_max"
RESOLVER_GROUP: Final = "__txn_resolver"
"""Consumer group of the resolvers: each partition of ``__txn_half`` has one owner."""

ROCKETMQ_NAMES: Final = {
    "RMQ_SYS_TRANS_HALF_TOPIC": HALF_TOPIC,
    "TRANS_CHECK_MAX_TIME_TOPIC": PARKED_TOPIC,
}


def check_group(producer_group: str) -> str:
    """Return the consumer group of the listeners of a producer group."""
    return f"__txn_check-{producer_group}"


def owner_id(partition: int) -> str:
    """Return the transactional id of the owner of a partition of ``__txn_half``."""
    return f"{HALF_TOPIC}-{partition}"


def half_partition(transaction_id: str, partitions: int) -> int:
    """Return the partition of a half, when ``__txn_half`` has this number of partitions: murmur2 of its id,
    as a producer chooses it for a key."""
    return partition_of(transaction_id.encode(), partitions)
