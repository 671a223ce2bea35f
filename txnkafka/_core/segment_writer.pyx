"""The end of a segment that gets appends: decides whether a batch begins a new segment, writes a batch, and
keeps what the indexes have to know of it. ``LogSegment`` is the rest, and has the rare steps as methods.

Source: ``LogSegment.shouldRoll``, ``LogSegment.append``.
"""
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int64_t

from txnkafka._core.validate cimport IncomingBatch

cdef enum:
    OFFSET_ENTRY = 8
    TIME_ENTRY = 12


cdef class SegmentWriter:
    """``size`` is the position of the next batch, ``bytes_since_entry`` counts from the last batch with an
    entry of the offset index, ``rolling_timestamp`` is the largest one of the first batch (None until it is
    known); ``max_timestamp`` is the largest of all, in the batch that ends with ``max_timestamp_offset``.

    A subclass has ``first_timestamp``, ``note_unsynced`` and ``add_entry``.
    """

    @property
    def config(self):
        """The settings of the log."""
        return self.settings

    @config.setter
    def config(self, config):
        self.settings = config
        self.segment_bytes, self.roll_ms = config.segment_bytes, config.roll_ms
        self.interval_bytes, self.index_bytes = config.index_interval_bytes, config.segment_index_bytes
        self.has_index_room = False

    @property
    def offset_index(self):
        """The entries by offset."""
        return self.offsets

    @offset_index.setter
    def offset_index(self, index):
        self.offsets, self.has_index_room = index, False

    @property
    def time_index(self):
        """The entries by timestamp."""
        return self.times

    @time_index.setter
    def time_index(self, index):
        self.times, self.has_index_room = index, False

    def fits(self, int64_t last_offset):
        """Return whether the offset fits an index entry (an int32 above the base offset)."""
        return 0 <= last_offset - self.base_offset <= INT32_MAX

    def indexes_are_full(self):
        """Return whether an index is full; the last slot of the time index is reserved."""
        return (
            <int64_t>len(self.offsets.content) + OFFSET_ENTRY > self.index_bytes
            or <int64_t>len(self.times.content) + 2 * TIME_ENTRY > self.index_bytes
        )

    def entries_grew(self):
        """Check the room in the indexes again: entries were added."""
        self.has_index_room = False

    def should_roll(self, IncomingBatch batch not None, int64_t end_offset, int64_t now_ms):
        """Return whether a batch at ``end_offset`` must begin a new segment: by size, by age in the time of
        the records, because an index is full, or because the offset is too far from the base offset. Raises
        CorruptRecordError and OSError."""
        return self.rolls_before(batch, end_offset, now_ms)

    cdef bint rolls_before(self, IncomingBatch batch, int64_t end_offset, int64_t now_ms) except *:
        cdef int64_t relative = end_offset + batch.last_offset_delta - self.base_offset
        cdef int64_t first, begin = self.created_ms, end = now_ms
        if self.size > self.segment_bytes - batch.size or not 0 <= relative <= INT32_MAX:
            return True
        if self.size == 0:
            return False
        rolling = self.rolling_timestamp
        if rolling is None:
            rolling = self.first_timestamp()
        first = -1 if rolling is None else rolling
        if first >= 0:      # by the timestamps of the records if they have any (LogSegment.timeWaitedForRoll)
            begin, end = first, batch.entry.max_timestamp
        if waited(begin, end) > self.roll_ms - self.roll_jitter_ms:
            return True
        if not self.has_index_room:
            self.has_index_room = not self.indexes_are_full()
        return not self.has_index_room

    def append(self, IncomingBatch batch not None):
        """Write a batch after the last one and index it. Raises OSError; then the segment is unchanged,
        except for bytes after ``size``."""
        self.write_batch(batch)

    cdef int write_batch(self, IncomingBatch batch) except -1:
        self.files.open("log").write(self.size, batch.parts())
        if not self.has_unsynced_bytes:
            self.note_unsynced()
        self.note_batch(self.size, batch.size, batch.entry.last_offset, batch.entry.max_timestamp)
        self.size += batch.size
        return 0

    def note(self, int64_t position, int64_t size, int64_t last_offset, int64_t max_timestamp):
        """Index the next batch of the log: it gets an entry when more than ``index.interval.bytes`` have
        followed the last batch with an entry."""
        self.note_batch(position, size, last_offset, max_timestamp)

    cdef int note_batch(
        self, int64_t position, int64_t size, int64_t last_offset, int64_t max_timestamp
    ) except -1:
        if self.rolling_timestamp is None:
            self.rolling_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = max_timestamp, last_offset
        if self.bytes_since_entry > self.interval_bytes:
            if self.add_entry(last_offset - self.base_offset, position):
                self.bytes_since_entry = 0
            self.has_index_room = False
        self.bytes_since_entry += size
        return 0


cdef int64_t waited(int64_t begin, int64_t end) noexcept:
    """Return the time from ``begin`` to ``end``, or the number of 64 bits next to it."""
    if begin < 0 and end > INT64_MAX + begin:
        return INT64_MAX
    if begin > 0 and end < INT64_MIN + begin:
        return INT64_MIN
    return end - begin
