"""One compaction of a log, in short pieces of work.

The host runs the pieces without its lock; appends, reads and flushes continue in between. Closed segments
only change by deletion and truncation: then the pass ends without a trace. The producers' state is taken
once, at the beginning, and is durable before a segment is replaced: no crash restores an older state whose
batches were removed.

Source: ``LogCleaner.CleanerThread``, ``Cleaner.doClean``, ``Cleaner.groupSegmentsBySize``.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka._core.offset_map import OffsetMap
from txnkafka._core.producer_table import ProducerTable
from txnkafka.errors import CorruptRecordError, KafkaError, KafkaStorageError, LogDirError
from txnkafka.storage.cleaner.cleaned_transactions import CleanedTransactions
from txnkafka.storage.cleaner.cleaner import Cleaner
from txnkafka.storage.cleaner.offset_map import map_offsets
from txnkafka.storage.cleaner.segment_swap import swap_segments
from txnkafka.storage.formats.index import OffsetIndex, TimeIndex
from txnkafka.storage.log.segment_indexes import SPARSE
from txnkafka.storage.log.transactions import transactions_of
from txnkafka.storage.work import perform, run_some

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from txnkafka.config import CleanerConfig, LogConfig
    from txnkafka.storage.cleaner.log_to_clean import LogToClean
    from txnkafka.storage.log.log_segment import LogSegment

    Steps = Generator[Callable[[], None] | None]

PIECE_COST: Final = 512 << 10  # of one piece, in bytes; see batch_reader.cost_of
_HEADER_COST: Final = 64  # of a batch if only its header is read
_INT32_MAX: Final = 2**31 - 1
_NEVER: Final = 2**63 - 1


class CleanStats(NamedTuple):
    """The result of a pass. Below ``end_offset`` the log is clean; the next pass begins there.

    Records are the checked data records; bytes and segments are the rewritten ones."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    end_offset: int
    segments_before: int = 0
    segments_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    records_kept: int = 0
    records_dropped: int = 0


class _SegmentsChangedError(Exception):
    """Raised when segments that a pass needs were deleted or truncated."""


class CleanerPass:
    """The compaction of ``log``: it keeps the last committed record of each key, and the state of unexpired
    producers. ``stats`` is None until the pass is complete, and stays None if it ends early. ``is_swapping``:
    segments are being replaced, and the pass must continue before the log is closed. The log must be flushed
    once after the beginning."""

    def __init__(self, to_clean: LogToClean, config: CleanerConfig, *, now_ms: int) -> None:
        self.log = to_clean.log
        self.stats: CleanStats | None = None
        self.is_swapping = False
        self.is_over = False
        self._producers = self.log.producers.snapshot(), self.log.log_end_offset
        self._config = config
        self._now_ms = now_ms
        self._error: Exception | None = None
        self._cleaner: Cleaner | None = None  # while its new segment has not replaced others
        self._pieces = self._run(to_clean.first_dirty_offset, to_clean.first_uncleanable_offset)

    def begin(self) -> Piece | None:
        """Return the next piece of work; None if the pass is over (complete, or segments were deleted), or
        while it waits for the flush.

        Raises CorruptRecordError for a damaged log, RecordListTooLargeError, KafkaStorageError. Already
        replaced segments stay replaced, and the log remains usable unless it is fenced."""
        error, self._error = self._error, None
        self.is_over = True
        try:
            call = next(self._pieces) if error is None else self._pieces.throw(error)
        except (StopIteration, _SegmentsChangedError):
            return None
        except CorruptRecordError as damage:
            where = self.log.topic_partition
            damage.locate(topic=where.topic, partition=where.partition)
            damage.remedy = "It is not compacted until that is repaired; 'txnkafka verify' lists all damage"
            raise
        except (OSError, LogDirError) as failed:
            raise KafkaStorageError(
                f"{self.log.topic_partition} was not compacted, {self.log.directory} failed: {failed}; "
                "nothing is lost"
            ) from failed
        self.is_over = False
        return None if call is None else Piece(call, self._finished)

    def _finished(self, error: Exception | None) -> None:
        self._error = error

    def run(self) -> CleanStats:
        """Run the whole pass now. Raises the errors of ``begin``."""
        try:
            while not self.is_over:
                work = self.begin()
                if work is not None:
                    with suppress(OSError, KafkaError):  # ``begin`` raises it
                        perform(work)
                elif not self.is_over:
                    self.log.flush()
        finally:
            self.abandon()
        assert self.stats is not None  # no other code has changed the log
        return self.stats

    def abandon(self) -> None:
        """End the pass between two pieces; segments that are not replaced yet stay unchanged.

        Garbage collection of a pass changes neither the log nor the disk, which may have another owner by
        then."""
        self._pieces.close()
        if self._cleaner is not None:
            self._cleaner.discard()
        if self.is_swapping:
            self.log.fence(OSError("a compaction was interrupted while it replaced segments"))

    def _run(self, dirty: int, uncleanable: int) -> Steps:
        if dirty >= uncleanable:
            self.stats = CleanStats(dirty, uncleanable, dirty)
            return
        log, segments = self.log, self.log.segments[:]
        content, end = self._producers
        closed, newest = segments[:-1], list(transactions_of(log, segments[-1]).entries)
        last = segments[log.segments.number_of(uncleanable)]
        producers, transactions = ProducerTable(), CleanedTransactions()
        keys = OffsetMap(self._config.dedupe_buffer_size, self._config.io_buffer_load_factor)
        cleaner = Cleaner(log, producers, keys, transactions, self._now_ms)
        groups: list[list[LogSegment]] = []

        def survey() -> Generator[int]:
            producers.load(content, now_ms=self._now_ms, expiration_ms=_NEVER)
            for count in transactions.read(closed, newest):
                yield count * _HEADER_COST
            yield from map_offsets(keys, segments, dirty, uncleanable, transactions)
            groups.extend(group_segments(segments, log.config, keys.latest_offset + 1))

        yield from self._in_pieces(survey(), closed, last)
        before = after = 0
        for group in groups:
            self._cleaner = cleaner
            try:
                yield from self._in_pieces(cleaner.rewrite(group), group, last)
                while log.recovery_point < end:
                    yield None
                    self._check(group, last)
            except Exception:
                cleaner.discard()
                self._cleaner = None
                raise
            self._cleaner = None
            cleaned = cleaner.cleaned
            assert cleaned is not None
            before += sum(segment.size for segment in group)
            after += cleaned.size
            self.is_swapping = True
            yield from swap_segments(log, cleaned, group, now_ms=self._now_ms)
            self.is_swapping = False
        count = sum(map(len, groups)), len(groups)
        records = cleaner.filter.kept, cleaner.filter.dropped
        self.stats = CleanStats(dirty, uncleanable, keys.latest_offset + 1, *count, before, after, *records)

    def _in_pieces(self, steps: Generator[int], needed: Sequence[LogSegment], last: LogSegment) -> Steps:
        """Yield calls that together run all ``steps``. The ``needed`` segments and the ``last`` one, where
        the range ends, must exist until the end."""
        is_over = False

        def run() -> None:
            nonlocal is_over
            is_over = run_some(steps, PIECE_COST)

        try:
            while not is_over:
                self._check(needed, last)
                yield run
            self._check(needed, last)
        finally:
            steps.close()

    def _check(self, needed: Sequence[LogSegment], last: LogSegment) -> None:
        self.log.check_usable()
        segments = self.log.segments
        for run in (needed, [last]):
            number = segments.number_of(run[0].base_offset)
            if segments[number : number + len(run)] != run:
                raise _SegmentsChangedError


