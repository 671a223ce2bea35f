"""The header pass: one pass over the batches of a segment that reads their headers only.

A segment is batches one after another, each with its own length; there is nothing between them (Kafka:
org.apache.kafka.common.record.internal.FileLogInputStream). The walk goes from length to length and never
searches for the next batch, because record bytes may look like anything.

It ends at the end of the bytes, or before bytes that are not a whole batch, and classifies these: ``torn``
(a batch that continues after the end), ``zeros`` (only zeros up to the end, as in a preallocated file) or
``garbage``.
CRCs are checked here only for control batches, which are never decoded; those of the others at decoding.
"""
from collections import namedtuple

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_WRITABLE
from cpython.bytearray cimport PyByteArray_AS_STRING
from cython cimport freelist, no_gc_clear
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from txnkafka._core.atomic cimport add_user, drop, filled, take
from txnkafka._core.batch_entry cimport (
    AT_END,
    GARBAGE,
    MAX_OFFSET,
    MAX_SIZE,
    NO_MEMORY,
    TORN,
    ZEROS,
    BatchEntry,
    Stop,
    read_entry,
)
from txnkafka._core.batch_header cimport (
    BASE_OFFSET,
    BATCH_LENGTH,
    LAST_OFFSET_DELTA,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_2,
    MIN_FRAME,
    MIN_SIZE_0,
    MIN_SIZE_1,
    MIN_SIZE_2,
)
from txnkafka._core.bytes cimport load_i32, load_i64
from txnkafka._core.crc32c cimport crc_initialize

crc_initialize()

_STOPS = ("end", "torn", "zeros", "garbage")

BatchHeader = namedtuple("BatchHeader", [
    "position", "size", "base_offset", "last_offset", "count", "base_timestamp", "max_timestamp",
    "producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch", "attributes", "magic", "crc",
    "control_type", "coordinator_epoch",
], module=__name__)
BatchHeader.__doc__ = "The header of one batch; see txnkafka/_core/batch_entry.pxd for each field."

BatchPosition = namedtuple(
    "BatchPosition", ["position", "size", "base_offset", "last_offset"], module=__name__
)
BatchPosition.__doc__ = "Position and size of a batch in bytes, and the offsets of its first and last record."
cdef object _new_tuple = tuple.__new__


cdef str GROWING = "batches are being added to this index by another thread"


@no_gc_clear  # __releasebuffer__ needs the owner; see ColumnBuffer in columns.pyx
cdef class EntryColumn:
    """One field of all entries, as a read-only strided buffer; keeps the index alive, and unchanged while
    there are readers."""

    cdef BatchIndex owner
    cdef Py_ssize_t field           # where it begins in an entry
    cdef bytes format
    cdef Py_ssize_t itemsize
    cdef Py_ssize_t shape[1]
    cdef Py_ssize_t strides[1]

    def __cinit__(self, BatchIndex owner not None, bytes format not None):
        self.owner = owner
        self.format = format

    def __getbuffer__(self, Py_buffer* view, int flags):
        if flags & PyBUF_WRITABLE:
            raise BufferError("a batch index is read-only")
        if not add_user(&self.owner.users):
            raise BufferError(GROWING)
        self.shape[0] = self.owner.count
        self.strides[0] = sizeof(BatchEntry)
        view.buf = <char*>self.owner.entries + self.field
        view.obj = self
        view.len = self.owner.count * self.itemsize
        view.itemsize = self.itemsize
        view.readonly = 1
        view.ndim = 1
        view.format = <char*>self.format if flags & PyBUF_FORMAT else NULL
        view.shape = self.shape
        view.strides = self.strides
        view.suboffsets = NULL
        view.internal = NULL

    def __releasebuffer__(self, Py_buffer* view):
        drop(&self.owner.users)


cdef object entry_column(BatchIndex owner, void* field, bytes format, Py_ssize_t itemsize):
    cdef EntryColumn self = EntryColumn.__new__(EntryColumn, owner, format)
    self.field = <Py_ssize_t>field
    self.itemsize = itemsize
    return memoryview(self)


@freelist(4)
@no_gc_clear  # __dealloc__ needs the owner
cdef class IndexHold:
    """Prevents changes of a batch index."""

    def __dealloc__(self):
        if self.owner is not None:
            drop(&self.owner.users)


