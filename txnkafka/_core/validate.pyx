"""Checks one batch before an append: reads header, CRC and every record in one pass, in Kafka's order.

``IncomingBatch`` has the facts, ``BatchRules`` the limits of one log. A fault is a number; its error and text
are in ``storage/log/log_validator.py``. The rules for a record are those of the full reader (``record.h``).

Source: ``UnifiedLog.analyzeAndValidateRecords``, ``LogValidator``, ``DefaultRecordBatch``.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromObject
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from txnkafka._core.batch_entry cimport AT_END, MAX_SIZE, batch_crc, last_offset_delta, read_header
from txnkafka._core.batch_header cimport (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTES,
    BASE_OFFSET,
    BATCH_LENGTH,
    CRC,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_0,
    MAGIC_2,
    MIN_FRAME,
    MIN_SIZE_0,
)
from txnkafka._core.bytes cimport load_i16, load_i32, load_i64, load_u32, store_i16, store_i32, store_u32
from txnkafka._core.crc32c cimport crc32c_of, crc_chosen, crc_initialize
from txnkafka._core.gil cimport LARGE
from txnkafka._core.header_change cimport crc_fill_shifts, put_max_timestamp, put_place
from txnkafka._core.record cimport (
    RECORD_COUNT,
    RECORD_FIELD,
    RECORD_HEADER_KEY,
    RECORD_HEADERS,
    RECORD_LENGTH,
    RECORD_OK,
    RECORD_SIZE,
    RECORD_TRAILING,
    read_record,
    record_fields,
)

crc_initialize()
crc_fill_shifts()

cdef enum:
    COPIED_WHOLE = 1 << 10          # up to here one buffer to write costs less than two

cdef enum BatchFault:               # in the order of Kafka's checks
    FINE
    TOO_SHORT
    TOO_SMALL
    NO_SUCH_MAGIC
    NO_HEADER
    CUT_OFF
    LARGER_THAN_ANY
    OLD_FORMAT
    NOT_FROM_ZERO
    TOO_LARGE
    WRONG_CRC
    BYTES_BEHIND
    LAST_BEFORE_FIRST
    NO_RECORDS
    COUNT
    CONTROL
    NO_SEQUENCE
    BAD_RECORD
    OUT_OF_ORDER
    TIMESTAMP_TYPE
    TIMESTAMP
    NO_KEY

FAULTS = (
    "fine", "too short", "too small", "unknown magic", "no header", "cut off", "larger than any",
    "old format", "base offset", "too large", "wrong CRC", "bytes behind", "last before first", "no records",
    "count", "control", "no sequence", "bad record", "out of order", "timestamp type", "timestamp", "no key",
)

_REASONS = {
    RECORD_OK: "",
    RECORD_LENGTH: "its length is negative or reaches past the end of the batch",
    RECORD_FIELD: "a field does not fit into it",
    RECORD_HEADERS: "its header count is negative or larger than the record",
    RECORD_HEADER_KEY: "a header key has a negative length",
    RECORD_SIZE: "it is longer than its fields",
    RECORD_COUNT: "the batch ends before it",
    RECORD_TRAILING: "bytes are left after the last one",
}


cdef class IncomingBatch:
    """A magic 2 batch: the facts of its header and its records, and the bytes for the log.

    ``received`` is the number of bytes passed, ``size`` the size in the header. A walk over the records sets
    the number of the first unreadable record (``bad_record``, with ``record_problem``), of the first without
    a key (``keyless``) and of the first whose offset delta is not its number (``out_of_order``), -1 for none;
    ``earliest_timestamp`` (ignoring -1, unless there are no others) and ``latest_timestamp``.

    ``stamp``, ``replace_records`` and ``place`` change the output, not the caller's bytes. The caller must
    not change these before they are written, either: ``parts`` refers to them.
    """

    cdef int read(self, object source) except -1:
        cdef Py_buffer view
        self.bad_record = self.keyless = self.out_of_order = -1
        self.earliest_timestamp = self.latest_timestamp = self.log_append_time = -1
        self.records, self.records_at = source, HEADER_SIZE
        PyObject_GetBuffer(source, &view, PyBUF_SIMPLE)
        try:
            if len(source) != view.len:
                raise ValueError("a batch comes as a buffer of single bytes")
            self.received = view.len
            self.read_frame(<const uint8_t*>view.buf)
            if self.frame_fault == FINE:
                if self.size < LARGE:
                    self.read_content(<const uint8_t*>view.buf)
                else:
                    with nogil:
                        self.read_content(<const uint8_t*>view.buf)
        finally:
            PyBuffer_Release(&view)
        return 0

    cdef void read_frame(self, const uint8_t* p) noexcept:
        if self.received < MIN_FRAME:
            self.frame_fault = TOO_SHORT
            return
        self.base_offset = load_i64(p + BASE_OFFSET)
        self.size = <Py_ssize_t>load_i32(p + BATCH_LENGTH) + LOG_OVERHEAD
        self.magic = <int8_t>p[MAGIC]
        if self.size < LOG_OVERHEAD + MIN_SIZE_0:
            self.frame_fault = TOO_SMALL
        elif not MAGIC_0 <= self.magic <= MAGIC_2:
            self.frame_fault = NO_SUCH_MAGIC
        elif self.magic < MAGIC_2:
            self.frame_fault = OLD_FORMAT
        elif self.size < HEADER_SIZE:
            self.frame_fault = NO_HEADER
        elif self.size > self.received:
            self.frame_fault = CUT_OFF
        elif self.size > MAX_SIZE + LOG_OVERHEAD:
            self.frame_fault = LARGER_THAN_ANY

    cdef void read_content(self, const uint8_t* p) noexcept nogil:
        memcpy(self.header, p, HEADER_SIZE)
        self.entry.magic = self.magic
        self.is_readable = read_header(p, self.size - LOG_OVERHEAD, &self.entry) == AT_END
        self.last_offset_delta = last_offset_delta(&self.entry)
        self.crc_holds = batch_crc(p, self.size) == self.entry.crc
        if self.crc_holds and not self.entry.attributes & ATTRIBUTE_CODEC:
            self.walk(p + HEADER_SIZE, p + self.size)

    cdef void walk(self, const uint8_t* p, const uint8_t* end) noexcept nogil:
        cdef record_fields r
        cdef int error = RECORD_COUNT
        cdef int32_t i, count = self.entry.count, keyless = -1, out_of_order = -1
        cdef int64_t timestamp, base = self.entry.base_timestamp, earliest = INT64_MAX, latest = INT64_MIN
        for i in range(count):
            if p < end:
                p = read_record(p, end, end, &r, NULL, &error)
            else:
                p, error = NULL, RECORD_COUNT
            if p == NULL:
                self.bad_record, self.record_error = i, error
                return
            timestamp = <int64_t>(<uint64_t>base + <uint64_t>r.timestamp_delta)
            if timestamp != -1:
                earliest = min(earliest, timestamp)
            latest = max(latest, timestamp)
            if r.key_length < 0 and keyless < 0:
                keyless = i
            if r.offset_delta != i and out_of_order < 0:
                out_of_order = i
        self.keyless, self.out_of_order = keyless, out_of_order
        self.latest_timestamp = latest if count > 0 else -1
        self.earliest_timestamp = earliest if earliest != INT64_MAX else -1
        if p != end:
            self.bad_record, self.record_error = count, RECORD_TRAILING

    @property
    def codec(self):
        """The number of the records' codec."""
        return self.entry.attributes & ATTRIBUTE_CODEC

    @property
    def attributes(self):
        return self.entry.attributes

    @property
    def is_control(self):
        return self.entry.attributes & ATTRIBUTE_CONTROL != 0

    @property
    def record_count(self):
        return self.entry.count

    @property
    def last_offset(self):
        return self.entry.last_offset

    @property
    def max_timestamp(self):
        return self.entry.max_timestamp

    @property
    def producer_id(self):
        return self.entry.producer_id

    @property
    def producer_epoch(self):
        return self.entry.producer_epoch

    @property
    def base_sequence(self):
        return self.entry.base_sequence

    @property
    def record_problem(self):
        """The fault of ``bad_record``; empty when all records can be read."""
        return _REASONS[self.record_error]

    @property
    def payload(self):
        """The bytes after the header."""
        cdef Py_ssize_t end = self.records_at + self.size - HEADER_SIZE
        return PyMemoryView_FromObject(self.records)[self.records_at:end]

    def walk_decompressed(self, records not None):
        """Read the decompressed records of a compressed batch."""
        cdef Py_buffer view
        PyObject_GetBuffer(records, &view, PyBUF_SIMPLE)
        try:
            if view.len < LARGE:
                self.walk(<const uint8_t*>view.buf, <const uint8_t*>view.buf + view.len)
            else:
                with nogil:
                    self.walk(<const uint8_t*>view.buf, <const uint8_t*>view.buf + view.len)
        finally:
            PyBuffer_Release(&view)

    def replace_records(self, bytes records not None, int codec):
        """Replace the bytes after the header by the records, compressed with ``codec`` (0 to 4)."""
        self.records, self.records_at = records, 0
        self.size = HEADER_SIZE + len(records)
        self.entry.size = <int32_t>self.size
        self.entry.attributes = (self.entry.attributes & ~ATTRIBUTE_CODEC) | codec
        store_i32(self.header + BATCH_LENGTH, self.entry.size - LOG_OVERHEAD)
        store_i16(self.header + ATTRIBUTES, self.entry.attributes)
        self.entry.crc = crc_chosen(
            crc32c_of(self.header + ATTRIBUTES, HEADER_SIZE - ATTRIBUTES),
            <const uint8_t*>PyBytes_AS_STRING(records), <size_t>len(records),
        )
        store_u32(self.header + CRC, self.entry.crc)

    def stamp(self, BatchRules rules not None, int64_t now_ms):
        """Set timestamp type and largest timestamp: the log's clock with LogAppendTime, else the records'."""
        self.stamp_by(rules, now_ms)

    cdef void stamp_by(self, BatchRules rules, int64_t now_ms) noexcept:
        cdef bint log_append_time = rules.log_append_time
        cdef int64_t latest = now_ms if log_append_time else self.latest_timestamp
        if log_append_time:
            self.log_append_time = now_ms
        elif latest == self.entry.max_timestamp and not self.entry.attributes & ATTRIBUTE_LOG_APPEND_TIME:
            return
        put_max_timestamp(self.header, log_append_time, latest)
        self.entry.attributes = load_i16(self.header + ATTRIBUTES)
        self.entry.crc = load_u32(self.header + CRC)
        self.entry.max_timestamp = latest

    def place(self, int64_t base_offset, int32_t partition_leader_epoch):
        """Set the base offset and the leader epoch of the batch."""
        self.place_at(base_offset, partition_leader_epoch)

    cdef void place_at(self, int64_t base_offset, int32_t partition_leader_epoch) noexcept:
        put_place(self.header, base_offset, partition_leader_epoch)
        self.base_offset = self.entry.base_offset = base_offset
        self.entry.last_offset = base_offset + self.last_offset_delta
        self.entry.partition_leader_epoch = partition_leader_epoch

    def parts(self):
        """Return the output, header and records, as consecutive buffers. Raises BufferError when the caller's
        buffer was shortened meanwhile."""
        cdef Py_buffer view
        cdef bytes content
        cdef uint8_t* to
        if len(self.records) < self.records_at + self.size - HEADER_SIZE:
            raise BufferError("a batch was cut while it was appended")
        if self.size > COPIED_WHOLE:
            return [<bytes>self.header[:HEADER_SIZE], self.payload]
        content = PyBytes_FromStringAndSize(NULL, self.size)
        to = <uint8_t*>PyBytes_AS_STRING(content)
        memcpy(to, self.header, HEADER_SIZE)
        PyObject_GetBuffer(self.records, &view, PyBUF_SIMPLE)
        memcpy(
            to + HEADER_SIZE, <const uint8_t*>view.buf + self.records_at, <size_t>(self.size - HEADER_SIZE)
        )
        PyBuffer_Release(&view)
        return [content]


