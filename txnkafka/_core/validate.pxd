# A batch before its append to a log; see validate.pyx.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t

from txnkafka._core.batch_entry cimport BatchEntry
from txnkafka._core.batch_header cimport HEADER_SIZE
from txnkafka._core.record cimport record_fields

cdef enum:
    FROM_REPLICATION = 0            # who appends; AppendOrigin takes these numbers from producer_table.pyx
    FROM_COORDINATOR = 1
    FROM_CLIENT = 2

cdef class IncomingBatch:
    cdef BatchEntry entry           # the header for the log
    cdef uint8_t[HEADER_SIZE] header
    cdef object records             # a buffer with the records from byte records_at on
    cdef Py_ssize_t records_at
    cdef bint is_readable           # whether a scan of the log finds a batch: ``entry`` is valid
    cdef int frame_fault            # a BatchFault
    cdef int record_error           # of record.h
    cdef readonly int64_t base_offset, earliest_timestamp, latest_timestamp, log_append_time
    cdef readonly Py_ssize_t received, size
    cdef readonly int32_t last_offset_delta, bad_record, keyless, out_of_order
    cdef readonly int8_t magic
    cdef readonly bint crc_holds
    cdef readonly bint is_accepted  # whether ``BatchRules.accept`` had nothing against it
    cdef int read(self, object source) except -1
    cdef void read_frame(self, const uint8_t* p) noexcept
    cdef void read_content(self, const uint8_t* p) noexcept nogil
    cdef void walk(self, const uint8_t* p, const uint8_t* end) noexcept nogil
    cdef void stamp_by(self, BatchRules rules, int64_t now_ms) noexcept
    cdef void place_at(self, int64_t base_offset, int32_t partition_leader_epoch) noexcept

cdef class BatchRules:
    cdef readonly Py_ssize_t max_message_bytes, segment_bytes
    cdef readonly bint log_append_time, compact, compresses
    cdef readonly int64_t before_max_ms, after_max_ms
    cdef IncomingBatch accept(self, object source, int origin, int64_t now_ms)
    cdef bint has_room(self, IncomingBatch batch, int64_t end_offset) noexcept
    cdef int fault_of_frame(self, IncomingBatch batch, int origin) noexcept
    cdef int fault_of_content(self, IncomingBatch batch, int origin, int64_t now_ms) noexcept
    cdef int record_fault(self, IncomingBatch batch, int64_t now_ms) noexcept
    cdef bint allows(self, int64_t timestamp, int64_t now_ms) noexcept
    cdef int fault_of(
        self, const record_fields* r, int32_t number, int64_t timestamp, int64_t now_ms
    ) noexcept