cdef class BatchIndex:
    """The batches of one segment, or of a part of one, in file order.

    ``len(index)`` is the number of batches; ``index[i]`` is a BatchHeader; each field is also a column over
    all batches (a memoryview, for example ``index.base_offset``). ``end_position`` is the position after the
    last whole batch, ``stop`` classifies the bytes there (``end``, ``torn``, ``zeros``, ``garbage``), and
    ``stop_reason`` is a text for it.
    """

    def __cinit__(self):
        self.end_position = 0
        self.stop = "end"
        self.stop_reason = ""
        self.room_for(16)

    def __dealloc__(self):
        free(self.entries)

    cdef IndexHold hold(self):
        cdef IndexHold held = IndexHold.__new__(IndexHold)
        if not add_user(&self.users):
            raise BufferError(GROWING)
        held.owner = self
        return held

    cdef int acquire(self) except -1:
        if not take(&self.users):
            raise BufferError("columns of this batch index are still looked at")
        return 0

    cdef int room_for(self, Py_ssize_t more) except -1:
        if not reserve_entries(&self.entries, &self.capacity, self.count + more):
            raise MemoryError("no memory for the batch index")
        return 0

    def __len__(self):
        return self.count

    def __getitem__(self, Py_ssize_t i):
        cdef IndexHold _held = self.hold()
        if i < 0:
            i += self.count
        if not 0 <= i < self.count:
            raise IndexError(f"batch {i} of {self.count}")
        cdef BatchEntry* e = &self.entries[i]
        return BatchHeader(
            e.position, e.size, e.base_offset, e.last_offset, e.count, e.base_timestamp, e.max_timestamp,
            e.producer_id, e.producer_epoch, e.base_sequence, e.partition_leader_epoch, e.attributes, e.magic,
            e.crc,
            e.control_type, e.coordinator_epoch,
        )

    def __iter__(self):
        for i in range(self.count):
            yield self[i]

    def find(self, wanted):
        """Return the number of the first batch whose last offset is ``wanted`` or higher; ``len(index)`` when
        there is none."""
        cdef IndexHold _held = self.hold()
        if wanted > INT64_MAX:      # the sum of a base offset and a number in a file
            return self.count
        cdef int64_t offset = wanted
        cdef Py_ssize_t low = 0, high = self.count, middle
        while low < high:
            middle = (low + high) // 2
            if self.entries[middle].last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def latest_timestamp(self, Py_ssize_t start, Py_ssize_t stop):
        """Return the latest timestamp in the headers of batches ``start`` to ``stop``, an upper bound for
        their records; the largest possible number if one is of magic 0 or 1, whose headers give no bound."""
        cdef IndexHold _held = self.hold()
        cdef int64_t latest = INT64_MIN
        cdef Py_ssize_t i
        if not 0 <= start <= stop <= self.count:
            raise IndexError(f"batches {start} to {stop} of {self.count}")
        for i in range(start, stop):
            if self.entries[i].magic != MAGIC_2:
                return INT64_MAX
            latest = max(latest, self.entries[i].max_timestamp)
        return latest

    def extend(self, BatchIndex other not None):
        """Add the batches of ``other``, which follow these in the same file, and take over its stop."""
        cdef IndexHold _held = other.hold()
        self.acquire()
        try:
            self.room_for(other.count)
            memcpy(self.entries + self.count, other.entries, <size_t>other.count * sizeof(BatchEntry))
            self.count += other.count
            self.end_position = other.end_position
            self.stop = other.stop
            self.stop_reason = other.stop_reason
        finally:
            filled(&self.users, 0)

    def disorder(self, int64_t next_offset, Py_ssize_t start=0):
        """Return the first batch from number ``start`` on that begins below the end of the previous one;
        ``len(index)`` when all are in order.

        ``next_offset`` is the end of the batch before ``start``.
        """
        cdef IndexHold _held = self.hold()
        cdef Py_ssize_t i
        for i in range(start, self.count):
            # a compressed magic 0 or 1 wrapper is known by its last offset only
            if self.entries[i].base_offset < next_offset:
                return i
            next_offset = self.entries[i].last_offset + 1
        return self.count

    def has_gaps(self, int64_t next_offset):
        """Return whether offsets from ``next_offset`` on are or may be missing before or in a batch: the
        header of a compressed wrapper of magic 0 or 1 does not contain its number of records."""
        cdef IndexHold _held = self.hold()
        cdef Py_ssize_t i
        for i in range(self.count):
            if self.entries[i].last_offset + 1 - next_offset != self.entries[i].count:
                return True
            next_offset = self.entries[i].last_offset + 1
        return False

    def truncate(self, Py_ssize_t count, str stop, str stop_reason):
        """Remove the batches from number ``count`` on, because a closer check has found the log end there."""
        self.acquire()
        try:
            if not 0 <= count <= self.count:
                raise IndexError(f"cannot keep {count} of {self.count} batches")
            if count < self.count:
                self.end_position = self.entries[count].position
            self.count = count
            self.stop = stop
            self.stop_reason = stop_reason
        finally:
            filled(&self.users, 0)

    @property
    def position(self):
        return entry_column(self, &(<BatchEntry*>NULL).position, b"q", 8)

    @property
    def size(self):
        return entry_column(self, &(<BatchEntry*>NULL).size, b"i", 4)

    @property
    def base_offset(self):
        return entry_column(self, &(<BatchEntry*>NULL).base_offset, b"q", 8)

    @property
    def last_offset(self):
        return entry_column(self, &(<BatchEntry*>NULL).last_offset, b"q", 8)

    @property
    def record_count(self):
        return entry_column(self, &(<BatchEntry*>NULL).count, b"i", 4)

    @property
    def base_timestamp(self):
        return entry_column(self, &(<BatchEntry*>NULL).base_timestamp, b"q", 8)

    @property
    def max_timestamp(self):
        return entry_column(self, &(<BatchEntry*>NULL).max_timestamp, b"q", 8)

    @property
    def producer_id(self):
        return entry_column(self, &(<BatchEntry*>NULL).producer_id, b"q", 8)

    @property
    def producer_epoch(self):
        return entry_column(self, &(<BatchEntry*>NULL).producer_epoch, b"h", 2)

    @property
    def base_sequence(self):
        return entry_column(self, &(<BatchEntry*>NULL).base_sequence, b"i", 4)

    @property
    def partition_leader_epoch(self):
        return entry_column(self, &(<BatchEntry*>NULL).partition_leader_epoch, b"i", 4)

    @property
    def attributes(self):
        return entry_column(self, &(<BatchEntry*>NULL).attributes, b"h", 2)

    @property
    def magic(self):
        return entry_column(self, &(<BatchEntry*>NULL).magic, b"b", 1)

    @property
    def crc(self):
        return entry_column(self, &(<BatchEntry*>NULL).crc, b"I", 4)

    @property
    def crc_wrong(self):
        return entry_column(self, &(<BatchEntry*>NULL).crc_wrong, b"b", 1)

    @property
    def control_type(self):
        return entry_column(self, &(<BatchEntry*>NULL).control_type, b"h", 2)

    @property
    def coordinator_epoch(self):
        return entry_column(self, &(<BatchEntry*>NULL).coordinator_epoch, b"i", 4)


