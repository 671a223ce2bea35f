"""Checks window by window that the offsets of a log only grow, and finds the offset after which no offset is
missing.

Batches whose offsets contradict their place in the log, and exact repetitions, are reported and then excluded
from all other checks. From offset ``intact_from`` on, the log contains every record as it was written; below
that offset, the beginning was deleted, the cleaner removed records, or bytes are damaged. Only below that
offset may derived files legally differ from a recomputation.
"""

from __future__ import annotations

from collections.abc import Callable

from txnkafka._core.scan import BatchHeader, BatchIndex
from txnkafka.logdir.verify.findings import Findings
from txnkafka.record.batch_header import MAGIC_2
from txnkafka.shown import offset_range
from txnkafka.storage.formats.order import misplaced_batches, repeated_batches
from txnkafka.storage.formats.segment_reader import SegmentReader


class OffsetOrder:
    """Follows the offsets of one partition."""

    def __init__(self, findings: Findings, first_offset: int, log_start_offset: int) -> None:
        self.next_offset = first_offset
        self.intact_from = max(first_offset, log_start_offset)
        self._findings = findings
        self._begun = False
        self._path = ""
        self._next_base = 1 << 63
        self._last: BatchHeader | None = None
        self._before_last = first_offset
        self._segment_start = first_offset
        self._records = 0

    def begin_segment(self, segment: SegmentReader, next_base: int, was_cleaned: Callable[[], bool]) -> bool:
        """Continue with the next segment; return True if segments are missing before it. ``was_cleaned``
        returns True if the cleaner may have left a gap there."""
        hole = self._begun and segment.base_offset > self.next_offset
        missing = (
            hole
            and self._records == self.next_offset - self._segment_start  # else the segment itself has gaps
            and not was_cleaned()
        )
        if missing:
            first, last = self.next_offset, segment.base_offset - 1
            self._findings.add(
                "missing-segment", segment.path,
                f"{offset_range(first, last)} {'is' if first == last else 'are'} missing: "
                "the segment before this one is gone",
            )  # fmt: skip
        if hole:
            self.intact_from = segment.base_offset
        self._begun, self._path, self._next_base = True, segment.path, next_base
        self.next_offset = max(self.next_offset, segment.base_offset)
        self._last, self._before_last = None, self.next_offset
        self._segment_start, self._records = self.next_offset, 0
        return missing

    def damage(self) -> None:
        """Record that the next bytes are not batches: the offsets in them are unknown."""
        self._records = -1 << 62

    def window(self, index: BatchIndex, corrupt: list[int]) -> list[int]:
        """Check the next batches; return the numbers of the batches that all other checks must leave out."""
        if not len(index):
            return corrupt
        wrong = self._misplaced(index, corrupt)
        excluded = sorted({*corrupt, *wrong})
        sound = [i for i in range(len(index)) if i not in set(excluded)] if excluded else range(len(index))
        if sound:
            self._note_intact(index, excluded, sound[0], sound[-1])
            self._last = index[sound[-1]]
            self._before_last = index.last_offset[sound[-2]] + 1 if len(sound) > 1 else self.next_offset
            self.next_offset = self._last.last_offset + 1
        return excluded

    def _misplaced(self, index: BatchIndex, corrupt: list[int]) -> list[int]:
        last_offset = index.last_offset[len(index) - 1]
        if index.disorder(self.next_offset) == len(index) and last_offset < self._next_base:
            return []
        repeated = repeated_batches(index, self._last)
        if index.base_offset[0] < self.next_offset and self._last is not None and 0 not in repeated:
            self._blame_last(index)
        damaged = set(corrupt)
        found = misplaced_batches(
            index, self.next_offset, self._next_base, lambda _, number: number not in damaged
        )
        misplaced = set(found) - repeated - damaged
        for i in sorted(misplaced):
            self._report_misplaced(index[i])
        for i in sorted(repeated):
            self._findings.add(
                "repeated-batch", self._path,
                f"the batch at {index.base_offset[i]} to {index.last_offset[i]} repeats the one before",
                position=index.position[i],
            )  # fmt: skip
        return sorted(misplaced | repeated)

    def _blame_last(self, index: BatchIndex) -> None:
        """Report the last batch of the previous window instead, if all batches of this window fit without
        it."""
        assert self._last is not None
        length = self._last.last_offset - self._last.base_offset + 1
        if index.base_offset[0] - self._before_last >= length:
            self._report_misplaced(self._last)
            self.next_offset = self.intact_from = self._before_last

    def _report_misplaced(self, header: BatchHeader) -> None:
        self._findings.add(
            "misplaced-batch", self._path,
            f"the batch of {offset_range(header.base_offset, header.last_offset)} does not fit between its "
            "neighbours: its base offset is damaged",
            position=header.position,
        )  # fmt: skip

    def _note_intact(self, index: BatchIndex, excluded: list[int], first: int, last: int) -> None:
        records, end = sum(index.record_count), index.last_offset[last] + 1
        self._records += records
        if not excluded and records == end - self.next_offset:
            return
        # the header of a compressed magic 0 or 1 wrapper lacks the number of offsets and the producer
        if not excluded and min(index.magic) < MAGIC_2:
            return
        self._records = -1 << 62
        left_out = set(excluded)
        for i in range(last, first - 1, -1):
            if i in left_out:
                continue
            base_offset, last_offset = index.base_offset[i], index.last_offset[i]
            if last_offset + 1 != end:
                break
            if index.record_count[i] != last_offset - base_offset + 1:
                self.intact_from = end
                return
            end = base_offset
        if end > self.next_offset:
            self.intact_from = end
