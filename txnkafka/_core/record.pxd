# One record of a magic 2 batch, as record.h reads it.
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "record.h" nogil:
    enum:
        MIN_RECORD_SIZE
        RECORD_OK
        RECORD_LENGTH
        RECORD_FIELD
        RECORD_HEADERS
        RECORD_HEADER_KEY
        RECORD_SIZE
        RECORD_COUNT
        RECORD_TRAILING
        RECORD_MANY_HEADERS

    ctypedef struct record_fields "struct record_fields":
        int64_t timestamp_delta
        int32_t offset_delta, key_length, value_length, header_count
        const uint8_t* key

    const uint8_t* read_record(const uint8_t* p, const uint8_t* end, const uint8_t* limit, record_fields* r,
                               void* headers, int* error)
