"""InitProducerId (key 22): a producer id and epoch, for a transactional id or none.

By version:

2  flexible
3  the producer's own id and epoch, to be raised (KIP-360)
4  PRODUCER_FENCED
5  TRANSACTION_ABORTABLE (KIP-890)
6  two-phase commit (KIP-939); unstable: announced and accepted with unstable.api.versions.enable only
"""

from __future__ import annotations

from txnkafka.wire.fields import boolean, int16, int32, int64, message, string


@message
class InitProducerIdRequest:
    """``InitProducerIdRequest.json``."""

    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)
    enable2_pc: bool = boolean("6+")
    keep_prepared_txn: bool = boolean("6+")


@message
class InitProducerIdResponse:
    """``InitProducerIdResponse.json``."""

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)
