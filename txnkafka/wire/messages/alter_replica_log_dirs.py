"""AlterReplicaLogDirs (key 34): moves replicas between log directories (KIP-113).

By version:

2  flexible
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, message, string
from txnkafka.wire.schema import INT32


@message
class AlterReplicaLogDirTopic:
    """An element of ``topics``."""

    name: str = string()
    partitions: tuple[int, ...] = array(INT32)


@message
class AlterReplicaLogDir:
    """An element of ``dirs``."""

    path: str = string()
    topics: tuple[AlterReplicaLogDirTopic, ...] = array(AlterReplicaLogDirTopic)


@message
class AlterReplicaLogDirsRequest:
    """``AlterReplicaLogDirsRequest.json``."""

    dirs: tuple[AlterReplicaLogDir, ...] = array(AlterReplicaLogDir)


@message
class AlterReplicaLogDirPartitionResult:
    """An element of ``partitions``."""

    partition_index: int = int32()
    error_code: int = int16()


@message
class AlterReplicaLogDirTopicResult:
    """An element of ``results``."""

    topic_name: str = string()
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = array(AlterReplicaLogDirPartitionResult)


@message
class AlterReplicaLogDirsResponse:
    """``AlterReplicaLogDirsResponse.json``."""

    throttle_time_ms: int = int32()
    results: tuple[AlterReplicaLogDirTopicResult, ...] = array(AlterReplicaLogDirTopicResult)
