"""CreateTopics (key 19): topics, by number of partitions or by assignment.

By version:

    2  throttle time
    4  -1 partitions and replicas: as the broker is configured (KIP-464)
    5  flexible; created partitions and configs (KIP-525)
    6  THROTTLING_QUOTA_EXCEEDED (KIP-599)
    7  topic ids (KIP-516)

Java's admin client needs ``configs`` that are not null, or an error code for them.
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int8, int16, int32, message, string, uuid
from txnkafka.wire.schema import INT32


@message
class CreatableReplicaAssignment:
    """An element of ``assignments``."""

    partition_index: int = int32()
    broker_ids: tuple[int, ...] = array(INT32)


@message
class CreatableTopicConfig:
    """An element of ``configs``."""

    name: str = string()
    value: str | None = string(nullable="0+")


@message
class CreatableTopic:
    """An element of ``topics``."""

    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: tuple[CreatableReplicaAssignment, ...] = array(CreatableReplicaAssignment)
    configs: tuple[CreatableTopicConfig, ...] = array(CreatableTopicConfig)


@message
class CreateTopicsRequest:
    """``CreateTopicsRequest.json``."""

    topics: tuple[CreatableTopic, ...] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean()


@message
class CreatableTopicConfigs:
    """An element of ``configs``."""

    name: str = string("5+")
    value: str | None = string("5+", nullable="0+")
    read_only: bool = boolean("5+")
    config_source: int = int8("5+", default=-1, ignorable=True)
    is_sensitive: bool = boolean("5+")


@message
class CreatableTopicResult:
    """An element of ``topics``."""

    name: str = string()
    topic_id: str = uuid("7+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)
    num_partitions: int = int32("5+", default=-1, ignorable=True)
    replication_factor: int = int16("5+", default=-1, ignorable=True)
    configs: tuple[CreatableTopicConfigs, ...] | None = array(
        CreatableTopicConfigs, "5+", nullable="0+", ignorable=True
    )
    topic_config_error_code: int = int16("5+", tag=0, ignorable=True)


@message
class CreateTopicsResponse:
    """``CreateTopicsResponse.json``."""

    throttle_time_ms: int = int32(ignorable=True)
    topics: tuple[CreatableTopicResult, ...] = array(CreatableTopicResult)
