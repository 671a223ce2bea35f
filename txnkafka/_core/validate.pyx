"""One batch that somebody wants appended: its header, its CRC and every record, looked at in one pass.

Nothing is decided here. What a broker refuses, and in which order, is decided by
``storage/log/log_validator.py``; this module tells what there is. Rules of a record are those of the full
reader (``record.h``).
"""
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from txnkafka._core.batch_entry cimport MAX_SIZE, BatchEntry, batch_crc, last_offset_delta, read_fields
from txnkafka._core.batch_header cimport (
    ATTRIBUTE_CODEC,
    BASE_OFFSET,
    BATCH_LENGTH,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_0,
    MAGIC_2,
    MIN_FRAME,
    MIN_SIZE_0,
)
from txnkafka._core.bytes cimport load_i32, load_i64
from txnkafka._core.crc32c cimport crc_initialize
from txnkafka._core.gil cimport LARGE
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

_REASONS = {
    RECORD_OK: "",
    RECORD_LENGTH: "its length is negative or reaches past the end of the batch",
    RECORD_FIELD: "a field does not fit into it",
    RECORD_HEADERS: "its header count is negative or larger than the record",
    RECORD_HEADER_KEY: "a header key has a negative length",
    RECORD_SIZE: "it is longer than its fields",
    RECORD_COUNT: "the batch ends before it",
    RECORD_TRAILING: "bytes are left behind the last one",
}


cdef class BatchFields:
    """A magic 2 batch as its header has it, and what a walk over its records found.

    ``problem`` says why the bytes are no batch, else it is empty. ``crc_holds`` and the fields of the header
    are set when they are. Of records, after a walk: ``record_problem`` with the number of the first
    ``bad_record``; ``keyless`` and ``out_of_order``, the number of the first record without a key and of the
    first whose offset delta is not its number, -1 for none; ``earliest_timestamp`` (-1s left out, -1 when
    there are no others) and ``latest_timestamp``.
    """

    cdef BatchEntry entry
    cdef readonly int64_t earliest_timestamp, latest_timestamp
    cdef readonly int32_t bad_record, keyless, out_of_order
    cdef readonly bint crc_holds
    cdef readonly str problem, record_problem

    @property
    def base_offset(self):
        return self.entry.base_offset

    @property
    def last_offset_delta(self):
        return last_offset_delta(&self.entry)

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
    def record_count(self):
        return self.entry.count

    @property
    def size(self):
        return self.entry.size

    @property
    def attributes(self):
        return self.entry.attributes

    @property
    def magic(self):
        return self.entry.magic

    cdef int read(self, const uint8_t* p, Py_ssize_t length) except -1:
        cdef int64_t size
        self.problem = self.record_problem = ""
        self.bad_record = self.keyless = self.out_of_order = -1
        self.earliest_timestamp = self.latest_timestamp = -1
        if length < MIN_FRAME:
            self.problem = f"{length} bytes are no record batch"
            return 0
        size = <int64_t>load_i32(p + BATCH_LENGTH) + LOG_OVERHEAD
        self.entry.base_offset = load_i64(p + BASE_OFFSET)
        self.entry.magic = <int8_t>p[MAGIC]
        if size < LOG_OVERHEAD + MIN_SIZE_0:
            self.problem = f"the batch says it has {size} bytes, no format is as small as that"
        elif not MAGIC_0 <= self.entry.magic <= MAGIC_2:
            self.problem = f"the magic byte is {self.entry.magic}, not 0, 1 or 2"
        elif self.entry.magic < MAGIC_2:
            return 0
        elif size < HEADER_SIZE:
            self.problem = f"the batch says it has {size} bytes, its header alone has {HEADER_SIZE}"
        elif size > length:
            self.problem = f"the batch says it has {size} bytes, but {length} came"
        elif size > MAX_SIZE + LOG_OVERHEAD:
            self.problem = f"the batch says it has {size} bytes, no batch is as large as that"
        else:
            read_fields(p, &self.entry)
            self.entry.size = <int32_t>size
            self.crc_holds = checked_crc(p, &self.entry)
        return 0

    cdef int walk(self, const uint8_t* p, const uint8_t* end) except -1:
        cdef int error = RECORD_OK
        cdef int32_t i = 0
        if end - p < LARGE:
            i = walk_records(self, p, end, &error)
        else:
            with nogil:
                i = walk_records(self, p, end, &error)
        if error != RECORD_OK:
            self.bad_record = i
            self.record_problem = _REASONS[error]
        return 0


cdef bint checked_crc(const uint8_t* p, const BatchEntry* e) noexcept:
    cdef uint32_t crc
    if e.size < LARGE:
        return batch_crc(p, e.size) == e.crc
    with nogil:
        crc = batch_crc(p, e.size)
    return crc == e.crc


cdef int32_t walk_records(
    BatchFields batch, const uint8_t* p, const uint8_t* end, int* error
) noexcept nogil:
    """Number of the record where the walk ended."""
    cdef record_fields r
    cdef int32_t i, keyless = -1, out_of_order = -1
    cdef int64_t timestamp, earliest = INT64_MAX, latest = INT64_MIN
    error[0] = RECORD_OK
    for i in range(batch.entry.count):
        if p >= end:
            error[0] = RECORD_COUNT
            return i
        p = read_record(p, end, end, &r, NULL, error)
        if p == NULL:
            return i
        error[0] = RECORD_OK
        timestamp = <int64_t>(<uint64_t>batch.entry.base_timestamp + <uint64_t>r.timestamp_delta)
        if timestamp != -1:
            earliest = min(earliest, timestamp)
        latest = max(latest, timestamp)
        if r.key_length < 0 and keyless < 0:
            keyless = i
        if r.offset_delta != i and out_of_order < 0:
            out_of_order = i
    batch.keyless = keyless
    batch.out_of_order = out_of_order
    batch.latest_timestamp = latest if batch.entry.count > 0 else -1
    batch.earliest_timestamp = earliest if earliest != INT64_MAX else -1
    if p != end:
        error[0] = RECORD_TRAILING
    return batch.entry.count


def read_batch(const uint8_t[::1] data not None):
    """The batch that ``data`` begins with, its CRC checked, and its records when they are not compressed."""
    cdef BatchFields batch = BatchFields.__new__(BatchFields)
    cdef const uint8_t* p = &data[0] if data.shape[0] else NULL
    batch.read(p, data.shape[0])
    if batch.crc_holds and not batch.entry.attributes & ATTRIBUTE_CODEC:
        batch.walk(p + HEADER_SIZE, p + batch.entry.size)
    return batch


def read_records(BatchFields batch not None, const uint8_t[::1] records not None):
    """Walk over the decompressed records of a batch; what is found is noted in ``batch``."""
    cdef const uint8_t* p = &records[0] if records.shape[0] else NULL
    batch.walk(p, p + records.shape[0] if p != NULL else NULL)
