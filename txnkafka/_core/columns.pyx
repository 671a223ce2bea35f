"""RecordColumns: the arena that decoding fills and that readers reuse.

One arena holds the records of one chunk as columns. Data columns have Arrow's Binary layout (int32
offsets, bytes, a validity bitmap only where nulls were seen), so numpy and Arrow take them without a copy.
Fresh memory costs more than decoding does (page faults), therefore the memory is kept and `reset()` only
forgets the records.

Invariant: memory with readers is never overwritten or freed. A column is a memoryview, which counts as a
reader from the moment it is returned until it is released; as long as there is one, `reset()` and all
functions that fill the arena raise BufferError. While the arena is being filled, no column can be taken.
"""
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE
from cython cimport no_gc_clear
from libc.stdint cimport int8_t, int32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from txnkafka._core.atomic cimport add_user, drop, filled, take, users_of

from txnkafka.bounds import MAX_RECORD_HEADERS

cdef Py_ssize_t MAX_DATA = 0x7FFFFFFF - COLUMN_SLACK
cdef str IN_USE = "these columns are still in use; release the buffers or use other columns"
cdef str REFILLED = "the memory of this column was filled again since it was released; take the column anew"


# The garbage collector, breaking a cycle that contains a column, clears the objects of the cycle one by one,
# the exporter possibly before the memoryview that then calls __releasebuffer__. So the exporter keeps its
# attributes until it is deallocated. No cycle leaks: memoryviews and dictionaries in it can be cleared.
@no_gc_clear
cdef class ColumnBuffer:
    """The exporter of the memoryview of one column; keeps its arena alive."""

    cdef RecordColumns owner
    cdef Py_ssize_t filling         # of the arena that the column belongs to
    cdef void* data
    cdef Py_ssize_t length
    cdef Py_ssize_t itemsize
    cdef bytes format
    cdef Py_ssize_t shape[1]
    cdef Py_ssize_t strides[1]

    def __cinit__(self, RecordColumns owner not None, bytes format not None):
        self.owner = owner
        self.format = format
        self.filling = -1

    def __getbuffer__(self, Py_buffer* view, int flags):
        if flags & PyBUF_WRITABLE:
            raise BufferError("record columns are read-only")
        self.owner.hold()
        if self.filling != self.owner.fillings:     # memoryview.obj outlives the memoryview
            drop(&self.owner.users)
            raise BufferError(REFILLED)
        self.shape[0] = self.length
        self.strides[0] = self.itemsize
        view.buf = self.data
        view.obj = self
        view.len = self.length * self.itemsize
        view.itemsize = self.itemsize
        view.readonly = 1
        view.ndim = 1
        view.format = <char*>self.format if flags & PyBUF_FORMAT else NULL
        view.shape = self.shape if flags & PyBUF_ND else NULL
        view.strides = self.strides if (flags & PyBUF_STRIDES) == PyBUF_STRIDES else NULL
        view.suboffsets = NULL
        view.internal = NULL

    def __releasebuffer__(self, Py_buffer* view):
        drop(&self.owner.users)


cdef object column(RecordColumns owner, void* data, Py_ssize_t length, Py_ssize_t itemsize, bytes format):
    """Return a memoryview of a column. The caller has locked ``owner`` by ``hold`` to read the pointer and
    the length; this function ends that lock."""
    cdef ColumnBuffer self
    try:
        self = ColumnBuffer.__new__(ColumnBuffer, owner, format)
        self.filling = owner.fillings
        self.data = data
        self.length = length
        self.itemsize = itemsize
        return memoryview(self)
    finally:
        drop(&owner.users)


