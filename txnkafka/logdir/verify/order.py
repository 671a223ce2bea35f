"""Offsets of a log that is seen window by window: do they only grow, and from where on is nothing missing?

Batches that cannot be where their offsets say, and exact repetitions, are told and then left out of all other
checks.
``intact_from`` is the offset from which on the log holds every record as it was written: before it, the
beginning was deleted, or the cleaner took records away, or something is damaged. What is derived from the log
may rightly differ from a recomputation only before that offset.
"""

from __future__ import annotations

from collections.abc import Callable

from txnkafka._core.scan import BatchHeader, BatchIndex
from txnkafka.logdir.verify.findings import Findings
from txnkafka.record.batch_header import MAGIC_2
from txnkafka.storage.formats.order import misplaced_batches, repeated_batches
from txnkafka.storage.formats.segment_reader import SegmentReader

__all__ = ["OffsetOrder"]


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
        """Go on with the next segment; True when segments are missing in front of it. ``was_cleaned`` says
        whether the cleaner may have left a gap there."""
        hole = self._begun and segment.base_offset > self.next_offset
        missing = (
            hole
            and self._records == self.next_offset - self._segment_start  # else it has gaps itself
            and not was_cleaned()
        )
        if missing:
            self._findings.add(
                "missing-segment", segment.path,
                f"offsets {self.next_offset} to {segment.base_offset - 1} are missing: "
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
        """Bytes here are no batches: nobody knows which offsets they had."""
        self._records = -1 << 62

    def window(self, index: BatchIndex, corrupt: list[int]) -> list[int]:
        """Take the next batches; returns the numbers of those that no other check should believe."""
        if not len(index):
            return corrupt
        wrong = self._misplaced(index)
        excluded = sorted({*corrupt, *wrong})
        sound = [i for i in range(len(index)) if i not in set(excluded)] if excluded else range(len(index))
        if sound:
            self._note_intact(index, excluded, sound[0], sound[-1])
            self._last = index[sound[-1]]
            self._before_last = index.last_offset[sound[-2]] + 1 if len(sound) > 1 else self.next_offset
            self.next_offset = self._last.last_offset + 1
        return excluded

    def _misplaced(self, index: BatchIndex) -> list[int]:
        last_offset = index.last_offset[len(index) - 1]
        if index.disorder(self.next_offset) == len(index) and last_offset < self._next_base:
            return []
        repeated = repeated_batches(index, self._last)
        if index.base_offset[0] < self.next_offset and self._last is not None and 0 not in repeated:
            self._blame_last(index)
        misplaced = set(misplaced_batches(index, self.next_offset, self._next_base)) - repeated
        for i in sorted(misplaced):
            self._tell_misplaced(index[i])
        for i in sorted(repeated):
            self._findings.add(
                "repeated-batch", self._path,
                f"the batch at {index.base_offset[i]} to {index.last_offset[i]} repeats the one before",
                position=index.position[i],
            )  # fmt: skip
        return sorted(misplaced | repeated)

    def _blame_last(self, index: BatchIndex) -> None:
        """The last batch of the window before is the damaged one if this window leaves room for it."""
        assert self._last is not None
        length = self._last.last_offset - self._last.base_offset + 1
        if index.base_offset[0] - self._before_last >= length:
            self._tell_misplaced(self._last)
            self.next_offset = self.intact_from = self._before_last

    def _tell_misplaced(self, header: BatchHeader) -> None:
        self._findings.add(
            "misplaced-batch", self._path,
            f"offsets {header.base_offset} to {header.last_offset} do not fit between those of the batch's "
            "neighbours: its base offset is damaged",
            position=header.position,
        )  # fmt: skip

    def _note_intact(self, index: BatchIndex, excluded: list[int], first: int, last: int) -> None:
        records, end = sum(index.record_count), index.last_offset[last] + 1
        self._records += records
        if not excluded and records == end - self.next_offset:
            return
        # a compressed magic 0 or 1 wrapper does not tell how many offsets it has, and no producer either
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
