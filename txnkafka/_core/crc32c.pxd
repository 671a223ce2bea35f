from libc.stdint cimport uint8_t, uint32_t

cdef extern from "crc32c.h" nogil:
    ctypedef uint32_t (*crc32c_function)(uint32_t value, const uint8_t* p, size_t n) noexcept nogil
    crc32c_function crc_chosen
    int crc_implementation_count
    void crc_initialize()


# Each extension that computes CRCs has its own copy of the tables: it calls crc_initialize() when it is
# loaded.
cdef inline uint32_t crc32c_of(const uint8_t* p, size_t n) noexcept nogil:
    return crc_chosen(0, p, n)
