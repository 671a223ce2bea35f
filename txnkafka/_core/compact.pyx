"""Compacts one batch: collects its keys, selects the records to keep, and builds the batch of those.

A batch is passed as its header, the 61 bytes of magic 2, and its decompressed records. The output is, byte
for byte, what Kafka's cleaner writes for the same records without compression: offsets, sequences, producer
and last offset stay; the largest timestamp is that of the kept records; times are relative to the first kept
record, or to the delete horizon if there is one (KIP-534).
Source: ``MemoryRecords.filterTo``, ``Cleaner.shouldRetainRecord``.
"""
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
from libc.stdint cimport INT32_MAX, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from txnkafka._core.batch_header cimport (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    BATCH_LENGTH,
    CRC,
    HEADER_SIZE,
    KNOWN_ATTRIBUTES,
    LAST_OFFSET_DELTA,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_2,
    MAX_TIMESTAMP,
    RECORDS_COUNT,
)
from txnkafka._core.bytes cimport load_i16, load_i32, load_i64, store_i16, store_i32, store_i64, store_u32
from txnkafka._core.crc32c cimport crc32c_of, crc_initialize
from txnkafka._core.offset_map cimport OffsetMap
from txnkafka._core.record cimport RECORD_COUNT, read_record, record_fields

from txnkafka.errors import CorruptRecordError, MessageTooLargeError

cdef extern from "varint.h" nogil:
    uint64_t zigzag_of(int64_t v)
    uint64_t varint_size(uint64_t z)
    uint8_t* put_varint(uint8_t* p, uint64_t z)

crc_initialize()

cdef enum:
    GROWTH = 24                 # by how much a record may grow: every varint before the key at its longest


cdef class Batch:
    """A header and its records, in memory that belongs to another object."""

    cdef const uint8_t[::1] header, records
    cdef int64_t base_offset, base_timestamp, max_timestamp
    cdef int32_t count, last_delta, previous_delta
    cdef int16_t attributes

    def __cinit__(self, const uint8_t[::1] header not None, const uint8_t[::1] records not None):
        if header.shape[0] < HEADER_SIZE or header[MAGIC] != MAGIC_2:
            raise ValueError(f"a header of magic 2 has {HEADER_SIZE} bytes")
        self.header, self.records = header, records
        self.base_offset = load_i64(&header[BASE_OFFSET])
        self.attributes = load_i16(&header[ATTRIBUTES])
        self.base_timestamp = load_i64(&header[BASE_TIMESTAMP])
        self.max_timestamp = load_i64(&header[MAX_TIMESTAMP])
        self.count = load_i32(&header[RECORDS_COUNT])
        self.last_delta = load_i32(&header[LAST_OFFSET_DELTA])

    cdef const uint8_t* begin(self) noexcept:
        return &self.records[0] if self.records.shape[0] else NULL

    cdef const uint8_t* next(self, const uint8_t* p, record_fields* r, int32_t number) except NULL:
        """Read record ``number`` at p into r; returns the position after it."""
        cdef const uint8_t* end = self.begin() + self.records.shape[0]
        cdef int error = RECORD_COUNT
        cdef const uint8_t* stop = NULL
        if p != NULL and p < end:
            stop = read_record(p, end, end, r, NULL, &error)
        if stop == NULL:
            raise CorruptRecordError(f"record {number} of {self.count} in the batch is damaged")
        if number + 1 == self.count and stop != end:
            raise CorruptRecordError(f"bytes are left after the {self.count} records of the batch")
        if number == 0:
            self.previous_delta = -1
        if not self.previous_delta < r.offset_delta <= self.last_delta:
            # a later record of another batch may have this offset: dropping one would lose the other
            raise CorruptRecordError(
                f"record {number} of the batch has offset delta {r.offset_delta}, which is not between "
                f"{self.previous_delta + 1} and {self.last_delta}"
            )
        self.previous_delta = r.offset_delta
        return stop

    cdef int64_t timestamp(self, const record_fields* r) noexcept:
        if self.attributes & ATTRIBUTE_LOG_APPEND_TIME:
            return self.max_timestamp
        return <int64_t>(<uint64_t>self.base_timestamp + <uint64_t>r.timestamp_delta)


def note_keys(OffsetMap keys not None, header not None, records not None, *, int64_t start_offset=0):
    """Add the offsets of a batch's keyed records from ``start_offset`` on to ``keys``, whose
    ``latest_offset`` is moved to the last one added; False when there was no room for another key. Raises
    CorruptRecordError."""
    cdef Batch batch = Batch(header, records)
    cdef const uint8_t* p = batch.begin()
    cdef record_fields r
    cdef int64_t offset
    cdef int32_t i
    for i in range(batch.count):
        p = batch.next(p, &r, i)
        offset = batch.base_offset + r.offset_delta
        if r.key_length >= 0 and offset >= start_offset and offset >= 0:
            if not keys.put_key(r.key, r.key_length, offset):
                return False
            keys.latest_offset = offset
    return True


