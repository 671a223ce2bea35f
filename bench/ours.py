"""txnkafka's side: a log directory to columns through LogDir, as a user reads it; or a chunk in memory.

Every pass over a directory opens it, plans, maps or reads the file, scans headers, selects and decodes; CRCs
are checked. Column memory is reused from chunk to chunk, except where a side is called "fresh": there every
chunk is kept until the pass ends, as by a caller that collects all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.digest import Digest, DigestBuilder
from bench.harness import Timing, timed
from txnkafka import LogDir
from txnkafka._core.columns import RecordColumns
from txnkafka._core.read_committed import select
from txnkafka._core.scan import BatchIndex, scan
from txnkafka.env import LocalFileSystem
from txnkafka.logdir import PartitionView, ReadRequest, ReadUnit, SegmentReader, read_unit
from txnkafka.logdir.requested import read_requested
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches

__all__ = ["DecodeSide", "How", "ScanSide"]


@dataclass(frozen=True)
class How:
    """How to decode: ``views`` or copies, ``fresh`` or reused memory, with ``pread`` instead of mapped.

    ``hot`` decodes bytes that are in memory already, without a file or a plan around them. ``planned`` reads
    the units of a plan that was made before, as a Spark executor does. ``threads`` decode the records.
    """

    views: bool = False
    fresh: bool = False
    pread: bool = False
    hot: bool = False
    committed: bool = False
    planned: bool = False
    threads: int = 1

    @property
    def name(self) -> str:
        words = ["view" if self.views else "copy"]
        words += [word for word in ("hot", "pread", "fresh", "committed", "planned") if getattr(self, word)]
        words += [f"{self.threads} threads"] if self.threads > 1 else []
        return " ".join(words)


class DecodeSide:
    """One segment to columns."""

    def __init__(self, segment: Path, how: How, *, repeat: int = 1, output: str = "records") -> None:
        self.name = how.name
        self.output = output
        self._log_dir = str(segment.parent.parent)
        self._how = how
        self._repeat = repeat
        self._decoder = ChunkDecoder(views=how.views)
        self._planned: tuple[SegmentReader, list[ReadUnit]] | None = None
        self._memory = memoryview(segment.read_bytes() if how.hot else b"")

    def warm(self) -> None:
        self.run()

    def run(self) -> Timing:
        timing: list[tuple[float, float]] = []
        count = 0
        with timed(timing, time.thread_time if self._how.threads == 1 else time.process_time):
            for _ in range(self._repeat):
                count += self._pass()
        return Timing(*timing[0], count)

    def _pass(self) -> int:
        count = 0
        kept: list[memoryview] = []
        for columns in self._chunks():
            count += len(columns)
            if self._how.fresh:
                kept.append(memoryview(columns.offsets))
        return count

    def _chunks(self) -> Iterator[RecordColumns]:
        if self._how.hot:
            data, index = self._memory, scan(self._memory)
            batches = SelectedBatches(lambda at, length: data[at : at + length], index, select(index))
            yield from self._decoder.chunks(batches)
            return
        level = "read_committed" if self._how.committed else "read_uncommitted"
        if self._how.planned:
            if self._planned is None:
                partition = self._partition()
                self._planned = partition.segments[0], partition.plan(isolation_level=level)
            segment, units = self._planned
            for unit in units:
                yield from read_unit(segment, unit, self._decoder)
            return
        partition = self._partition()
        request = ReadRequest.of(level)
        # the digest of views needs the decoder with the bytes to which they refer
        new_decoder = (lambda: self._decoder) if self._how.threads == 1 else ChunkDecoder
        yield from read_requested(partition, request, new_decoder)
        partition.close()

    def _partition(self) -> PartitionView:
        io = "pread" if self._how.pread else "auto"
        return LogDir(self._log_dir, io=io, threads=self._how.threads).partition("bench", 0)

    def digest(self) -> Digest:
        builder = DigestBuilder()
        for columns in self._chunks():
            if self._how.views:
                builder.add_views(columns, self._decoder.source)
            else:
                builder.add_copies(columns)
        return builder.digest()

    def close(self) -> None:
        self._memory = memoryview(b"")


class ScanSide:
    """Batch headers only; ``mapped`` beforehand, or opened and mapped in every round."""

    output = "headers"

    def __init__(self, segment: Path, *, mapped: bool = False) -> None:
        self.name = "scan" if mapped else "open, map and scan"
        self._segment = segment
        self._data = _map(segment) if mapped else None
        self._index = BatchIndex()

    def warm(self) -> None:
        self.run()

    def run(self) -> Timing:
        timing: list[tuple[float, float]] = []
        with timed(timing):
            self._index = scan(_map(self._segment) if self._data is None else self._data)
        return Timing(*timing[0], len(self._index))

    def digest(self) -> dict[str, int]:
        names = ("base_offset", "last_offset", "size", "producer_id", "max_timestamp")
        total = sum(sum(getattr(self._index, name).tolist()) for name in names)
        return {"batches": len(self._index), "sum": total}

    def close(self) -> None:
        self._index = BatchIndex()
        self._data = None


def _map(segment: Path) -> memoryview:
    file = LocalFileSystem().open(str(segment))
    data = file.map(file.size())
    file.close()
    assert data is not None
    return data
