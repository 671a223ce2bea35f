"""Error codes by API version: every row of the table, below and at the version that understands the code."""

from __future__ import annotations

import pytest

from txnkafka.coordinator.old_clients import OLD_CODES, error_for
from txnkafka.error_codes import ErrorCode

EXPECTED = """\
InitProducerId     3 PRODUCER_FENCED              INVALID_PRODUCER_EPOCH
InitProducerId     4 PRODUCER_FENCED              PRODUCER_FENCED
AddPartitionsToTxn 1 PRODUCER_FENCED              INVALID_PRODUCER_EPOCH
AddPartitionsToTxn 2 PRODUCER_FENCED              PRODUCER_FENCED
AddPartitionsToTxn 0 CONCURRENT_TRANSACTIONS      CONCURRENT_TRANSACTIONS
AddOffsetsToTxn    1 PRODUCER_FENCED              INVALID_PRODUCER_EPOCH
AddOffsetsToTxn    2 PRODUCER_FENCED              PRODUCER_FENCED
EndTxn             1 PRODUCER_FENCED              INVALID_PRODUCER_EPOCH
EndTxn             2 PRODUCER_FENCED              PRODUCER_FENCED
EndTxn             0 INVALID_TXN_STATE            INVALID_TXN_STATE
Produce           13 PRODUCER_FENCED              INVALID_PRODUCER_EPOCH
Produce           13 INVALID_PRODUCER_ID_MAPPING  INVALID_PRODUCER_ID_MAPPING
Produce           10 TRANSACTION_ABORTABLE        INVALID_TXN_STATE
Produce           11 TRANSACTION_ABORTABLE        TRANSACTION_ABORTABLE
Produce           11 CONCURRENT_TRANSACTIONS      NOT_ENOUGH_REPLICAS
Produce           12 CONCURRENT_TRANSACTIONS      CONCURRENT_TRANSACTIONS
Produce           13 NETWORK_EXCEPTION            NOT_ENOUGH_REPLICAS
Produce           13 COORDINATOR_LOAD_IN_PROGRESS NOT_ENOUGH_REPLICAS
Produce           13 COORDINATOR_NOT_AVAILABLE    NOT_ENOUGH_REPLICAS
Produce           13 NOT_COORDINATOR              NOT_ENOUGH_REPLICAS
TxnOffsetCommit    5 PRODUCER_FENCED              INVALID_PRODUCER_EPOCH
TxnOffsetCommit    3 TRANSACTION_ABORTABLE        INVALID_TXN_STATE
TxnOffsetCommit    4 TRANSACTION_ABORTABLE        TRANSACTION_ABORTABLE
TxnOffsetCommit    0 CONCURRENT_TRANSACTIONS      CONCURRENT_TRANSACTIONS
TxnOffsetCommit    5 NETWORK_EXCEPTION            COORDINATOR_LOAD_IN_PROGRESS
TxnOffsetCommit    1 NETWORK_EXCEPTION            COORDINATOR_NOT_AVAILABLE
TxnOffsetCommit    1 COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE
TxnOffsetCommit    2 COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_LOAD_IN_PROGRESS
TxnOffsetCommit    5 GROUP_ID_NOT_FOUND           ILLEGAL_GENERATION
TxnOffsetCommit    6 GROUP_ID_NOT_FOUND           GROUP_ID_NOT_FOUND
TxnOffsetCommit    5 STALE_MEMBER_EPOCH           ILLEGAL_GENERATION
TxnOffsetCommit    6 STALE_MEMBER_EPOCH           STALE_MEMBER_EPOCH
"""


@pytest.mark.parametrize("line", EXPECTED.splitlines())
def test_the_code_by_version(line: str) -> None:
    api, version, error, told = line.split()
    assert error_for(api, int(version), ErrorCode[error]) == ErrorCode[told]


def test_every_row_is_among_them() -> None:
    seen = {(api, error) for api, _, error, _ in map(str.split, EXPECTED.splitlines())}
    assert {(api, row.error.name) for api, rows in OLD_CODES.items() for row in rows} <= seen
