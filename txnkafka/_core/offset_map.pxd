# Keys and the offsets of their last records; see offset_map.pyx.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef struct Slot:
    uint64_t[4] key
    int64_t offset              # -1: the slot is free

cdef class OffsetMap:
    cdef Slot* slots
    cdef size_t room            # number of slots
    cdef size_t most_room       # maximum number of slots
    cdef size_t count
    cdef size_t most            # maximum number of keys
    cdef public int64_t latest_offset
    cdef int64_t find(self, const uint8_t* key, int32_t length) except -2
    cdef int put_key(self, const uint8_t* key, int32_t length, int64_t offset) except -1
    cdef int grow(self) except -1
