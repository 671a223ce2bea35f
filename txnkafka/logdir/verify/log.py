"""Verifies one partition in a single pass over all bytes: every check sees every window of every segment.

Memory is bounded by one window and the contents of the small derived files, independent of the size of the
segments. Bytes that are not a batch end a segment, unless its ``.index`` points at a whole batch after them:
then the damage is bit rot within the segment, not a torn tail, and the pass continues at that batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from txnkafka._core.decode import check_crcs
from txnkafka._core.scan import BatchIndex, scan
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC
from txnkafka.errors import CorruptRecordError, LogDirError
from txnkafka.logdir.cleaning import Cleaning
from txnkafka.logdir.log_end import is_preallocated, tail_finding
from txnkafka.logdir.partition_files import PartitionFiles
from txnkafka.logdir.partition_source import PartitionSource
from txnkafka.logdir.verify.epochs import LeaderEpochCheck
from txnkafka.logdir.verify.findings import Findings
from txnkafka.logdir.verify.indexes import OffsetIndexCheck, TimeIndexCheck, read_beside
from txnkafka.logdir.verify.order import OffsetOrder
from txnkafka.logdir.verify.producers import ProducerCheck, damage_code
from txnkafka.logdir.verify.records import RecordCheck
from txnkafka.record.batch_header import MAGIC, UNKNOWN_MAGIC
from txnkafka.storage.formats import EpochEntry, OffsetIndex
from txnkafka.storage.formats.limits import INDEX_LIMIT
from txnkafka.storage.formats.log_end import first_unsettled
from txnkafka.storage.formats.segment_reader import SegmentReader

LEVELS = ("header", "crc", "records")
LARGEST_RELATIVE_OFFSET = 2**31 - 1
PROBE_BYTES = 1 << 20
MOST_PROBES = 1000  # per index

Progress = Callable[[str, int], None]


class _Damage(NamedTuple):
    position: int
    stop: str
    reason: str


class LogCheck:
    """Checks the segments of one partition; call ``run`` once, then read the counters.

    ``progress`` is called with the file and the number of bytes checked since the last call."""

    def __init__(
        self,
        source: PartitionSource,
        files: PartitionFiles,
        findings: Findings,
        level: str,
        progress: Progress,
    ) -> None:
        self.batches = 0
        self.source = source
        self.segments = files.segments
        self.damaged_end = False
        self.is_complete = True  # False once a segment could not be read: its end is also unknown
        self._findings = findings
        self._level = level
        self._progress = progress
        self._snapshots = files.snapshots if source.only_base_offset is None else {}
        first = self.segments[0].base_offset if self.segments else 0
        self.order = OffsetOrder(findings, first, source.log_start_offset or 0)
        self.producers = ProducerCheck(
            findings, self.order, source.file_system, self._snapshots,
            counts_sequences=source.topic_partition.topic != CONSUMER_OFFSETS_TOPIC,
        )  # fmt: skip
        self._records = RecordCheck(findings, decode_all=level == "records")
        self._cleaning = Cleaning(self.segments)
        self._cut_found = False
        self._damage = ""  # finding code of the first damage in the current segment
        self._wrong_crcs: list[int] = []  # batch numbers in the current window
        self.has_leader_epochs = False

    @property
    def records(self) -> int:
        """The number of records without control records: from batch headers, and by decoding compressed sets
        of magic 0 and 1."""
        return self._records.records

    @property
    def end_offset(self) -> int:
        """The log end offset."""
        return self.order.next_offset

    def run(self, epochs: list[EpochEntry] | None) -> None:
        """Run all checks; ``epochs`` are the entries of the checkpoint, None without a checkpoint."""
        epoch_check = LeaderEpochCheck(self._findings, epochs)
        for i, segment in enumerate(self.segments):
            segment.mapped = self.source.mapped and not self.source.being_written
            try:
                self._segment(i, segment, epoch_check)
            except (OSError, LogDirError) as error:
                self._findings.add("unreadable-file", segment.path, str(error))
                self.order.damage()
                self.producers.damage("unreadable-file")
                self.is_complete = False
            finally:
                segment.close()
        if self.is_complete:
            self.producers.end(being_written=self.source.being_written, cause=self._damage)
        self.has_leader_epochs = epoch_check.seen

    def _next_base(self, i: int) -> int:
        return self.segments[i + 1].base_offset if i + 1 < len(self.segments) else 1 << 63

    def recovered(self, i: int) -> bool:
        """Return True if a starting broker rebuilds the files derived from segment ``i``."""
        source = self.source
        if source.being_written:
            return False
        if "index" not in self.segments[i].files:
            return True
        if source.clean_shutdown:
            return False
        return self._next_base(i) > (source.recovery_point or 0)

    def _segment(self, i: int, segment: SegmentReader, epochs: LeaderEpochCheck) -> None:
        was_cleaned = partial(self._cleaning.has_reached, i)
        missing = self.order.begin_segment(segment, self._next_base(i), was_cleaned)
        self.producers.begin_segment(segment, missing_before=missing)
        offset_index = OffsetIndexCheck(segment, self._findings)
        time_index = TimeIndexCheck(segment, self._findings)
        damaged, self._damage = False, ""
        end_position = 0
        for position, data, index in self._windows(i, segment):
            corrupt = self._corrupt(i, segment, position, data, index)
            excluded = self.order.window(index, corrupt)
            if excluded:
                damaged, self._damage = True, self._damage or damage_code(index, excluded[0])
            epochs.window(segment.path, index, excluded)
            offset_index.window(index)
            if not excluded:
                time_index.window(index)
            self.producers.window(index, excluded)
            self._records.window(segment, position, data, index, excluded)
            self.batches += len(index)
            end_position = index.end_position
            self._progress(segment.path, len(data))
        unsure = self.source.being_written or (self.damaged_end and self.recovered(i))
        end_offset, cause = None if unsure else self.end_offset, self._damage
        offset_index.end(segment.size if unsure else end_position, end_offset, cause=cause)
        is_believed = not (self.source.being_written or self.recovered(i))
        time_index.end(end_offset, is_believed=is_believed, cause=cause)
        if self.end_offset - 1 - segment.base_offset > LARGEST_RELATIVE_OFFSET:
            text = f"offset {self.end_offset - 1} is more than 2^31 above the segment's base offset"
            self._findings.add("offset-overflow", segment.path, text)
        self.producers.end_segment(
            believed=not self.recovered(i),
            damaged=damaged or self.damaged_end,
            # a running broker may have the newest segment's entries in memory
            written=not (self.source.being_written and i == len(self.segments) - 1),
        )

    def _windows(self, i: int, segment: SegmentReader) -> Iterator[tuple[int, memoryview, BatchIndex]]:
        """Yield all windows of a segment, skipping damage if the ``.index`` points to a batch after it."""
        position: int | None = 0
        while position is not None:
            damage = None
            try:
                for begin, data, index in segment.windows(position, examine=self._check_crcs):
                    yield begin, data, index
                    damage = _Damage(index.end_position, index.stop, index.stop_reason)
            except CorruptRecordError as error:
                damage = _Damage(error.position or 0, "garbage", error.reason)
            position = None
            if damage is not None and damage.position < segment.size:
                position = self._behind(segment, damage.position)
                self._report_damage(i, segment, damage, position)

    def _behind(self, segment: SegmentReader, position: int) -> int | None:
        """Return the position of a later batch with a correct CRC that the ``.index`` points at, or None."""
        data = read_beside(segment, "index", INDEX_LIMIT, Findings())
        tried = 0
        for entry in OffsetIndex(data or b"", segment.base_offset):
            if position < entry.position < segment.size:
                position, tried = entry.position, tried + 1
                if tried > MOST_PROBES:
                    break
                if _sound_batch_at(segment, entry.position):
                    return entry.position
        return None

    def _report_damage(self, i: int, segment: SegmentReader, damage: _Damage, behind: int | None) -> None:
        self.order.damage()
        is_end = behind is None and i + 1 == len(self.segments)
        self.producers.damage("" if is_end else "damaged-segment")
        if not is_end:
            self._damage = self._damage or "damaged-segment"
            follows = "no further batch was found" if behind is None else f"batches continue at {behind}"
            self._findings.add(
                "damaged-segment", segment.path,
                f"the segment is damaged from here on: {damage.reason}; {follows}",
                position=damage.position,
            )  # fmt: skip
            return
        self.damaged_end = True
        if self.source.being_written and damage.stop != "garbage":
            return
        stopped = {
            "clean_shutdown": self.source.clean_shutdown,
            "was_flushed": self.end_offset < (self.source.recovery_point or 0),
        }
        if is_preallocated(damage.stop, segment.size, **stopped):
            text = f"the log ends here: {damage.reason}, as log.preallocate leaves them"
            self._findings.add("zero-tail", segment.path, text, position=damage.position, severity="note")
            return
        found = tail_finding(segment.path, damage.position, damage.stop, damage.reason, **stopped)
        if stopped["was_flushed"]:
            self._damage = self._damage or found.code  # derived files that reach further are correct
        self._findings.take(found)

    def _corrupt(
        self, i: int, segment: SegmentReader, position: int, data: memoryview, index: BatchIndex
    ) -> list[int]:
        """Report the batches with wrong CRCs, and return their numbers."""
        if UNKNOWN_MAGIC in set(index.magic):
            for at, magic in zip(index.position, index.magic, strict=True):
                if magic == UNKNOWN_MAGIC:
                    text = f"unknown magic {data[at - position + MAGIC]}"
                    self._findings.add("unknown-magic", segment.path, text, position=at)
        found = [batch for batch in self._wrong_crcs if index.magic[batch] != UNKNOWN_MAGIC]
        for batch in found:
            self._report_corrupt(i, segment, index.position[batch])
        return found

    def _check_crcs(self, position: int, data: memoryview, index: BatchIndex) -> None:
        self._wrong_crcs = wrong = []
        if self._level == "header":
            return
        batch = -1
        while (batch := check_crcs(data, index, batch + 1, len(index), position=position)) < len(index):
            wrong.append(batch)

    def _report_corrupt(self, i: int, segment: SegmentReader, position: int) -> None:
        text = "the CRC of the batch does not match its bytes"
        if self._is_cut(i):
            self._cut_found = True
            rest = sum(later.size for later in self.segments[i:]) - position
            text += f"; {rest} bytes from here on are left out, as Kafka's recovery would cut them off"
            self._findings.add("corrupt-tail", segment.path, text, position=position)
        else:
            self._findings.add("corrupt-batch", segment.path, text, position=position)

    def _is_cut(self, i: int) -> bool:
        """Return True if recovery truncates the log at a bad batch in segment ``i``."""
        if self._cut_found or self.source.clean_shutdown or self.source.being_written:
            return False
        bases = [segment.base_offset for segment in self.segments]
        return i >= first_unsettled(bases, clean_shutdown=False, recovery_point=self.source.recovery_point)


def _sound_batch_at(segment: SegmentReader, position: int) -> bool:
    while True:
        found = segment.read(position, PROBE_BYTES)
        index = scan(found, position=position)
        sound = len(index) > 0 and check_crcs(found, index, 0, 1, position=position) == 1
        if segment.settled():
            return sound
