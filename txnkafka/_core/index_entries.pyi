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
) -> tuple[bytearray, bytearray, int, int, int]: ...
