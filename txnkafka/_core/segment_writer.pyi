from txnkafka._core.validate import IncomingBatch

class SegmentWriter:
    config: object
    offset_index: object
    time_index: object
    files: object
    txn_index: object
    base_offset: int
    size: int
    created_ms: int
    modified_ms: int
    roll_jitter_ms: int
    max_timestamp: int
    max_timestamp_offset: int
    bytes_since_entry: int
    rolling_timestamp: int | None
    has_unsynced_bytes: bool
    def fits(self, last_offset: int) -> bool: ...
    def indexes_are_full(self) -> bool: ...
    def entries_grew(self) -> None: ...
    def should_roll(self, batch: IncomingBatch, end_offset: int, now_ms: int) -> bool: ...
    def append(self, batch: IncomingBatch) -> None: ...
    def note(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None: ...