cdef class Survivors:
    """The records of one batch to keep, and their number; ``first_offset`` and ``last_offset`` are -1 without
    any. Valid as long as the batch's memory."""

    cdef Batch batch
    cdef bytearray mask
    cdef readonly int32_t kept, dropped
    cdef readonly bint has_tombstone
    cdef readonly int64_t first_offset, last_offset
    cdef int64_t first_timestamp, latest_timestamp

    cdef int choose(self, OffsetMap keys, bint keep_tombstones) except -1:
        cdef const uint8_t* p = self.batch.begin()
        cdef record_fields r
        cdef int64_t offset
        cdef int32_t i
        self.first_offset = self.last_offset = self.latest_timestamp = self.first_timestamp = -1
        if self.batch.count < 0 or self.batch.count > self.batch.records.shape[0]:
            size = self.batch.records.shape[0]
            raise CorruptRecordError(f"{self.batch.count} records do not fit into {size} bytes")
        self.mask = PyByteArray_FromStringAndSize(NULL, self.batch.count)
        cdef uint8_t* mask = <uint8_t*>PyByteArray_AS_STRING(self.mask)
        for i in range(self.batch.count):
            p = self.batch.next(p, &r, i)
            offset = self.batch.base_offset + r.offset_delta
            mask[i] = keys is None or survives(keys, offset, &r, keep_tombstones)
            if mask[i]:
                self.keep(&r)
        self.dropped = self.batch.count - self.kept
        return 0

    cdef void keep(self, const record_fields* r) noexcept:
        cdef int64_t timestamp = self.batch.timestamp(r)
        if self.kept == 0:
            self.first_timestamp = timestamp
            self.first_offset = self.batch.base_offset + r.offset_delta
        self.last_offset = self.batch.base_offset + r.offset_delta
        self.latest_timestamp = max(self.latest_timestamp, timestamp)
        self.has_tombstone = self.has_tombstone or r.value_length < 0
        self.kept += 1

    def build(self, *, delete_horizon=None, base_offset=None, last_offset=None):
        """Build the uncompressed batch of the kept records. ``base_offset`` and ``last_offset`` default to
        those of the original batch; ``delete_horizon`` is in milliseconds."""
        cdef Batch batch = self.batch
        cdef int64_t base = batch.base_offset if base_offset is None else base_offset
        cdef int64_t timestamp = self.first_timestamp if delete_horizon is None else delete_horizon
        cdef int64_t bound = HEADER_SIZE + batch.records.shape[0] + <int64_t>GROWTH * self.kept
        if bound > INT32_MAX:
            size = batch.records.shape[0]
            raise MessageTooLargeError(f"a batch of {size} bytes is too large to be compacted")
        cdef bytearray built = PyByteArray_FromStringAndSize(NULL, <Py_ssize_t>bound)
        cdef uint8_t* p = <uint8_t*>PyByteArray_AS_STRING(built)
        cdef uint8_t* end = self.write(p + HEADER_SIZE, base, timestamp)
        cdef int32_t written = <int32_t>(end - p)
        memcpy(p, &batch.header[0], HEADER_SIZE)
        store_i64(p, base)
        store_i32(p + BATCH_LENGTH, written - LOG_OVERHEAD)
        store_i16(p + ATTRIBUTES, self.attributes(delete_horizon is not None))
        if last_offset is None:
            last_offset = batch.base_offset + load_i32(&batch.header[LAST_OFFSET_DELTA])
        store_i32(p + LAST_OFFSET_DELTA, <int32_t>(last_offset - base))
        store_i64(p + BASE_TIMESTAMP, timestamp)
        if not batch.attributes & ATTRIBUTE_LOG_APPEND_TIME:
            store_i64(p + MAX_TIMESTAMP, self.latest_timestamp)
        store_i32(p + RECORDS_COUNT, self.kept)
        store_u32(p + CRC, crc32c_of(p + ATTRIBUTES, <size_t>(written - ATTRIBUTES)))
        PyByteArray_Resize(built, written)
        return built

    cdef int16_t attributes(self, bint with_horizon) noexcept:
        cdef int16_t known = self.batch.attributes & KNOWN_ATTRIBUTES
        known &= ~<int16_t>(ATTRIBUTE_CODEC | ATTRIBUTE_DELETE_HORIZON)
        return known | ATTRIBUTE_DELETE_HORIZON if with_horizon else known

    cdef uint8_t* write(self, uint8_t* to, int64_t base_offset, int64_t base_timestamp) except NULL:
        cdef const uint8_t* p = self.batch.begin()
        cdef const uint8_t* mask = <uint8_t*>PyByteArray_AS_STRING(self.mask)
        cdef record_fields r
        cdef uint64_t times, offsets, key
        cdef size_t rest
        cdef int32_t i
        for i in range(self.batch.count):
            p = self.batch.next(p, &r, i)
            if not mask[i]:
                continue
            times = zigzag_of(<int64_t>(<uint64_t>self.batch.timestamp(&r) - <uint64_t>base_timestamp))
            offsets = zigzag_of(self.batch.base_offset + r.offset_delta - base_offset)
            key = zigzag_of(max(r.key_length, -1))
            rest = <size_t>(p - r.key)          # the key, and everything after it, unchanged
            to = put_varint(to, zigzag_of(<int64_t>(
                1 + varint_size(times) + varint_size(offsets) + varint_size(key) + rest
            )))
            to[0] = 0                           # attributes are unused
            to = put_varint(put_varint(put_varint(to + 1, times), offsets), key)
            memcpy(to, r.key, rest)
            to += rest
        return to


cdef bint survives(OffsetMap keys, int64_t offset, const record_fields* r, bint keep_tombstones) except -1:
    """Return whether a record is kept: above the offsets of the map always, without a key never, else if it
    is the last one of its key."""
    if offset > keys.latest_offset:
        return True
    if r.key_length < 0 or offset < keys.find(r.key, r.key_length):
        return False
    return keep_tombstones or r.value_length >= 0


def survivors(header not None, records not None, OffsetMap keys=None, *, bint keep_tombstones=True):
    """Select the records of a batch that compaction keeps; without ``keys`` all of them. Raises
    CorruptRecordError."""
    cdef Survivors chosen = Survivors.__new__(Survivors)
    chosen.batch = Batch(header, records)
    chosen.choose(keys, keep_tombstones)
    return chosen
