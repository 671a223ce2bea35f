"""txnkafka's side: a segment file to columns, through the same calls that LogDir makes.

Every pass opens and maps the file, scans headers, selects and decodes; CRCs are checked. Column
memory is reused from chunk to chunk, except where a side is called "fresh": there every chunk is
kept until the pass ends, as by somebody who collects all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.digest import Digest, DigestBuilder
from bench.harness import Timing, timed
from txnkafka._core.columns import RecordColumns
from txnkafka._core.read_committed import TransactionScan, select
from txnkafka._core.scan import BatchIndex, scan
from txnkafka.env import LocalFileSystem
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches

__all__ = ["DecodeSide", "How", "ScanSide"]


@dataclass(frozen=True)
class How:
    """How to decode: ``views`` or copies, ``fresh`` or reused memory, ``hot`` from bytes in memory
    instead of the file.
    """

    views: bool = False
    fresh: bool = False
    hot: bool = False
    committed: bool = False

    @property
    def name(self) -> str:
        words = ["view" if self.views else "copy"]
        words += [word for word in ("hot", "fresh", "committed") if getattr(self, word)]
        return " ".join(words)


class DecodeSide:
    """One segment to columns."""

    def __init__(self, segment: Path, how: How, *, repeat: int = 1, output: str = "records") -> None:
        self.name = how.name
        self.output = output
        self._segment = segment
        self._how = how
        self._repeat = repeat
        self._decoder = ChunkDecoder(views=how.views)
        self._memory = memoryview(segment.read_bytes()) if how.hot else None

    def warm(self) -> None:
        self.run()

    def run(self) -> Timing:
        timing: list[tuple[float, float]] = []
        count = 0
        with timed(timing):
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
        data = _map(self._segment) if self._memory is None else self._memory
        index = scan(data)
        if index.stop != "end":
            raise ValueError(f"the scan of {self._segment} stopped early: {index.stop_reason}")
        selection = select(index, _hidden(index) if self._how.committed else ())
        return self._decoder.chunks(
            SelectedBatches(lambda at, length: data[at : at + length], index, selection)
        )

    def digest(self) -> Digest:
        builder = DigestBuilder()
        for columns in self._chunks():
            if self._how.views:
                builder.add_views(columns, self._decoder.source)
            else:
                builder.add_copies(columns)
        return builder.digest()

    def close(self) -> None:
        self._memory = None


def _hidden(index: BatchIndex) -> list[Any]:
    transactions = TransactionScan()
    transactions.feed(index)
    return [
        each for each in transactions.ended if each.outcome == "aborted"
    ] + transactions.open_transactions()


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