cdef object bitmap(RecordColumns owner, uint8_t* data, size_t nulls, size_t count):
    """Return a memoryview of a validity bitmap; None without nulls."""
    if nulls == 0:
        drop(&owner.users)
        return None
    return column(owner, data, (count + 7) // 8, 1, b"B")


cdef int grow(void** memory, Py_ssize_t size) except -1:
    cdef void* grown = realloc(memory[0], <size_t>size)
    if grown == NULL:
        raise MemoryError(f"no memory for a record column of {size} bytes")
    memory[0] = grown
    return 0


cdef class RecordColumns:
    """Columns of decoded records.

    ``headers=True`` also decodes record headers. ``views=True`` stores the positions of keys and values in
    the decoded bytes (``key_positions``, ``key_lengths``, …; length -1 is null) instead of copying them.
    """

    def __cinit__(self, *, bint headers=False, bint views=False):
        self.with_headers = headers
        self.views = views
        self.sink.max_headers = MAX_RECORD_HEADERS
        self.reserve(64, 4096, 4)

    def __dealloc__(self):
        free(self.sink.offsets)
        free(self.sink.timestamps)
        free(self.sink.key_offsets)
        free(self.sink.value_offsets)
        free(self.sink.key_data)
        free(self.sink.value_data)
        free(self.sink.key_validity)
        free(self.sink.value_validity)
        free(self.sink.key_positions)
        free(self.sink.key_lengths)
        free(self.sink.value_positions)
        free(self.sink.value_lengths)
        free(self.sink.header_offsets)
        free(self.sink.header_key_offsets)
        free(self.sink.header_value_offsets)
        free(self.sink.header_key_data)
        free(self.sink.header_value_data)
        free(self.sink.header_value_validity)
        free(self.runs.ends)
        free(self.runs.leader_epochs)
        free(self.runs.timestamp_types)

    cdef int reserve(self, Py_ssize_t records, Py_ssize_t data_bytes, Py_ssize_t batches) except -1:
        """Reserve memory for more records, bytes and batches. ``data_bytes`` bounds keys, values and headers
        together."""
        cdef Py_ssize_t used = 0
        # a header takes two bytes at least
        cdef Py_ssize_t headers = min(data_bytes // 2, records * self.sink.max_headers)
        cdef record_sink* sink = &self.sink
        if sink.offsets != NULL and not self.views:
            used = max(sink.key_offsets[sink.count], sink.value_offsets[sink.count])
        if sink.offsets != NULL and self.with_headers:
            used = max(used, sink.header_key_offsets[sink.header_count])
            used = max(used, sink.header_value_offsets[sink.header_count])
        if used + data_bytes > MAX_DATA:
            raise OverflowError(f"columns hold at most {MAX_DATA} bytes; decode fewer batches at once")
        if self.sink.count + records > self.sink.record_capacity:
            self.grow_records(max(sink.count + records, sink.record_capacity + sink.record_capacity // 2))
        if used + data_bytes > self.data_capacity:
            self.grow_data(max(used + data_bytes, self.data_capacity + self.data_capacity // 2))
        if self.runs.count + batches > self.runs.capacity:
            self.grow_runs(max(self.runs.count + batches, self.runs.capacity * 2))
        if self.with_headers and self.sink.header_count + headers > self.sink.header_capacity:
            self.grow_headers(self.sink.header_count + headers + 64)
        return 0

    cdef int grow_records(self, Py_ssize_t capacity) except -1:
        cdef bint fresh = self.sink.record_capacity == 0
        cdef Py_ssize_t bits = (capacity + 7) // 8 + 8
        cdef Py_ssize_t old_bits = (self.sink.record_capacity + 7) // 8
        grow(<void**>&self.sink.offsets, capacity * 8)
        grow(<void**>&self.sink.timestamps, capacity * 8)
        if self.views:
            grow(<void**>&self.sink.key_positions, capacity * 4)
            grow(<void**>&self.sink.key_lengths, capacity * 4)
            grow(<void**>&self.sink.value_positions, capacity * 4)
            grow(<void**>&self.sink.value_lengths, capacity * 4)
        else:
            grow(<void**>&self.sink.key_offsets, capacity * 4 + 4)
            grow(<void**>&self.sink.value_offsets, capacity * 4 + 4)
            grow(<void**>&self.sink.key_validity, bits)
            grow(<void**>&self.sink.value_validity, bits)
            # the bits of records to come are "valid" until a null clears them; see clear_validity in
            # record.h
            memset(self.sink.key_validity + old_bits, 0xFF, bits - old_bits)
            memset(self.sink.value_validity + old_bits, 0xFF, bits - old_bits)
        if self.with_headers:
            grow(<void**>&self.sink.header_offsets, capacity * 4 + 4)
        if fresh:
            if not self.views:
                self.sink.key_offsets[0] = 0
                self.sink.value_offsets[0] = 0
            if self.with_headers:
                self.sink.header_offsets[0] = 0
        self.sink.record_capacity = capacity
        return 0

    cdef int grow_data(self, Py_ssize_t capacity) except -1:
        if not self.views:
            grow(<void**>&self.sink.key_data, capacity + COLUMN_SLACK)
            grow(<void**>&self.sink.value_data, capacity + COLUMN_SLACK)
        if self.with_headers:
            grow(<void**>&self.sink.header_key_data, capacity + COLUMN_SLACK)
            grow(<void**>&self.sink.header_value_data, capacity + COLUMN_SLACK)
        self.data_capacity = capacity
        return 0

    cdef int grow_headers(self, Py_ssize_t capacity) except -1:
        cdef bint fresh = self.sink.header_capacity == 0
        cdef Py_ssize_t bits = (capacity + 7) // 8 + 8
        cdef Py_ssize_t old_bits = (self.sink.header_capacity + 7) // 8
        grow(<void**>&self.sink.header_key_offsets, capacity * 4 + 4)
        grow(<void**>&self.sink.header_value_offsets, capacity * 4 + 4)
        grow(<void**>&self.sink.header_value_validity, bits)
        memset(self.sink.header_value_validity + old_bits, 0xFF, bits - old_bits)
        if fresh:
            self.sink.header_key_offsets[0] = 0
            self.sink.header_value_offsets[0] = 0
        self.sink.header_capacity = capacity
        return 0

    cdef int grow_runs(self, Py_ssize_t capacity) except -1:
        grow(<void**>&self.runs.ends, capacity * 4)
        grow(<void**>&self.runs.leader_epochs, capacity * 4)
        grow(<void**>&self.runs.timestamp_types, capacity)
        self.runs.capacity = capacity
        return 0

    cdef int acquire(self) except -1:
        if not take(&self.users):
            raise BufferError(IN_USE)
        self.fillings += 1
        return 0

    cdef void release(self) noexcept:
        filled(&self.users, 0)

    cdef int hold(self) except -1:
        if not add_user(&self.users):
            raise BufferError("these columns are being filled by another thread")
        return 0

    cdef void end_run(self, int32_t leader_epoch, int8_t timestamp_type) noexcept nogil:
        cdef int32_t begin = self.runs.ends[self.runs.count - 1] if self.runs.count else 0
        if <int32_t>self.sink.count > begin:
            self.runs.ends[self.runs.count] = <int32_t>self.sink.count
            self.runs.leader_epochs[self.runs.count] = leader_epoch
            self.runs.timestamp_types[self.runs.count] = timestamp_type
            self.runs.count += 1

    def reset(self):
        """Remove all records and keep the memory. Raises ``BufferError`` while a buffer of these columns is
        in use."""
        self.acquire()
        self.sink.count = 0
        self.sink.header_count = 0
        self.runs.count = 0
        self.sink.key_nulls = 0
        self.sink.value_nulls = 0
        self.sink.header_value_nulls = 0
        self.release()

    def __len__(self):
        return self.sink.count

    def __repr__(self):
        what = "views" if self.views else "copies"
        headers = ", with headers" if self.with_headers else ""
        if self.sink.count == 0:
            return f"<RecordColumns: no records ({what}{headers})>"
        first, last = self.sink.offsets[0], self.sink.offsets[self.sink.count - 1]
        return f"<RecordColumns: {self.sink.count} records, offsets {first} to {last} ({what}{headers})>"

    @property
    def in_use(self):
        """True while a buffer of these columns is in use, so that they cannot be filled again."""
        return users_of(&self.users) != 0

    @property
    def nbytes(self):
        """The size of the arena in bytes (address space: pages that were never written cost nothing)."""
        cdef Py_ssize_t copies = 4 if self.with_headers else 2
        return self.sink.record_capacity * 32 + self.data_capacity * copies + self.sink.header_capacity * 8

    @property
    def offsets(self):
        """int64, one per record."""
        self.hold()
        return column(self, self.sink.offsets, self.sink.count, 8, b"q")

    @property
    def timestamps(self):
        """int64 milliseconds, one per record; -1 for magic 0."""
        self.hold()
        return column(self, self.sink.timestamps, self.sink.count, 8, b"q")

    @property
    def key_offsets(self):
        """int32, one more than records: key ``i`` is ``key_data[key_offsets[i]:key_offsets[i + 1]]``."""
        self.need(not self.views, "these columns hold views; decode with views=False")
        self.hold()
        return column(self, self.sink.key_offsets, self.sink.count + 1, 4, b"i")

    @property
    def key_data(self):
        """Bytes of all keys."""
        self.need(not self.views, "these columns hold views; decode with views=False")
        self.hold()
        return column(self, self.sink.key_data, self.sink.key_offsets[self.sink.count], 1, b"B")

    @property
    def key_validity(self):
        """Bitmap, least significant bit first, 0 for null; None when no key is null."""
        self.hold()
        return bitmap(self, self.sink.key_validity, self.sink.key_nulls, self.sink.count)

    @property
    def key_null_count(self):
        return self.sink.key_nulls

    @property
    def value_offsets(self):
        """int32, one more than records."""
        self.need(not self.views, "these columns hold views; decode with views=False")
        self.hold()
        return column(self, self.sink.value_offsets, self.sink.count + 1, 4, b"i")

    @property
    def value_data(self):
        """Bytes of all values."""
        self.need(not self.views, "these columns hold views; decode with views=False")
        self.hold()
        return column(self, self.sink.value_data, self.sink.value_offsets[self.sink.count], 1, b"B")

    @property
    def value_validity(self):
        """Bitmap as ``key_validity``."""
        self.hold()
        return bitmap(self, self.sink.value_validity, self.sink.value_nulls, self.sink.count)

    @property
    def value_null_count(self):
        return self.sink.value_nulls

    @property
    def key_positions(self):
        """uint32, the position of each key in the decoded bytes (view form)."""
        self.need(self.views, "these columns hold copies; decode with views=True")
        self.hold()
        return column(self, self.sink.key_positions, self.sink.count, 4, b"I")

    @property
    def key_lengths(self):
        """int32, -1 for null (view form)."""
        self.need(self.views, "these columns hold copies; decode with views=True")
        self.hold()
        return column(self, self.sink.key_lengths, self.sink.count, 4, b"i")

    @property
    def value_positions(self):
        """uint32, the position of each value in the decoded bytes (view form)."""
        self.need(self.views, "these columns hold copies; decode with views=True")
        self.hold()
        return column(self, self.sink.value_positions, self.sink.count, 4, b"I")

    @property
    def value_lengths(self):
        """int32, -1 for null (view form)."""
        self.need(self.views, "these columns hold copies; decode with views=True")
        self.hold()
        return column(self, self.sink.value_lengths, self.sink.count, 4, b"i")

    @property
    def header_offsets(self):
        """int32, one more than records: headers ``header_offsets[i]`` to ``header_offsets[i + 1]`` belong
        to record ``i``."""
        self.need(self.with_headers, "headers were not decoded; use RecordColumns(headers=True)")
        self.hold()
        return column(self, self.sink.header_offsets, self.sink.count + 1, 4, b"i")

    @property
    def header_key_offsets(self):
        """int32, one more than headers."""
        self.need(self.with_headers, "headers were not decoded; use RecordColumns(headers=True)")
        self.hold()
        return column(self, self.sink.header_key_offsets, self.sink.header_count + 1, 4, b"i")

    @property
    def header_key_data(self):
        """UTF-8 bytes of all header keys, as they were written."""
        self.need(self.with_headers, "headers were not decoded; use RecordColumns(headers=True)")
        self.hold()
        return column(
            self, self.sink.header_key_data, self.sink.header_key_offsets[self.sink.header_count], 1, b"B"
        )

    @property
    def header_value_offsets(self):
        """int32, one more than headers."""
        self.need(self.with_headers, "headers were not decoded; use RecordColumns(headers=True)")
        self.hold()
        return column(self, self.sink.header_value_offsets, self.sink.header_count + 1, 4, b"i")

    @property
    def header_value_data(self):
        """Bytes of all header values."""
        self.need(self.with_headers, "headers were not decoded; use RecordColumns(headers=True)")
        self.hold()
        return column(
            self, self.sink.header_value_data, self.sink.header_value_offsets[self.sink.header_count], 1, b"B"
        )

    @property
    def header_value_validity(self):
        """Bitmap as ``key_validity``, over headers."""
        self.need(self.with_headers, "headers were not decoded; use RecordColumns(headers=True)")
        self.hold()
        return bitmap(
            self, self.sink.header_value_validity, self.sink.header_value_nulls, self.sink.header_count
        )

    @property
    def header_value_null_count(self):
        return self.sink.header_value_nulls

    @property
    def run_ends(self):
        """int32, one per batch that gave records: the number of records up to its end."""
        self.hold()
        return column(self, self.runs.ends, self.runs.count, 4, b"i")

    @property
    def run_leader_epochs(self):
        """int32, partition leader epoch of each run; -1 for none."""
        self.hold()
        return column(self, self.runs.leader_epochs, self.runs.count, 4, b"i")

    @property
    def run_timestamp_types(self):
        """int8, TimestampType of each run: -1 none (magic 0), 0 CreateTime, 1 LogAppendTime."""
        self.hold()
        return column(self, self.runs.timestamp_types, self.runs.count, 1, b"b")

    cdef int need(self, bint condition, str advice) except -1:
        if not condition:
            raise TypeError(advice)
        return 0
