"""A stream over a log that grows: whatever the growth, the limits and the restarts, its batches tile the
offsets, stay within the limits, and have the rows that a batch read of the whole log has."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import LONG
from tests.property.test_resumable_plan import Disk, Step, compacted_steps, written
from txnkafka import LogDir, TopicPartition
from txnkafka.spark.source import TxnKafkaDataSource
from txnkafka.spark.stream.reader import StreamReader

Json = dict[str, Any]
Rows = dict[TopicPartition, list[int]]
NAMES = [TopicPartition("t", number) for number in (0, 1)]
LEVELS = st.sampled_from(["read_committed", "read_uncommitted"])


class Run:
    """A query: restarted where a test asks for it, it knows only the offsets that Spark keeps."""

    def __init__(self, root: str, options: dict[str, str]) -> None:
        self._source = TxnKafkaDataSource({"path": root, "startingOffsets": "earliest", **options})
        self.reader = self._new()
        self.start: Json = self.reader.initialOffset()
        self.rows: Rows = defaultdict(list)

    def _new(self) -> StreamReader:
        reader = self._source.streamReader(self._source.schema())
        assert isinstance(reader, StreamReader)
        return reader

    def trigger(self, *, restarts: bool) -> tuple[Json, Json] | None:
        """One trigger; with ``restarts`` its batch is planned by another process, as after a crash."""
        end = json.loads(json.dumps(self.reader.latestOffset(self.start, None)))
        if end == self.start:
            return None
        batch = self.start, end
        found = self.read(*batch)
        if restarts:
            self.reader.stop()
            self.reader = self._new()
            assert self.read(*batch) == found
        for name, offsets in found.items():
            self.rows[name] += offsets
        self.start = end
        return batch

    def read(self, start: Json, end: Json) -> Rows:
        found: Rows = defaultdict(list)
        for partition in self.reader.partitions(start, end):
            for batch in self.reader.read(partition):
                for row in batch.to_pylist():
                    found[TopicPartition(row["topic"], row["partition"])].append(row["offset"])
        return found


def each_offset(offsets: Json) -> Iterator[tuple[str, str, int]]:
    for topic, partitions in offsets.items():
        if not topic.startswith("#"):
            for partition, offset in partitions.items():
                yield topic, partition, offset


def count_of(start: Json, end: Json) -> int:
    before = {(topic, partition): offset for topic, partition, offset in each_offset(start)}
    return sum(offset - before.get((topic, partition), 0) for topic, partition, offset in each_offset(end))


def whole(root: str, level: Any) -> Rows:
    found = LogDir(root)
    return {
        name: [record.offset for record in found.partition(*name).records(isolation_level=level)]
        for name in found.topic_partitions
    }


@given(
    st.lists(st.lists(compacted_steps, max_size=10), min_size=2, max_size=2),
    LEVELS,
    st.none() | st.integers(1, 12),
    st.none() | st.integers(1, 400),
    st.lists(st.integers(0, 3), max_size=12),
    st.randoms(use_true_random=False),
)
@settings(max_examples=400 if LONG else 40, deadline=None)
def test_batches_tile_the_offsets(
    logs: list[list[Step]],
    level: str,
    most: int | None,
    most_bytes: int | None,
    triggers: list[int],
    chance: Any,
) -> None:
    options = {"isolation.level": level}
    if most is not None:
        options["maxOffsetsPerTrigger"] = str(most)
    if most_bytes is not None:
        options["maxBytesPerTrigger"] = str(most_bytes)
    with tempfile.TemporaryDirectory() as root:
        (Path(root) / "meta.properties").write_text("version=1\n")
        disk = Disk(root)
        disk.note_cleaning()
        states = [written(steps) for steps in logs]
        disk.hold(states[0][0])
        run = Run(root, options)
        for i in range(max(map(len, states))):
            for number, name in enumerate(NAMES):
                disk.folder = disk.root / str(name)
                if number == 0 or i:  # the second partition is new
                    disk.folder.mkdir(exist_ok=True)
                    disk.hold(states[number][min(i, len(states[number]) - 1)])
            for _ in range(triggers[i] if i < len(triggers) else 0):
                check(run.trigger(restarts=chance.random() < 0.3), most)
        while (batch := run.trigger(restarts=chance.random() < 0.3)) is not None:
            check(batch, most)
        run.reader.stop()
        expected = whole(root, level)
        assert {name: run.rows[name] for name in expected} == expected


def check(batch: tuple[Json, Json] | None, most: int | None) -> None:
    if batch is not None:
        assert all(offset >= 0 for _, _, offset in each_offset(batch[1]))
        count = count_of(*batch)
        assert count >= 0
        assert most is None or count <= most
