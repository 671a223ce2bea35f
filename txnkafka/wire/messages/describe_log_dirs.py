"""DescribeLogDirs (key 35): sizes of partitions in log directories (KIP-113).

By version:

2  flexible
3  an error code for the whole answer
4  bytes of the volume (KIP-827)
5  cordoned directories (KIP-1066)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int16, int32, int64, message, string
from txnkafka.wire.schema import INT32


@message
class DescribableLogDirTopic:
    """An element of ``topics``."""

    topic: str = string()
    partitions: tuple[int, ...] = array(INT32)


@message
class DescribeLogDirsRequest:
    """``DescribeLogDirsRequest.json``."""

    topics: tuple[DescribableLogDirTopic, ...] | None = array(DescribableLogDirTopic, nullable="0+")


@message
class DescribeLogDirsPartition:
    """An element of ``partitions``."""

    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


@message
class DescribeLogDirsTopic:
    """An element of ``topics``."""

    name: str = string()
    partitions: tuple[DescribeLogDirsPartition, ...] = array(DescribeLogDirsPartition)


@message
class DescribeLogDirsResult:
    """An element of ``results``."""

    error_code: int = int16()
    log_dir: str = string()
    topics: tuple[DescribeLogDirsTopic, ...] = array(DescribeLogDirsTopic)
    total_bytes: int = int64("4+", default=-1, ignorable=True)
    usable_bytes: int = int64("4+", default=-1, ignorable=True)
    is_cordoned: bool = boolean("5+", ignorable=True)


@message
class DescribeLogDirsResponse:
    """``DescribeLogDirsResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16("3+", ignorable=True)
    results: tuple[DescribeLogDirsResult, ...] = array(DescribeLogDirsResult)
