# The end of a segment that gets appends; see segment_writer.pyx.
from libc.stdint cimport int64_t

from txnkafka._core.validate cimport IncomingBatch


cdef class SegmentWriter:
    cdef object settings                    # the LogConfig; appends need these values:
    cdef int64_t segment_bytes, roll_ms, interval_bytes, index_bytes
    cdef object offsets, times              # the sparse indexes
    cdef bint has_index_room                # whether both had room when last checked
    cdef public object files, txn_index
    cdef public int64_t base_offset, size, created_ms, modified_ms, roll_jitter_ms
    cdef public int64_t max_timestamp, max_timestamp_offset, bytes_since_entry
    cdef public object rolling_timestamp    # None until it is known
    cdef public bint has_unsynced_bytes
    cdef bint rolls_before(self, IncomingBatch batch, int64_t end_offset, int64_t now_ms) except *
    cdef int write_batch(self, IncomingBatch batch) except -1
    cdef int note_batch(
        self, int64_t position, int64_t size, int64_t last_offset, int64_t max_timestamp
    ) except -1
