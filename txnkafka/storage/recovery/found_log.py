"""The state of a log while recovery loads it: its segments, their states, and the repairs."""

from __future__ import annotations

import logging
from enum import Enum
from typing import TYPE_CHECKING

from txnkafka.errors import CorruptRecordError
from txnkafka.storage.formats.layout import file_name, parse_segment_file
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.log_segment import SPARSE, LogSegment
from txnkafka.storage.log.producer_snapshots import ProducerSnapshots
from txnkafka.storage.log.repair_step import RepairStep

if TYPE_CHECKING:
    from txnkafka.config import LogConfig
    from txnkafka.env import DataFiles, DirectoryEntry
    from txnkafka.model import TopicPartition

LOG = logging.getLogger("txnkafka.storage")
LARGEST_SEGMENT = 2**31 - 1  # bytes; positions have 32 bits


class SegmentState(Enum):
    """The state of a segment in recovery, which decides what happens to its derived files."""

    TRUSTED = "its files are used as they are"
    COMPARED = "every batch was checked: its files are compared with the log"
    REBUILT = "every batch was checked: its files are rebuilt from the log"


class FoundLog:
    """The log in ``directory``. ``segments`` ascend, and are not empty after ``find_segments``. Their
    ``states`` are set with the log end."""

    def __init__(
        self,
        files: DataFiles,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        now_ms: int,
    ) -> None:
        self.files = files
        self.directory = directory
        self.topic_partition = topic_partition
        self.config = config
        self.loaded_ms = now_ms
        self.segments: list[LogSegment] = []
        self.states: dict[LogSegment, SegmentState] = {}
        self.lack_an_index: set[LogSegment] = set()
        self.new_segment: LogSegment | None = None  # its file is created when the log end is known
        self.snapshots = ProducerSnapshots(files, directory)
        self.epochs = LeaderEpochs()
        self.log_end_offset = 0
        self.repairs: list[RepairStep] = []
        self.has_unsynced_names = False

    @property
    def active(self) -> LogSegment:
        """The last segment, which receives appends."""
        return self.segments[-1]

    def note(self, what: str, action: str = "", why: str = "", *, bytes_cut: int = 0) -> None:
        """Log and record a repair; see ``RepairStep``."""
        done = RepairStep(what, action, why, bytes_cut)
        LOG.warning("%s: %s", self.topic_partition, done)
        self.repairs.append(done)

    def find_segments(self, listed: list[DirectoryEntry], log_start_offset: int) -> None:
        """Find the segments and snapshots in a listing of the directory; without a segment, the log begins
        with a new one. Removes index files without a log. Raises CorruptRecordError for a ``.log`` file that
        is too large, and OSError."""
        entries = {entry.name: entry for entry in listed}
        parsed = {name: file for name in entries if (file := parse_segment_file(name)) and not file.suffix}
        self.snapshots = ProducerSnapshots.found(self.files, self.directory, entries)
        bases = {file.base_offset for file in parsed.values() if file.kind == "log"}
        for name, file in parsed.items():
            if file.kind == "log":
                segment = self._found(file.base_offset, entries[name])
                if _lacks_an_index(file.base_offset, entries):
                    self.lack_an_index.add(segment)
                self.segments.append(segment)
            elif file.kind != "snapshot" and file.base_offset not in bases:
                self.files.remove(self.files.join(self.directory, name))  # of an interrupted removal
        self.segments.sort(key=lambda segment: segment.base_offset)
        if not self.segments:
            self.begin(log_start_offset, self.loaded_ms)

    def _found(self, base_offset: int, entry: DirectoryEntry) -> LogSegment:
        segment = self._segment(base_offset, self.loaded_ms)
        if entry.size > LARGEST_SEGMENT:
            raise CorruptRecordError(
                f"{entry.size} bytes are more than the {LARGEST_SEGMENT} that a segment can have",
                file=segment.path("log"),
            )
        segment.loaded_from(entry.size, entry.modified_ms)
        return segment

    def _segment(self, base_offset: int, created_ms: int) -> LogSegment:
        segment = LogSegment(self.files, self.directory, base_offset, self.config, created_ms=created_ms)
        segment.on_repair = self.note
        return segment

    def begin(self, base_offset: int, created_ms: int) -> None:
        """Begin the log, which has no segments, with a new one; its file is created later."""
        segment = self._segment(base_offset, created_ms)
        self.segments.append(segment)
        self.new_segment = segment
        self.has_unsynced_names = True

    def drop_segments(self, first: int) -> None:
        """Remove the segments from number ``first`` on: the log ends before them. Raises OSError."""
        for segment in reversed(self.segments[first:]):  # backwards: a crash leaves no hole
            self.note(segment.path("log"), "removed", "the log ends before it")
            segment.files.remove()
            self.has_unsynced_names = True
        del self.segments[first:]

    def in_state(self, state: SegmentState) -> list[LogSegment]:
        """Return the segments in that state."""
        return [segment for segment in self.segments if self.states[segment] is state]

    def close_files(self) -> None:
        """Close all files."""
        for segment in self.segments:
            segment.close()


def _lacks_an_index(base_offset: int, entries: dict[str, DirectoryEntry]) -> bool:
    """Return True if an index file is missing, or if the log has bytes and the time index is empty: that is
    correct only if the records have no timestamps, but Apache Kafka trusts it."""
    index, time_index = (entries.get(file_name(base_offset, kind)) for kind in SPARSE)
    if index is None or time_index is None:
        return True
    return not time_index.size and entries[file_name(base_offset, "log")].size > 0
