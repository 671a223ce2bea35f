from typing_extensions import Buffer

from txnkafka._core.scan import BatchIndex

def next_run(
    index: BatchIndex, selection: Buffer, start: int, stop: int, max_bytes: int
) -> tuple[int, int, int]: ...
