"""``FetchedData``: the batches of one partition in one response, before they are decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.read_committed import HiddenRange, HiddenRanges, select
from txnkafka._core.scan import scan
from txnkafka.errors import CorruptRecordError
from txnkafka.record.chunk import SelectedBatches
from txnkafka.record.control import ControlRecordType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka._core.scan import BatchIndex
    from txnkafka.wire.messages.fetch import AbortedTransaction, PartitionData

_NO_END = (1 << 63) - 1
_FIRST_BYTES = 12  # base offset and length of a batch: a limit of bytes may cut it within their leading zeros


class FetchedData:
    """``end_offset`` and ``end_epoch`` are the position after the data. ``damage`` is the reason if bytes
    after the last whole batch are no batch."""

    def __init__(self, fetch_offset: int, epoch: int, data: PartitionData, *, is_committed: bool) -> None:
        self._bytes = memoryview(data.records or b"")
        self._index = index = scan(self._bytes)
        aborted = data.aborted_transactions if is_committed else None
        self._hidden = HiddenRanges(hidden_ranges(index, aborted)) if aborted else HiddenRanges()
        self.end_offset, self.end_epoch = fetch_offset, epoch
        if len(index):
            last = index[len(index) - 1]
            self.end_offset = max(fetch_offset, last.last_offset + 1)
            self.end_epoch = last.partition_leader_epoch
        self.size = len(self._bytes)
        self.is_begun = False  # its decoding
        self.damage: CorruptRecordError | None = None
        is_cut = index.stop == "zeros" and self.size - index.end_position < _FIRST_BYTES
        if (index.stop in ("garbage", "zeros") and not is_cut) or (self.size and not len(index)):
            reason = index.stop_reason or "the response contains no whole batch"
            self.damage = CorruptRecordError(reason, position=index.end_position, offset=self.end_offset)

    def batches(self, start_offset: int, end_offset: int = _NO_END) -> SelectedBatches:
        """Return the batches that are visible in [start_offset, end_offset)."""
        selection = select(self._index, self._hidden, start_offset=start_offset, end_offset=end_offset)
        return SelectedBatches(self._read, self._index, selection, start_offset, end_offset)

    def _read(self, position: int, length: int) -> memoryview:
        return self._bytes[position : position + length]


def hidden_ranges(index: BatchIndex, aborted: Iterable[AbortedTransaction] | None) -> list[HiddenRange]:
    """Return the ranges of a response that aborted transactions hide: each from its first offset to the next
    ABORT marker of its producer. The broker's list may have transactions that begin after the response."""
    if not aborted:
        return []
    markers: dict[int, list[int]] = {}
    rows = zip(index.control_type, index.producer_id, index.base_offset, strict=True)
    for control_type, producer_id, offset in rows:
        if control_type == ControlRecordType.ABORT:
            markers.setdefault(producer_id, []).append(offset)
    ranges = []
    for each in aborted:
        ends = (offset for offset in markers.get(each.producer_id, ()) if offset >= each.first_offset)
        ranges.append(HiddenRange(each.producer_id, each.first_offset, next(ends, _NO_END)))
    return ranges
