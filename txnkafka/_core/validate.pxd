# A batch before its append to a log; see validate.pyx.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t

from txnkafka._core.batch_entry cimport BatchEntry
from txnkafka._core.batch_header cimport HEADER_SIZE

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
    cdef int read(self, object source) except -1
    cdef void read_frame(self, const uint8_t* p) noexcept
    cdef void read_content(self, const uint8_t* p) noexcept nogil
    cdef void walk(self, const uint8_t* p, const uint8_t* end) noexcept nogil
