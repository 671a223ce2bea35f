"""Creates the topics of check-back at their first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.checkback.half_topics import CHECK_TOPIC, HALF_TOPIC, PARKED_TOPIC
from txnkafka.client.admin.topic_types import NewTopic
from txnkafka.errors import TopicAlreadyExistsError

if TYPE_CHECKING:
    from txnkafka.checkback.checkback_config import CheckBackConfig
    from txnkafka.client.admin.core import AdminCore

_LARGEST_HALF: Final = 8 << 20
_LARGEST_COPY: Final = _LARGEST_HALF + (1 << 20)  # of a half, in a check or as a parked half
_STATE: Final = {"cleanup.policy": "compact", "segment.bytes": 104_857_600, "compression.type": "producer"}
_ASKS: Final = {"cleanup.policy": "delete", "retention.ms": 3_600_000, "segment.ms": 600_000}
_SETTINGS: Final = {
    HALF_TOPIC: {**_STATE, "max.message.bytes": _LARGEST_HALF},
    CHECK_TOPIC: {**_ASKS, "max.message.bytes": _LARGEST_COPY},
    PARKED_TOPIC: {**_STATE, "max.message.bytes": _LARGEST_COPY},
}


async def create_internal_topics(admin: AdminCore, config: CheckBackConfig) -> None:
    """Create ``__txn_half``, ``__txn_check`` and ``__txn_check_max``, unless they exist. Several processes
    may do it at the same time. Raises what ``create_topic`` raises."""
    existing = {each.name for each in await admin.list_topics(include_internal=True)}
    partitions = config.half_partitions
    if HALF_TOPIC in existing and not existing.issuperset(_SETTINGS):
        partitions = len((await admin.describe_topics([HALF_TOPIC]))[HALF_TOPIC].partitions)
    for name, settings in _SETTINGS.items():
        if name not in existing:
            topic = NewTopic(name, partitions, config.half_replication_factor, None, settings)
            try:
                await admin.create_topics([topic])
            except TopicAlreadyExistsError:
                continue
