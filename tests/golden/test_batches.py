"""Every batch header as printed by the broker's own dump tool.

Only magic 2: the cases have no rows for older ones.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden.cases import Case, cases
from txnkafka._core.decode import check_crcs
from txnkafka._core.scan import BatchHeader, scan

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40
LARGEST_SEQUENCE = 2**31 - 1
TIMES = {"CreateTime", "LogAppendTime"}

Json = Any
# The tool rereads the log above the last entry of an offset index in its own way, and stops at damage.
READABLE = [case for case in cases() if case.damage is None]


def shown(batch: BatchHeader, *, valid: bool) -> dict[str, Json]:
    """Return a header in the columns of the tool."""
    attributes = batch.attributes
    last_sequence = (batch.base_sequence + batch.last_offset - batch.base_offset) & LARGEST_SEQUENCE
    return {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.count,
        "baseSequence": batch.base_sequence,
        "lastSequence": -1 if batch.base_sequence < 0 else last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "isTransactional": bool(attributes & TRANSACTIONAL),
        "isControl": bool(attributes & CONTROL),
        "deleteHorizonMs": batch.base_timestamp if attributes & DELETE_HORIZON else None,
        "position": batch.position,
        "LogAppendTime" if attributes & LOG_APPEND_TIME else "CreateTime": batch.max_timestamp,
        "size": batch.size,
        "magic": batch.magic,
        "compresscodec": CODECS[attributes & 7],
        "crc": batch.crc,
        "isvalid": valid,
    }


def headers(path: Any) -> list[dict[str, Json]]:
    content = path.read_bytes()
    index = scan(content)
    sound = check_crcs(content, index, 0, len(index))
    return [shown(index[i], valid=i < sound) for i in range(len(index)) if index[i].magic == 2]


def told(dump: dict[str, Json]) -> list[dict[str, Json]]:
    """Return the tool's rows; its older versions write codecs in capitals."""
    found = [dict(zip(dump["columns"], row, strict=True)) for row in dump["rows"]]
    return [row | {"compresscodec": row["compresscodec"].lower()} for row in found]


@pytest.mark.parametrize("case", READABLE, ids=lambda case: case.name)
def test_batch_headers(case: Case) -> None:
    compared = 0
    for partition in case.dumped():
        for name, dump in case.dump(partition).items():
            if not name.endswith(".log"):
                continue
            found = headers(case.answered / str(partition) / name)
            expected = told(dump)
            assert [
                {column: batch[column] for column in row} for batch, row in zip(found, expected, strict=True)
            ] == expected
            compared += len(expected)
    assert compared
