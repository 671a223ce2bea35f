"""Reads from a log that is owned, as a consumer has them: the whole batches of the slice."""

from __future__ import annotations

from typing import NamedTuple

from txnkafka._core.scan import scan
from txnkafka.model import IsolationLevel
from txnkafka.storage.formats.txn_index import AbortedTxn
from txnkafka.storage.log import log_read
from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["Answer", "read"]


class Answer(NamedTuple):
    """A LogRead with the whole batches of its slice."""

    records: memoryview
    aborted_transactions: list[AbortedTxn] | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


def read(
    log: PartitionLog,
    offset: int,
    *,
    max_bytes: int,
    isolation_level: IsolationLevel | None = IsolationLevel.READ_COMMITTED,
    at_least_one: bool = True,
) -> Answer:
    answer = log_read.read(
        log, offset, max_bytes=max_bytes, isolation_level=isolation_level, at_least_one=at_least_one
    )
    with answer.records as records:
        data = records.read()
        assert len(data) == records.size
    return Answer(data[: scan(data).end_position], *answer[1:])