cdef class BatchRules:
    """The limits of one log for batches; see ``LogConfig``. Times in milliseconds. ``compresses`` says that
    records without compression are compressed."""

    def __cinit__(
        self, *, Py_ssize_t max_message_bytes, Py_ssize_t segment_bytes, bint log_append_time, bint compact,
        bint compresses, int64_t before_max_ms, int64_t after_max_ms,
    ):
        self.max_message_bytes, self.segment_bytes = max_message_bytes, segment_bytes
        self.log_append_time, self.compact, self.compresses = log_append_time, compact, compresses
        self.before_max_ms, self.after_max_ms = before_max_ms, after_max_ms

    def read(self, batch not None, int origin, int64_t now_ms):
        """Read a batch like ``read_batch``. If it has no fault and its records stay as they are, it is
        stamped, too, and ``is_accepted``: it is what the log stores, except for its offsets."""
        return self.accept(batch, origin, now_ms)

    cdef IncomingBatch accept(self, object source, int origin, int64_t now_ms):
        cdef IncomingBatch batch = IncomingBatch.__new__(IncomingBatch)
        batch.read(source)
        if (
            self.fault_of_frame(batch, origin) == FINE
            and not batch.entry.attributes & ATTRIBUTE_CODEC
            and self.fault_of_content(batch, origin, now_ms) == FINE
            and (not self.compresses or batch.entry.attributes & ATTRIBUTE_CONTROL)
        ):
            batch.stamp_by(self, now_ms)
            batch.is_accepted = True
        return batch

    cdef bint has_room(self, IncomingBatch batch, int64_t end_offset) noexcept:
        """Return whether a log that ends at ``end_offset`` has offsets left for the batch, and a segment has
        room for it."""
        return batch.last_offset_delta < INT64_MAX - end_offset and batch.size <= self.segment_bytes

    def frame_fault(self, IncomingBatch batch not None, int origin):
        """Return the fault number of the batch as a whole, before its records are decompressed."""
        return self.fault_of_frame(batch, origin)

    cdef int fault_of_frame(self, IncomingBatch batch, int origin) noexcept:
        if batch.frame_fault != FINE:
            return batch.frame_fault
        if origin == FROM_CLIENT and batch.base_offset != 0:
            return NOT_FROM_ZERO
        if batch.size > self.max_message_bytes:
            return TOO_LARGE
        if not batch.crc_holds:
            return WRONG_CRC
        if batch.size != batch.received:
            return BYTES_BEHIND
        return FINE

    def content_fault(self, IncomingBatch batch not None, int origin, int64_t now_ms):
        """Return the fault number of header and records."""
        return self.fault_of_content(batch, origin, now_ms)

    cdef int fault_of_content(self, IncomingBatch batch, int origin, int64_t now_ms) noexcept:
        if batch.last_offset_delta < 0:
            return LAST_BEFORE_FIRST
        if origin != FROM_CLIENT:
            return FINE
        if batch.entry.count <= 0:
            return NO_RECORDS
        if batch.last_offset_delta != batch.entry.count - 1:
            return COUNT
        if batch.entry.attributes & ATTRIBUTE_CONTROL:
            return CONTROL
        if batch.entry.producer_id > -1 and batch.entry.base_sequence < 0:
            return NO_SEQUENCE
        return self.record_fault(batch, now_ms)

    cdef int record_fault(self, IncomingBatch batch, int64_t now_ms) noexcept:
        if batch.record_error != RECORD_OK:
            return BAD_RECORD
        if batch.out_of_order >= 0:
            return OUT_OF_ORDER
        if not self.log_append_time:
            if batch.latest_timestamp == -1 and batch.entry.attributes & ATTRIBUTE_LOG_APPEND_TIME:
                return TIMESTAMP_TYPE
            if not self.allows(batch.earliest_timestamp, now_ms):
                return TIMESTAMP
            if not self.allows(batch.latest_timestamp, now_ms):
                return TIMESTAMP
        return NO_KEY if self.compact and batch.keyless >= 0 else FINE

    cdef bint allows(self, int64_t timestamp, int64_t now_ms) noexcept:
        """Check a timestamp by ``message.timestamp.before.max.ms`` and ``after.max.ms``; a limit beyond 64
        bits allows all values on its side."""
        cdef int64_t oldest = INT64_MIN, newest = INT64_MAX
        if timestamp == -1:
            return True
        if now_ms >= INT64_MIN + self.before_max_ms:
            oldest = now_ms - self.before_max_ms
        if now_ms <= INT64_MAX - self.after_max_ms:
            newest = now_ms + self.after_max_ms
        return oldest <= timestamp <= newest

    def bad_records(self, IncomingBatch batch not None, records not None, int64_t now_ms, int most):
        """Return the first ``most`` records that the log refuses, as (number, fault number, timestamp). All
        records must be readable."""
        cdef Py_buffer view
        cdef record_fields r
        cdef const uint8_t* p
        cdef const uint8_t* end
        cdef int error = RECORD_OK
        cdef int32_t i
        cdef int64_t timestamp
        cdef int fault
        found = []
        PyObject_GetBuffer(records, &view, PyBUF_SIMPLE)
        p, end = <const uint8_t*>view.buf, <const uint8_t*>view.buf + view.len
        for i in range(batch.entry.count):
            p = read_record(p, end, end, &r, NULL, &error)
            if p == NULL or len(found) >= most:
                break
            timestamp = <int64_t>(<uint64_t>batch.entry.base_timestamp + <uint64_t>r.timestamp_delta)
            fault = self.fault_of(&r, i, timestamp, now_ms)
            if fault != FINE:
                found.append((i, <int>fault, timestamp))
        PyBuffer_Release(&view)
        return found

    cdef int fault_of(
        self, const record_fields* r, int32_t number, int64_t timestamp, int64_t now_ms
    ) noexcept:
        if r.offset_delta != number:
            return OUT_OF_ORDER
        if not (self.log_append_time or self.allows(timestamp, now_ms)):
            return TIMESTAMP
        return NO_KEY if self.compact and r.key_length < 0 else FINE


def read_batch(batch not None):
    """Read the batch at the beginning of a buffer: compute its CRC, and read its records unless they are
    compressed. Only the header is copied."""
    cdef IncomingBatch incoming = IncomingBatch.__new__(IncomingBatch)
    incoming.read(batch)
    return incoming
