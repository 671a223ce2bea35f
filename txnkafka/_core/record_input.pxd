# The input of the encoder: records as columns, or as Python tuples; see record_input.pyx.
from libc.stdint cimport int64_t, uint8_t

cdef extern from "encode_input.h" nogil:
    ctypedef struct encode_field "struct encode_field":
        const uint8_t* data
        int64_t length

    ctypedef struct encode_column "struct encode_column":
        const void* offsets
        const uint8_t* data
        const uint8_t* validity
        int64_t size
        int wide
        const encode_field* fields

    ctypedef struct encode_input "struct encode_input":
        encode_column keys
        encode_column values
        encode_column header_keys
        encode_column header_values
        const int64_t* timestamps
        const int64_t* offsets
        const void* header_offsets
        int wide_header_offsets
        int64_t header_count
        int64_t start
        int64_t stop
        int64_t base_offset
        int64_t base_timestamp

cdef class RecordInput:
    cdef encode_input input
    cdef Py_ssize_t count
    cdef list kept                  # owners of the memory of the pointers
    cdef str explain(self, int error, Py_ssize_t record)

cdef class InputColumns(RecordInput):
    pass

cdef class InputRecords(RecordInput):
    cdef tuple records
    cdef encode_field* fields       # keys of all records, then their values
    cdef int64_t* numbers           # timestamps, then the first header of each record
    cdef encode_field* header_keys
    cdef encode_field* header_values
    cdef Py_ssize_t header_capacity

    cdef int take_records(self) except -1
    cdef int take_headers(self, Py_ssize_t i, object headers) except -1
    cdef int take_header(self, Py_ssize_t i, object header) except -1
    cdef int take_bytes(self, encode_field* field, object content, str what, Py_ssize_t i) except -1
