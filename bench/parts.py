"""Single parts of the work: costs that every reader has, however it is implemented.

They show whether a goal can be reached: a side that only computes checksums, only walks over records, or only
maps a file. A part reads no records, so it has no digest.
"""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Callable
from pathlib import Path

from bench.codecs import BareCodecSide
from bench.harness import Timing, timed
from txnkafka._core.columns import RecordColumns
from txnkafka._core.decode import check_crcs, decode_batches, decode_regions
from txnkafka._core.read_committed import select
from txnkafka._core.scan import BatchIndex, scan
from txnkafka.record.compression import Decompressor

__all__ = ["ChecksumPart", "ChecksumsAndWalk", "CodecPart", "MapPart", "WalkPart"]

HEADER_SIZE = 61
CODEC_BITS = 0x07
PAGE = 4096
HOT_BYTES = 256 << 10  # of decompressed records: they stay in the second-level cache


class _Part:
    """Runs ``_pass`` ``repeat`` times; counts the records of the segment."""

    name = ""
    output = "records"

    def __init__(self, segment: Path, repeat: int = 1) -> None:
        self._segment = segment
        self._repeat = repeat
        self._index = BatchIndex()
        self._selection = bytearray()
        self._data = memoryview(b"")
        self._count = 0

    def warm(self) -> None:
        self._data = memoryview(self._segment.read_bytes())
        self._index = scan(self._data)
        self._selection = select(self._index)
        self._count = sum(self._index.record_count.tolist())
        self._pass()

    def run(self) -> Timing:
        timing: list[tuple[float, float]] = []
        with timed(timing):
            for _ in range(self._repeat):
                self._pass()
        return Timing(*timing[0], self._repeat * self._count)

    def _pass(self) -> None:
        raise NotImplementedError

    def digest(self) -> None:
        return None

    def close(self) -> None:
        self._data = memoryview(b"")


class ChecksumPart(_Part):
    """The CRC of every batch, from memory."""

    name = "checksums alone"

    def _pass(self) -> None:
        if check_crcs(self._data, self._index, 0, len(self._index)) != len(self._index):
            raise ValueError(f"{self._segment} is damaged")


class WalkPart(_Part):
    """The columns of every record, without a checksum, from memory in one call."""

    def __init__(self, segment: Path, repeat: int = 1, *, views: bool = False) -> None:
        super().__init__(segment, repeat)
        self.name = f"{'view' if views else 'copy'} without checksums"
        self._columns = RecordColumns(views=views)

    def _pass(self) -> None:
        self._columns.reset()
        selection, stop = self._selection, len(self._index)
        decode_batches(self._data, self._index, selection, 0, stop, self._columns, check_crc=False)


class ChecksumsAndWalk(WalkPart):
    """The CRC of every batch, then the columns of every record."""

    def __init__(self, segment: Path, repeat: int = 1, *, views: bool = False) -> None:
        super().__init__(segment, repeat, views=views)
        self.name = f"checksums, then {'view' if views else 'copy'}"

    def _pass(self) -> None:
        check_crcs(self._data, self._index, 0, len(self._index))
        super()._pass()


class MapPart(_Part):
    """Maps the file, reads one byte of each page, and unmaps it."""

    name = "mapping and page faults alone"

    def _pass(self) -> None:
        with open(self._segment, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
            pages[::PAGE]


class CodecPart(_Part):
    """Bare decompression, checksums and the walk over hot records, one after the other.

    The walk is repeated over as many batches as fit into the cache, until it has covered the number of all
    batches.
    """

    def __init__(self, segment: Path, codec: str) -> None:
        super().__init__(segment)
        self.name = f"bare {codec}, checksums and walk"
        self._bare = BareCodecSide(segment, codec)

    def warm(self) -> None:
        self._bare.warm()
        self._walks: list[Callable[[], None]] = []
        super().warm()

    def _pass(self) -> None:
        if not self._walks:
            self._walks = self._hot_walks()
        self._bare.run()
        check_crcs(self._data, self._index, 0, len(self._index))
        for walk in self._walks:
            walk()

    def _hot_walks(self) -> list[Callable[[], None]]:
        decompressor, regions = Decompressor(), array("q")
        index, selection, columns = self._index, self._selection, RecordColumns()
        while decompressor.end < HOT_BYTES and len(regions) // 2 < len(index):
            header = index[len(regions) // 2]
            payload = self._data[header.position + HEADER_SIZE : header.position + header.size]
            regions.extend(decompressor.append(header.attributes & CODEC_BITS, payload))
        batches = len(regions) // 2

        def walk() -> None:
            columns.reset()
            decode_regions(decompressor.buffer, regions, index, selection, 0, batches, columns)

        return [walk] * round(len(index) / batches)
