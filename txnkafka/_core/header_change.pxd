# Changes to the header of a finished batch. The CRC does not cover base offset and leader epoch; for the
# other fields it is corrected from the change alone, because a CRC is linear: the payload is neither read nor
# trusted, and the CRC of a damaged batch stays wrong. A module that uses this calls crc_initialize() and
# crc_fill_shifts() when it is loaded.
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from txnkafka._core.batch_header cimport (
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTES,
    BASE_OFFSET,
    BATCH_LENGTH,
    CRC,
    HEADER_SIZE,
    KNOWN_ATTRIBUTES,
    LOG_OVERHEAD,
    MAX_TIMESTAMP,
    PARTITION_LEADER_EPOCH,
    RECORDS_COUNT,
)
from txnkafka._core.bytes cimport (
    load_i16,
    load_i32,
    load_i64,
    load_u32,
    store_i16,
    store_i32,
    store_i64,
    store_u32,
)

cdef extern from "crc32c_shift.h" nogil:
    void crc_fill_shifts()
    uint32_t crc_of_change(const uint8_t* change, size_t size, uint32_t behind)


cdef inline int64_t batch_size(const uint8_t* p) noexcept nogil:
    return <int64_t>load_i32(p + BATCH_LENGTH) + LOG_OVERHEAD


cdef inline void put_place(uint8_t* p, int64_t base_offset, int32_t partition_leader_epoch) noexcept nogil:
    store_i64(p + BASE_OFFSET, base_offset)
    store_i32(p + PARTITION_LEADER_EPOCH, partition_leader_epoch)


cdef inline void correct_crc(uint8_t* p, const uint8_t* before) noexcept nogil:
    """Correct the CRC for the changes of the header at ``p``; ``before`` is the header without them."""
    cdef uint8_t[RECORDS_COUNT - ATTRIBUTES] change
    cdef Py_ssize_t i
    cdef uint32_t behind = <uint32_t>(batch_size(p) - RECORDS_COUNT)
    for i in range(<Py_ssize_t>sizeof(change)):
        change[i] = before[ATTRIBUTES + i] ^ p[ATTRIBUTES + i]
    store_u32(p + CRC, load_u32(p + CRC) ^ crc_of_change(change, sizeof(change), behind))


cdef inline void put_max_timestamp(uint8_t* p, bint log_append_time, int64_t max_timestamp) noexcept nogil:
    """Set timestamp type and largest timestamp. As in Kafka, any change clears undefined attribute bits."""
    cdef uint8_t[HEADER_SIZE] before
    cdef int16_t old = load_i16(p + ATTRIBUTES)
    cdef int16_t wanted = ATTRIBUTE_LOG_APPEND_TIME if log_append_time else 0
    if old & ATTRIBUTE_LOG_APPEND_TIME == wanted and load_i64(p + MAX_TIMESTAMP) == max_timestamp:
        return
    memcpy(before, p, HEADER_SIZE)
    store_i16(p + ATTRIBUTES, (old & KNOWN_ATTRIBUTES & ~<int16_t>ATTRIBUTE_LOG_APPEND_TIME) | wanted)
    store_i64(p + MAX_TIMESTAMP, max_timestamp)
    correct_crc(p, before)
