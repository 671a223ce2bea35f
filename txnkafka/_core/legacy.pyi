from typing import Protocol, type_check_only

from typing_extensions import Buffer

from txnkafka._core.columns import RecordColumns
from txnkafka._core.scan import BatchIndex

@type_check_only
class WrapperDecompressor(Protocol):
    @property
    def buffer(self) -> memoryview: ...
    @property
    def end(self) -> int: ...
    def reset(self) -> None: ...
    def append(self, codec: int, payload: bytes | memoryview, *, magic: int = 2) -> tuple[int, int]: ...

def decode_legacy(
    source: Buffer,
    index: BatchIndex,
    selection: Buffer,
    start: int,
    stop: int,
    columns: RecordColumns,
    decompressor: WrapperDecompressor,
    *,
    position: int = 0,
    start_offset: int = 0,
    end_offset: int = ...,
    check_crc: bool = True,
    large: list[WrapperPieces] | None = None,
    piece_bytes: int = ...,
) -> int: ...

class WrapperPieces:
    def decode(self, columns: RecordColumns) -> bool: ...
