from typing_extensions import Buffer

from txnkafka._core.offset_map import OffsetMap

class Survivors:
    kept: int
    dropped: int
    has_tombstone: bool
    first_offset: int
    last_offset: int
    def build(
        self,
        *,
        delete_horizon: int | None = None,
        base_offset: int | None = None,
        last_offset: int | None = None,
    ) -> bytearray: ...

def note_keys(keys: OffsetMap, header: Buffer, records: Buffer, *, start_offset: int = 0) -> bool: ...
def survivors(
    header: Buffer, records: Buffer, keys: OffsetMap | None = None, *, keep_tombstones: bool = True
) -> Survivors: ...