class Piece:
    """A piece of work that consists of one call; ``on_finished`` gets its error."""

    def __init__(self, call: Callable[[], None], on_finished: Callable[[Exception | None], None]) -> None:
        self._call = call
        self._on_finished = on_finished

    def run(self) -> None:
        """Make the call. Raises OSError and KafkaError."""
        self._call()

    def finish(self, error: Exception | None) -> None:
        """Report the error for the next step of the pass."""
        self._on_finished(error)


def group_segments(
    segments: Sequence[LogSegment], config: LogConfig, end_offset: int
) -> list[list[LogSegment]]:
    """Return the segments of a log that begin below ``end_offset``, without the last, in groups that fit into
    one segment by size, indexes and offsets. Raises OSError."""
    groups: list[list[LogSegment]] = []
    sizes: tuple[int, ...] = (0, 0, 0)
    limits = config.segment_bytes, config.segment_index_bytes, config.segment_index_bytes
    for segment, following in pairwise(segments):
        if segment.base_offset >= end_offset:
            break
        own = _sizes(segment, config)
        together = tuple(map(sum, zip(sizes, own, strict=True)))
        fits = all(size <= limit for size, limit in zip(together, limits, strict=True))
        last_offset = following.base_offset - 1
        if groups and fits and (not segment.size or last_offset - groups[-1][0].base_offset <= _INT32_MAX):
            groups[-1].append(segment)
            sizes = together
        else:
            groups.append([segment])
            sizes = own
    return groups


def _sizes(segment: LogSegment, config: LogConfig) -> tuple[int, ...]:
    """Return the sizes of a closed segment and its indexes; for a missing file, the largest possible size."""
    sizes = [segment.size]
    for kind, entry in zip(SPARSE, (OffsetIndex.entry, TimeIndex.entry), strict=True):
        try:
            file = segment.files.data_files.open(segment.path(kind))
        except FileNotFoundError:
            sizes.append(entry.size * (segment.size // max(config.index_interval_bytes, 1) + 1))
            continue
        try:
            sizes.append(file.size())
        finally:
            file.close()
    return tuple(sizes)