cdef bint reserve_entries(BatchEntry** entries, Py_ssize_t* capacity, Py_ssize_t wanted) noexcept nogil:
    cdef Py_ssize_t grown = capacity[0]
    cdef void* memory
    if wanted <= grown:
        return True
    grown = max(wanted, grown * 2)
    memory = realloc(entries[0], <size_t>grown * sizeof(BatchEntry))
    if memory == NULL:
        return False
    entries[0] = <BatchEntry*>memory
    capacity[0] = grown
    return True


def scan(const uint8_t[::1] data not None, *, int64_t position=0, BatchIndex index=None):
    """Index the batches in ``data``, which begins at byte ``position`` of its file and on a batch boundary.

    Returns a BatchIndex; with ``index`` the batches are added to that one. Damage raises no error: the walk
    stops before it.
    """
    cdef BatchIndex result = BatchIndex() if index is None else index
    cdef const uint8_t* begin = &data[0] if data.shape[0] else NULL
    cdef const uint8_t* p = begin
    cdef const uint8_t* end = begin + data.shape[0] if data.shape[0] else NULL
    cdef Stop stop
    cdef int64_t shift = position - <int64_t><Py_ssize_t>begin
    result.acquire()
    try:
        with nogil:
            stop = walk(&p, end, shift, &result.entries, &result.count, &result.capacity)
        if stop == NO_MEMORY:
            raise MemoryError("no memory for the batch index")
        result.end_position = position + (p - begin if begin != NULL else 0)
        result.stop = _STOPS[stop]
        result.stop_reason = stop_reason(stop, p, end)
    finally:
        filled(&result.users, 0)
    return result


