from array import array

from typing_extensions import Buffer

from txnkafka._core.columns import RecordColumns
from txnkafka._core.scan import BatchIndex
from txnkafka.errors import CorruptRecordError

def decode_batches(
    source: Buffer,
    index: BatchIndex,
    selection: Buffer,
    start: int,
    stop: int,
    columns: RecordColumns,
    *,
    position: int = 0,
    start_offset: int = 0,
    end_offset: int = ...,
    check_crc: bool = True,
) -> int: ...
def decode_regions(
    source: Buffer,
    regions: Buffer,
    index: BatchIndex,
    selection: Buffer,
    start: int,
    stop: int,
    columns: RecordColumns,
    *,
    start_offset: int = 0,
    end_offset: int = ...,
) -> int: ...
def divide_batch(
    source: Buffer,
    index: BatchIndex,
    i: int,
    piece_bytes: int,
    *,
    begin: int = -1,
    end: int = -1,
    position: int = 0,
    max_headers: int = ...,
) -> tuple[BatchIndex, array[int]]: ...
def check_crcs(
    source: Buffer,
    index: BatchIndex,
    start: int,
    stop: int,
    selection: Buffer | None = None,
    *,
    position: int = 0,
) -> int: ...
def corrupt_batch(index: BatchIndex, i: int, reason: str | None = None) -> CorruptRecordError: ...
