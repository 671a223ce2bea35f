"""Reads from an open log as a consumer sees them: the slice without the batch that ``max_bytes`` cuts."""

from __future__ import annotations

from typing import Any, NamedTuple

from txnkafka._core.scan import scan
from txnkafka.storage.formats.txn_index import AbortedTxn
from txnkafka.storage.log import log_read
from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["Answer", "read"]


class Answer(NamedTuple):
    """A LogRead whose ``records`` are the bytes of the whole batches of its slice."""

    records: memoryview
    aborted_transactions: list[AbortedTxn] | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


def read(log: PartitionLog, offset: int, **limits: Any) -> Answer:
    """Read with the limits of ``log_read.read``, and close the slice."""
    answer = log_read.read(log, offset, **limits)
    with answer.records as records:
        data = records.read()
        assert len(data) == records.size
    return Answer(data[: scan(data).end_position], *answer[1:])