def find_batch(bytearray data not None, *, Py_ssize_t length, int64_t position, int64_t end, int64_t offset):
    """Walk from header to header to the first batch that ends at or after ``offset``.

    The first ``length`` bytes of ``data`` are those of a file from byte ``position`` on, where a batch
    begins; the last batch of the file ends at ``end``. ``data`` needs to contain only headers. Returns a
    BatchPosition. Size 0 means that no batch was found, and the position is that where the walk stopped: at
    ``end``, before a header that is not in ``data``, or before bytes that are no batch of magic 0, 1 or 2.
    """
    cdef const uint8_t* begin = <const uint8_t*>PyByteArray_AS_STRING(data)
    cdef Py_ssize_t at = 0
    cdef int64_t size
    cdef int64_t last_offset = 0
    length = min(length, len(data))
    while at < length:
        size = frame_size(begin + at, length - at, end - position - at, &last_offset)
        if size == 0:
            break
        if last_offset >= offset:
            return _new_tuple(BatchPosition, (position + at, size, load_i64(begin + at), last_offset))
        at += size
    return _new_tuple(BatchPosition, (position + at, 0, 0, 0))


cdef int64_t frame_size(
    const uint8_t* p, Py_ssize_t readable, int64_t whole, int64_t* last_offset
) noexcept nogil:
    """Read size and last offset of the batch at ``p``, of which ``readable`` bytes are in memory and which
    has at most ``whole`` bytes; 0 when there is no complete or valid header."""
    cdef int64_t size
    cdef int32_t last_offset_delta = 0
    if readable < MIN_FRAME:
        return 0
    size = <int64_t>load_i32(p + BATCH_LENGTH)
    last_offset[0] = load_i64(p)
    if p[MAGIC] == 2:
        if size < MIN_SIZE_2 or readable < LAST_OFFSET_DELTA + 4:
            return 0
        last_offset_delta = load_i32(p + LAST_OFFSET_DELTA)
    elif p[MAGIC] > 2 or size < (MIN_SIZE_1 if p[MAGIC] else MIN_SIZE_0):
        return 0
    if size > MAX_SIZE or size + LOG_OVERHEAD > whole:
        return 0
    if last_offset[0] < 0 or last_offset_delta < 0 or last_offset[0] > MAX_OFFSET - last_offset_delta:
        return 0
    last_offset[0] += last_offset_delta
    return size + LOG_OVERHEAD


cdef Stop walk(const uint8_t** at, const uint8_t* end, int64_t shift, BatchEntry** entries, Py_ssize_t* count,
               Py_ssize_t* capacity) noexcept nogil:
    cdef const uint8_t* p = at[0]
    cdef Stop stop = AT_END
    cdef BatchEntry* e
    while p < end:
        if not reserve_entries(entries, capacity, count[0] + 1):
            stop = NO_MEMORY
            break
        e = &entries[0][count[0]]
        stop = read_entry(p, end, e)
        if stop != AT_END:
            break
        e.position = <int64_t><Py_ssize_t>p + shift
        count[0] += 1
        p += e.size
    at[0] = p
    return stop


cdef str stop_reason(Stop stop, const uint8_t* p, const uint8_t* end):
    cdef Py_ssize_t left = end - p if p != NULL else 0
    if stop == TORN and left < MIN_FRAME:
        return f"the last {left} bytes are the beginning of a batch header"
    if stop == TORN:
        size = <int64_t>load_i32(p + BATCH_LENGTH) + LOG_OVERHEAD
        return f"a batch of {size} bytes begins here, but only {left} bytes follow"
    if stop == ZEROS:
        return f"{left} zero bytes to the end"
    if stop == GARBAGE:
        length, magic = load_i32(p + BATCH_LENGTH), <int8_t>p[MAGIC]
        return f"no batch begins here: length {length}, magic {magic}, offset {load_i64(p + BASE_OFFSET)}"
    return ""
