"""One batch that somebody wants appended: its header, its CRC and every record, looked at in one pass.

Nothing is decided here. What a broker refuses, and in which order, is decided by
``storage/log/log_validator.py``; this module tells what there is. Rules of a record are those of the full
reader (``record.h``).
"""
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t

from txnkafka._core.batch_header cimport (
    ATTRIBUTES,
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    BATCH_LENGTH,
    CRC,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LEADER_EPOCH,
    LOG_OVERHEAD,
    MAGIC,
    MAX_TIMESTAMP,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS_COUNT,
)
from txnkafka._core.bytes cimport load_i16, load_i32, load_i64, load_u32
from txnkafka._core.crc32c cimport crc32c_of, crc_initialize
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

cdef enum:
    LEGACY_HEADER_SIZE = 17         # up to and with the magic byte
    SMALLEST = 26                   # a record of magic 0 without key and value
    CODEC_MASK = 7
    TIMESTAMP_TYPE_BIT = 8

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

    cdef readonly int64_t base_offset, base_timestamp, max_timestamp, producer_id
    cdef readonly int64_t earliest_timestamp, latest_timestamp
    cdef readonly int32_t partition_leader_epoch, last_offset_delta, base_sequence, record_count
    cdef readonly int32_t bad_record, keyless, out_of_order
    cdef readonly Py_ssize_t size
    cdef readonly int16_t attributes, producer_epoch
    cdef readonly int8_t magic
    cdef readonly bint crc_holds
    cdef readonly str problem, record_problem

    cdef int read(self, const uint8_t* p, Py_ssize_t length) except -1:
        self.problem = self.record_problem = ""
        self.bad_record = self.keyless = self.out_of_order = -1
        self.earliest_timestamp = self.latest_timestamp = -1
        if length < LEGACY_HEADER_SIZE:
            self.problem = f"{length} bytes are no record batch"
            return 0
        self.base_offset = load_i64(p)
        self.size = <Py_ssize_t>load_i32(p + BATCH_LENGTH) + LOG_OVERHEAD
        self.magic = <int8_t>p[MAGIC]
        if self.size < SMALLEST:
            self.problem = f"the batch says it has {self.size} bytes, no format is as small as that"
        elif not 0 <= self.magic <= 2:
            self.problem = f"the magic byte is {self.magic}, not 0, 1 or 2"
        elif self.magic < 2:
            return 0
        elif self.size < HEADER_SIZE:
            self.problem = f"the batch says it has {self.size} bytes, its header alone has 61"
        elif self.size > length:
            self.problem = f"the batch says it has {self.size} bytes, but {length} came"
        else:
            self.read_header(p)
        return 0

    cdef void read_header(self, const uint8_t* p) noexcept:
        self.partition_leader_epoch = load_i32(p + LEADER_EPOCH)
        self.crc_holds = crc32c_of(p + ATTRIBUTES, self.size - ATTRIBUTES) == load_u32(p + CRC)
        self.attributes = load_i16(p + ATTRIBUTES)
        self.last_offset_delta = load_i32(p + LAST_OFFSET_DELTA)
        self.base_timestamp = load_i64(p + BASE_TIMESTAMP)
        self.max_timestamp = load_i64(p + MAX_TIMESTAMP)
        self.producer_id = load_i64(p + PRODUCER_ID)
        self.producer_epoch = load_i16(p + PRODUCER_EPOCH)
        self.base_sequence = load_i32(p + BASE_SEQUENCE)
        self.record_count = load_i32(p + RECORDS_COUNT)

    cdef int walk(self, const uint8_t* p, const uint8_t* end) except -1:
        cdef int error = RECORD_OK
        cdef int32_t i = 0
        with nogil:
            i = walk_records(self, p, end, &error)
        if error != RECORD_OK:
            self.bad_record = i
            self.record_problem = _REASONS[error]
        return 0


cdef int32_t walk_records(
    BatchFields batch, const uint8_t* p, const uint8_t* end, int* error
) noexcept nogil:
    """Number of the record where the walk ended."""
    cdef record_fields r
    cdef int32_t i, keyless = -1, out_of_order = -1
    cdef int64_t timestamp, earliest = INT64_MAX, latest = INT64_MIN
    error[0] = RECORD_OK
    for i in range(batch.record_count):
        if p >= end:
            error[0] = RECORD_COUNT
            return i
        p = read_record(p, end, end, &r, NULL, error)
        if p == NULL:
            return i
        error[0] = RECORD_OK
        timestamp = <int64_t>(<uint64_t>batch.base_timestamp + <uint64_t>r.timestamp_delta)
        if timestamp != -1:
            earliest = min(earliest, timestamp)
        latest = max(latest, timestamp)
        if r.key_length < 0 and keyless < 0:
            keyless = i
        if r.offset_delta != i and out_of_order < 0:
            out_of_order = i
    batch.keyless = keyless
    batch.out_of_order = out_of_order
    batch.latest_timestamp = latest if batch.record_count > 0 else -1
    batch.earliest_timestamp = earliest if earliest != INT64_MAX else -1
    if p != end:
        error[0] = RECORD_TRAILING
    return batch.record_count


def read_batch(const uint8_t[::1] data not None):
    """The batch that ``data`` begins with, its CRC checked, and its records when they are not compressed."""
    cdef BatchFields batch = BatchFields.__new__(BatchFields)
    cdef const uint8_t* p = &data[0] if data.shape[0] else NULL
    batch.read(p, data.shape[0])
    if not batch.problem and batch.magic == 2 and batch.crc_holds and not batch.attributes & CODEC_MASK:
        batch.walk(p + HEADER_SIZE, p + batch.size)
    return batch


def read_records(BatchFields batch not None, const uint8_t[::1] records not None):
    """Walk over the decompressed records of a batch; what is found is noted in ``batch``."""
    cdef const uint8_t* p = &records[0] if records.shape[0] else NULL
    batch.walk(p, p + records.shape[0] if p != NULL else NULL)
