# The arena that decoding fills; see columns.pyx for the columns.
#
# All arrays are in one C struct, so that the walk in record.h fills them directly:
# `columns.sink.offsets[i]`, `columns.sink.count` records, `columns.sink.key_nulls` and so on; values per
# batch are in `columns.runs`.
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t

cdef extern from "record.h" nogil:
    enum:
        COLUMN_SLACK

    ctypedef struct record_sink "struct record_sink":
        int64_t* offsets
        int64_t* timestamps
        # copy form: Arrow's Binary layout, count + 1 offsets
        int32_t* key_offsets
        int32_t* value_offsets
        uint8_t* key_data
        uint8_t* value_data
        # bitmaps, least significant bit first; valid only if the count of nulls is not 0
        uint8_t* key_validity
        uint8_t* value_validity
        # view form: positions in the decoded bytes, length -1 for null
        uint32_t* key_positions
        uint32_t* value_positions
        int32_t* key_lengths
        int32_t* value_lengths
        # headers (copied in both forms): those of record i are header_offsets[i] .. header_offsets[i + 1]
        int32_t* header_offsets
        int32_t* header_key_offsets
        int32_t* header_value_offsets
        uint8_t* header_key_data
        uint8_t* header_value_data
        uint8_t* header_value_validity
        size_t record_capacity
        size_t header_capacity
        int32_t max_headers         # of one record
        size_t count
        size_t header_count
        size_t key_nulls
        size_t value_nulls
        size_t header_value_nulls

    # Mark entry i of a validity bitmap as null and count it.
    void clear_validity(uint8_t* validity, size_t capacity, size_t* nulls, size_t i)

cdef struct RunColumns:             # one entry per batch that gave records
    int32_t* ends                   # number of records up to the end of the batch
    int32_t* leader_epochs          # -1: none
    int8_t* timestamp_types         # -1, 0, 1 as TimestampType
    Py_ssize_t count
    Py_ssize_t capacity

cdef class RecordColumns:
    cdef record_sink sink
    cdef RunColumns runs
    cdef Py_ssize_t data_capacity
    cdef readonly bint with_headers
    cdef readonly bint views
    cdef Py_ssize_t users           # see atomic.pxd
    cdef Py_ssize_t fillings        # number of fillings and resets

    # Reserve room for more records, bytes (keys, values and headers together) and batches.
    cdef int reserve(self, Py_ssize_t records, Py_ssize_t data_bytes, Py_ssize_t batches) except -1
    # Begin and end a call that fills the arena; acquire raises BufferError while the arena has readers or is
    # being filled.
    cdef int acquire(self) except -1
    cdef void release(self) noexcept
    # Keep the arena unchanged until drop(&users); raises BufferError while another thread fills it.
    cdef int hold(self) except -1
    # Close the run of a batch, if records were added since the last one.
    cdef void end_run(self, int32_t leader_epoch, int8_t timestamp_type) noexcept nogil

    cdef int grow_records(self, Py_ssize_t capacity) except -1
    cdef int grow_data(self, Py_ssize_t capacity) except -1
    cdef int grow_headers(self, Py_ssize_t capacity) except -1
    cdef int grow_runs(self, Py_ssize_t capacity) except -1
    cdef int need(self, bint condition, str advice) except -1
