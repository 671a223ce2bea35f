from collections.abc import Iterable
from typing import NamedTuple

from txnkafka._core.scan import BatchIndex

SKIP: int
WHOLE: int
BOUNDED: int

class HiddenRange(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int

class TransactionRange(NamedTuple):
    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    first_timestamp: int
    last_timestamp: int
    batches: int
    records: int
    bytes: int
    outcome: str
    last_data_offset: int
    marker_timestamp: int
    coordinator_epoch: int

class OpenRange(NamedTuple):
    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    first_timestamp: int
    last_timestamp: int
    batches: int
    records: int
    bytes: int
    across_hole: bool

class TransactionScan:
    ended: list[TransactionRange]
    markers: dict[int, int]
    next_offset: int
    def __new__(cls, next_offset: int = 0, open_ranges: Iterable[OpenRange] = ()) -> TransactionScan: ...
    def hole(self) -> None: ...
    def open_transactions(self) -> list[TransactionRange]: ...
    def open_ranges(self) -> tuple[OpenRange, ...]: ...
    def feed(self, index: BatchIndex, start: int = 0, stop: int | None = None) -> None: ...

class HiddenRanges:
    count: int
    def __new__(cls, hidden: Iterable[HiddenRange] = ()) -> HiddenRanges: ...
    def __len__(self) -> int: ...

def select(
    index: BatchIndex,
    hidden: HiddenRanges | Iterable[HiddenRange] = (),
    *,
    start_offset: int = 0,
    end_offset: int = ...,
    start: int = 0,
    stop: int | None = None,
) -> bytearray: ...
def contained(index: BatchIndex, ranges: HiddenRanges) -> bytearray: ...
def merged(ranges: Iterable[HiddenRange]) -> list[list[int]]: ...
