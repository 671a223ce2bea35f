# One entry per batch, as the header says it; see scan.pyx.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t

cdef enum:
    NO_CONTROL_TYPE = -1        # data batch, or a control batch whose key cannot be read
    CONTROL_ABORT = 0
    CONTROL_COMMIT = 1
    BAD_MAGIC = 127             # the CRC holds for a magic 2 batch, but the magic byte is not 0, 1 or 2

cdef enum:
    ATTRIBUTE_CODEC = 0x07
    ATTRIBUTE_LOG_APPEND_TIME = 0x08
    ATTRIBUTE_TRANSACTIONAL = 0x10
    ATTRIBUTE_CONTROL = 0x20
    ATTRIBUTE_DELETE_HORIZON = 0x40

cdef enum Stop:                 # why the walk over batches ended
    AT_END
    TORN
    ZEROS
    GARBAGE
    NO_MEMORY

cdef struct BatchEntry:
    int64_t position            # of the batch's first byte in the file
    int64_t base_offset         # magic 0 and 1: of the wrapper, that is, of its last record
    int64_t last_offset
    int64_t base_timestamp      # with the delete horizon bit: the horizon
    int64_t max_timestamp
    int64_t producer_id
    int32_t size                # whole batch, with offset and length fields
    int32_t count               # magic 0 and 1: 1, or -1 for a compressed wrapper
    int32_t base_sequence
    int32_t partition_leader_epoch
    uint32_t crc
    int32_t coordinator_epoch   # of an end transaction marker, else -1
    int16_t producer_epoch
    int16_t attributes
    int16_t control_type
    int8_t magic
    int8_t crc_wrong            # of a control batch; others are checked when they are decoded

cdef class BatchIndex:
    cdef BatchEntry* entries
    cdef Py_ssize_t count
    cdef Py_ssize_t capacity
    cdef Py_ssize_t exports         # columns handed out and not released
    cdef readonly object end_position
    cdef readonly str stop
    cdef readonly str stop_reason
    cdef int reserve(self, Py_ssize_t more) except -1

# The entry of the batch at p, without its position; AT_END when there is a whole one.
cdef Stop read_entry(const uint8_t* p, const uint8_t* end, BatchEntry* e) noexcept nogil
