"""Error codes for clients of old API versions, in place of codes added later.

Source: KafkaApis.handleInitProducerIdRequest and related methods; AddPartitionsToTxnManager and UnifiedLog
for the translation of the coordinator's answer to a verification, on its way to the producer.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from txnkafka.error_codes import ErrorCode

E = ErrorCode
ANY: Final = 32767  # no version of the API understands the code


class OldCode(NamedTuple):
    """A translation: below version ``understood_from`` of the API, ``error`` is sent as ``told_as``."""

    error: ErrorCode
    understood_from: int
    told_as: ErrorCode


OLD_CODES: Final[dict[str, tuple[OldCode, ...]]] = {
    "InitProducerId": (OldCode(E.PRODUCER_FENCED, 4, E.INVALID_PRODUCER_EPOCH),),
    "AddPartitionsToTxn": (OldCode(E.PRODUCER_FENCED, 2, E.INVALID_PRODUCER_EPOCH),),
    "AddOffsetsToTxn": (OldCode(E.PRODUCER_FENCED, 2, E.INVALID_PRODUCER_EPOCH),),
    "EndTxn": (OldCode(E.PRODUCER_FENCED, 2, E.INVALID_PRODUCER_EPOCH),),
    # the leader of a partition asks the coordinator
    "Produce": (
        OldCode(E.PRODUCER_FENCED, ANY, E.INVALID_PRODUCER_EPOCH),
        OldCode(E.TRANSACTION_ABORTABLE, 11, E.INVALID_TXN_STATE),
        OldCode(E.CONCURRENT_TRANSACTIONS, 12, E.NOT_ENOUGH_REPLICAS),
        OldCode(E.NETWORK_EXCEPTION, ANY, E.NOT_ENOUGH_REPLICAS),
        OldCode(E.COORDINATOR_LOAD_IN_PROGRESS, ANY, E.NOT_ENOUGH_REPLICAS),
        OldCode(E.COORDINATOR_NOT_AVAILABLE, ANY, E.NOT_ENOUGH_REPLICAS),
        OldCode(E.NOT_COORDINATOR, ANY, E.NOT_ENOUGH_REPLICAS),
    ),
    "TxnOffsetCommit": (
        OldCode(E.PRODUCER_FENCED, ANY, E.INVALID_PRODUCER_EPOCH),
        OldCode(E.TRANSACTION_ABORTABLE, 4, E.INVALID_TXN_STATE),
        OldCode(E.NETWORK_EXCEPTION, ANY, E.COORDINATOR_LOAD_IN_PROGRESS),
        OldCode(E.COORDINATOR_LOAD_IN_PROGRESS, 2, E.COORDINATOR_NOT_AVAILABLE),
        OldCode(E.GROUP_ID_NOT_FOUND, 6, E.ILLEGAL_GENERATION),
        OldCode(E.STALE_MEMBER_EPOCH, 6, E.ILLEGAL_GENERATION),
    ),
}


def error_for(api: str, version: int, error: ErrorCode) -> ErrorCode:
    """Return the error code to send in this version; ``api`` is Kafka's name. For Produce and
    TxnOffsetCommit, ``error`` is the answer of a coordinator to the serving broker."""
    for row in OLD_CODES.get(api, ()):
        if row.error == error and version < row.understood_from:
            error = row.told_as
    return error
