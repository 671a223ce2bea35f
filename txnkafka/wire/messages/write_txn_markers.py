"""WriteTxnMarkers (key 27): COMMIT and ABORT markers, from the coordinator or from an admin client
(KIP-664).

By version:

1  flexible
2  transaction version of the coordinator (KIP-1228)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int8, int16, int32, int64, message, string
from txnkafka.wire.schema import INT32


@message
class WritableTxnMarkerTopic:
    """An element of ``topics``."""

    name: str = string()
    partition_indexes: tuple[int, ...] = array(INT32)


@message
class WritableTxnMarker:
    """An element of ``markers``."""

    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: tuple[WritableTxnMarkerTopic, ...] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8("2+", ignorable=True)


@message
class WriteTxnMarkersRequest:
    """``WriteTxnMarkersRequest.json``."""

    markers: tuple[WritableTxnMarker, ...] = array(WritableTxnMarker)


@message
class WritableTxnMarkerPartitionResult:
    """An element of ``partitions``."""

    partition_index: int = int32()
    error_code: int = int16()


@message
class WritableTxnMarkerTopicResult:
    """An element of ``topics``."""

    name: str = string()
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = array(WritableTxnMarkerPartitionResult)


@message
class WritableTxnMarkerResult:
    """An element of ``markers``."""

    producer_id: int = int64()
    topics: tuple[WritableTxnMarkerTopicResult, ...] = array(WritableTxnMarkerTopicResult)


@message
class WriteTxnMarkersResponse:
    """``WriteTxnMarkersResponse.json``."""

    markers: tuple[WritableTxnMarkerResult, ...] = array(WritableTxnMarkerResult)
