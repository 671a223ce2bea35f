from typing_extensions import Buffer

from txnkafka._core.scan import BatchIndex

LEFT: int
DAMAGED: int

def use_bindings(files: dict[int, str]) -> None: ...
def codec_libraries() -> dict[str, str]: ...

class CodecFunctions:
    max_bytes: int
    @property
    def enabled(self) -> bool: ...
    def __new__(
        cls, *, enabled: bool, max_ratio: int, always_allowed: int, max_bytes: int
    ) -> CodecFunctions: ...
    def decompress(self, codec: int, payload: Buffer, output: Buffer, end: int) -> tuple[int, int]: ...
    def decompress_batches(
        self,
        source: Buffer,
        position: int,
        index: BatchIndex,
        selection: Buffer,
        start: int,
        stop: int,
        regions: Buffer,
        output: Buffer,
        end: int,
        full: int,
        large: int,
    ) -> tuple[int, int, int]: ...
