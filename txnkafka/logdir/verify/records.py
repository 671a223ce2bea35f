"""Decodes records to prove that they can be read: all batches with ``--level records``, and always batches of
magic 0 and 1, whose CRCs and number of records are inside a wrapper.

Source of the rules for records: DefaultRecord, LegacyRecord.
"""

from __future__ import annotations

from contextlib import suppress

from txnkafka._core.read_committed import BOUNDED, SKIP, WHOLE
from txnkafka._core.scan import BatchIndex, scan
from txnkafka.errors import CorruptRecordError
from txnkafka.logdir.verify.findings import Findings
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL, MAGIC_0, MAGIC_1, MAGIC_2
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches
from txnkafka.storage.formats.segment_reader import SegmentReader


class _TruncatedError(Exception):
    """Raised when the file was truncated while a window was checked; reading the next window reports it."""


class RecordCheck:
    """Decodes batches and counts their records, without control records."""

    def __init__(self, findings: Findings, *, decode_all: bool) -> None:
        self.records = 0
        self._findings = findings
        self._decode_all = decode_all
        self._decoder: ChunkDecoder | None = None

    def window(
        self, segment: SegmentReader, position: int, data: memoryview, index: BatchIndex, excluded: list[int]
    ) -> None:
        """Check the batches of ``data``, which begins at byte ``position`` of the ``.log`` file."""
        legacy = any(magic < MAGIC_2 for magic in set(index.magic))
        self.records += _legacy_aside(index) if legacy else _records_by_headers(index)
        if legacy or self._decode_all:
            with suppress(_TruncatedError):
                self._decode(segment, position, data, index, excluded)

    def _decode(
        self, segment: SegmentReader, position: int, data: memoryview, index: BatchIndex, excluded: list[int]
    ) -> None:
        path, bytes_of_window = segment.path, segment.reader(position, data)

        def read(at: int, length: int) -> memoryview:
            found = bytes_of_window(at, length)
            if len(found) < length and not len(scan(found)):
                raise _TruncatedError
            return found

        def on_corrupt(error: CorruptRecordError) -> None:
            self._findings.add("corrupt-batch", path, error.reason, position=error.position)

        if self._decoder is None:
            self._decoder = ChunkDecoder(views=True)  # checks record headers without keeping them
        of_two = WHOLE if self._decode_all else SKIP
        by_magic = {MAGIC_0: BOUNDED, MAGIC_1: BOUNDED, MAGIC_2: of_two}
        selection = bytearray(by_magic.get(magic, SKIP) for magic in index.magic)
        for i in excluded:
            selection[i] = SKIP
        magics = index.magic
        batches = SelectedBatches(read, index, selection, settled=segment.guard)
        last, reported = -1, -1
        for columns in self._decoder.chunks(batches, on_corrupt):
            offsets = memoryview(columns.offsets)
            if self._decode_all and not excluded:
                wrong = self._wrong_offset(index, offsets, last)
                if wrong is not None and wrong[0] != reported:  # a large batch arrives in several chunks
                    reported = wrong[0]
                    self._report_wrong_offset(path, index.position[reported], wrong[1])
            last = offsets[-1]
            # a damaged record may claim an offset beyond all batches
            if magics[min(index.find(offsets[0]), len(index) - 1)] < MAGIC_2:
                self.records += len(offsets)

    @staticmethod
    def _wrong_offset(index: BatchIndex, offsets: memoryview, last: int) -> tuple[int, int] | None:
        """Find the first record whose offset is outside its batch, or not above the previous offset (``last``
        for the first record). Return the number of the batch and the offset, or None."""
        import numpy as np

        found = np.frombuffer(offsets, dtype=np.int64)
        ends = np.asarray(index.last_offset)
        batches = np.searchsorted(ends, found)
        inside = batches < len(ends)
        begins = np.asarray(index.base_offset)[np.minimum(batches, len(ends) - 1)]
        legacy = np.asarray(index.magic)[np.minimum(batches, len(ends) - 1)] < MAGIC_2
        wrong = ~inside | ((found < begins) & ~legacy)
        wrong[1:] |= found[1:] <= found[:-1]
        wrong[0] |= found[0] <= last
        for number in np.flatnonzero(wrong)[:1].tolist():
            return min(int(batches[number]), len(ends) - 1), offsets[number]
        return None

    def _report_wrong_offset(self, path: str, position: int, offset: int) -> None:
        text = f"a record has offset {offset}: outside its batch, or not above the one before"
        self._findings.add("record-offset-outside-batch", path, text, position=position)


def _records_by_headers(index: BatchIndex) -> int:
    records = int(sum(index.record_count))
    if any(attributes & ATTRIBUTE_CONTROL for attributes in set(index.attributes)):
        controls = zip(index.attributes, index.record_count, strict=True)
        records -= sum(count for attributes, count in controls if attributes & ATTRIBUTE_CONTROL)
    return max(records, 0)


def _legacy_aside(index: BatchIndex) -> int:
    columns = zip(index.magic, index.attributes, index.record_count, strict=True)
    return sum(
        count
        for magic, attributes, count in columns
        if magic >= MAGIC_2 and not attributes & ATTRIBUTE_CONTROL
    )
