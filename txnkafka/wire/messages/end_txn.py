"""EndTxn (key 26): commit or abort.

By version:

    2  PRODUCER_FENCED
    3  flexible
    4  TRANSACTION_ABORTABLE (KIP-890)
    5  raises the epoch; the producer continues with the id and epoch of the answer (KIP-890)
"""

from __future__ import annotations

from txnkafka.wire.fields import boolean, int16, int32, int64, message, string


@message
class EndTxnRequest:
    """``EndTxnRequest.json``."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


@message
class EndTxnResponse:
    """``EndTxnResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)
