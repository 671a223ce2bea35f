"""AddOffsetsToTxn (key 25): adds a consumer group's offsets to a transaction.

By version:

    2  PRODUCER_FENCED
    3  flexible
    4  TRANSACTION_ABORTABLE (KIP-890)
"""

from __future__ import annotations

from txnkafka.wire.fields import int16, int32, int64, message, string


@message
class AddOffsetsToTxnRequest:
    """``AddOffsetsToTxnRequest.json``."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@message
class AddOffsetsToTxnResponse:
    """``AddOffsetsToTxnResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
