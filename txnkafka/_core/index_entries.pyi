from typing_extensions import Buffer

from txnkafka._core.scan import BatchIndex

def index_entries(
    batches: BatchIndex,
    *,
    base_offset: int,
    interval_bytes: int,
    bytes_since_entry: int,
    max_timestamp: int,
    max_timestamp_offset: int,
    newest_entry: int,
    last_entry: int,
) -> tuple[bytearray, bytearray, int, int, int]: ...
def count_not_above(
    entries: Buffer, *, count: int, entry_size: int, value: int, second: bool = False
) -> int: ...
def last_not_above(entries: Buffer, *, count: int, entry_size: int, value: int) -> tuple[int, int] | None: ...
