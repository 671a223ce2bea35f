"""Streams over small directories, without Spark: the reader is called as Spark calls it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.unit.logdir.logs import batch, write_log
from txnkafka.env import Clock
from txnkafka.spark.source import TxnKafkaDataSource
from txnkafka.spark.stream.reader import StreamReader

__all__ = ["Json", "Stream", "TestClock", "append", "log", "offsets"]

Json = dict[str, Any]


def offsets(rows: list[tuple[str, int]]) -> list[int]:
    """The offsets of rows."""
    return [offset for _, offset in rows]


def append(root: Path, content: bytes, name: str = "t-0", segment: int = 0) -> None:
    """Add bytes to a segment."""
    with (root / name / f"{segment:020d}.log").open("ab") as file:
        file.write(content)


class TestClock:
    """A clock that a test sets."""

    __test__ = False

    def __init__(self, now_ms: int = 0) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms

    def running_ms(self) -> int:
        return self.ms


def log(root: Path, name: str = "t-0", batches: int = 2) -> None:
    """Write a partition with batches of two records."""
    (root / "meta.properties").write_text("version=1\n")
    write_log(root, name, {0: [batch(2 * number) for number in range(batches)]})


class Stream:
    """A query with the offsets that its checkpoint has."""

    def __init__(self, root: Path | None, clock: Clock | None = None, **options: str) -> None:
        place = {} if root is None else {"path": str(root)}
        self.source = TxnKafkaDataSource({**place, "startingOffsets": "earliest", **options})
        self.reader = self.new_reader(clock)
        self.start: Json = self.reader.initialOffset()

    def new_reader(self, clock: Clock | None = None) -> StreamReader:
        reader = self.source.streamReader(self.source.schema())
        assert isinstance(reader, StreamReader)
        if clock is not None:
            reader._clock = clock
        return reader

    def end(self) -> Json:
        """The end of the next batch, which Spark writes to the checkpoint."""
        found: Json = json.loads(json.dumps(self.reader.latestOffset(self.start, None)))
        return found

    def trigger(self) -> list[tuple[str, int]]:
        """Run one batch; return (partition, offset) of its rows."""
        end = self.end()
        rows = self.rows(self.start, end)
        self.start = end
        return rows

    def rows(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[tuple[str, int]]:
        tasks = self.reader.partitions(dict(start), dict(end))
        batches = [found for task in tasks for found in self.reader.read(task)]
        return [
            (f"{row['topic']}-{row['partition']}", row["offset"])
            for found in batches
            for row in found.to_pylist()
        ]
