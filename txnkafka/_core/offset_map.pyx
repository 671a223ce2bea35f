"""The offset of each key's last record, in bounded memory, for compaction.

A slot has 40 bytes. It contains a key of up to 31 bytes itself, and of a longer one the first 31 bytes of its
SHA-256. So two keys are never confused: short ones are compared, and two long ones with the same digest
cannot be constructed. (Kafka keeps 16 bytes of MD5, for which they can.) The hash that finds slots is seeded
at random in every process, so that colliding keys cannot be chosen either.

Memory is allocated as keys are added. Source: ``SkimpyOffsetMap``.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from hashlib import sha256
from os import urandom

cdef extern from "folded_product.h" nogil:
    uint64_t folded_product(uint64_t a, uint64_t b)

cdef extern from * nogil:
    """
    static inline size_t scaled(uint64_t hash, size_t room) {
        return (size_t)(((unsigned __int128)hash * room) >> 64);
    }
    """
    size_t scaled(uint64_t hash, size_t room)

cdef enum:
    LONGEST = 31                # of a key that is stored in its slot
    DIGEST = 255                # in the place of the length
    FIRST_ROOM = 1024

cdef uint64_t[4] SEEDS          # different in every process, whatever PYTHONHASHSEED is
SEEDS[0], SEEDS[1], SEEDS[2], SEEDS[3] = [
    <uint64_t>int.from_bytes(urandom(8), "little") | 1 for _ in range(4)
]


cdef int take_key(uint64_t* to, const uint8_t* key, int32_t length) except -1:
    """Write the content of the slot for a key."""
    cdef uint8_t* p = <uint8_t*>to
    if length <= LONGEST:
        memset(p, 0, 32)
        p[0] = <uint8_t>length
        memcpy(p + 1, key, <size_t>length)
        return 0
    cdef bytes digest = sha256(<const uint8_t[:length]>key).digest()
    p[0] = DIGEST
    memcpy(p + 1, PyBytes_AS_STRING(digest), LONGEST)
    return 0


cdef size_t place_of(const Slot* slots, size_t room, const uint64_t* key) noexcept nogil:
    """Return the slot of a key, or the free slot for it."""
    cdef uint64_t hash = folded_product(
        folded_product(key[0] ^ SEEDS[0], key[1] ^ SEEDS[1]) ^ SEEDS[3],
        folded_product(key[2] ^ SEEDS[2], key[3] ^ SEEDS[3]) ^ SEEDS[0],
    )
    cdef size_t i = scaled(hash, room)
    while slots[i].offset >= 0 and memcmp(slots[i].key, key, 32) != 0:
        i += 1
        if i == room:
            i = 0
    return i


cdef Slot* free_slots(size_t room) except NULL:
    cdef size_t i
    cdef Slot* slots = <Slot*>malloc(room * sizeof(Slot))
    if slots == NULL:
        raise MemoryError(f"no memory for the offsets of {room} keys")
    for i in range(room):
        slots[i].offset = -1
    return slots


cdef class OffsetMap:
    """Keys and their last offsets in at most ``memory_bytes``, of which the share ``load_factor`` is filled.

    ``latest_offset`` is the last offset that was read from the log, -1 at first. Raises ValueError when there
    is no room for a single key.
    """

    def __cinit__(self, size_t memory_bytes, double load_factor=0.9):
        self.most_room = memory_bytes // sizeof(Slot)
        if self.most_room < 2 or not 0 < load_factor <= 1:
            raise ValueError(
                f"{memory_bytes} bytes filled up to {load_factor} are too little for a single key: "
                "log.cleaner.dedupe.buffer.size must be larger"
            )
        cdef size_t filled = <size_t>(self.most_room * load_factor)
        self.most = min(max(filled, <size_t>1), self.most_room - 1)
        self.room = min(self.most_room, <size_t>FIRST_ROOM)
        self.slots = free_slots(self.room)
        self.latest_offset = -1

    def __dealloc__(self):
        free(self.slots)

    def __len__(self):
        return self.count

    def __sizeof__(self):
        return object.__sizeof__(self) + self.room * sizeof(Slot)

    @property
    def capacity(self):
        """The maximum number of keys."""
        return self.most

    cdef int64_t find(self, const uint8_t* key, int32_t length) except -2:
        cdef uint64_t[4] wanted
        take_key(wanted, key, length)
        return self.slots[place_of(self.slots, self.room, wanted)].offset

    cdef int put_key(self, const uint8_t* key, int32_t length, int64_t offset) except -1:
        """Put the offset of a key; returns 0 when there is no room for another key."""
        cdef uint64_t[4] wanted
        take_key(wanted, key, length)
        cdef size_t i = place_of(self.slots, self.room, wanted)
        if self.slots[i].offset < 0:
            if self.count >= self.most:
                return 0
            if self.room < self.most_room and self.count >= self.room // 4 * 3:
                self.grow()
                i = place_of(self.slots, self.room, wanted)
            memcpy(self.slots[i].key, wanted, 32)
            self.count += 1
        self.slots[i].offset = offset
        return 1

    cdef int grow(self) except -1:
        cdef size_t room = min(2 * self.room, self.most_room), i
        cdef Slot* slots = free_slots(room)
        for i in range(self.room):
            if self.slots[i].offset >= 0:
                slots[place_of(slots, room, self.slots[i].key)] = self.slots[i]
        free(self.slots)
        self.slots, self.room = slots, room
        return 0

    def get(self, key not None):
        """Return the offset of a key; -1 for an unknown key."""
        cdef Py_buffer view
        PyObject_GetBuffer(key, &view, PyBUF_SIMPLE)
        try:
            return self.find(<uint8_t*>view.buf, <int32_t>view.len)
        finally:
            PyBuffer_Release(&view)

    def put(self, key not None, int64_t offset):
        """Set the offset (not negative) of a key; False when there is no room for another key."""
        cdef Py_buffer view
        if offset < 0:
            raise ValueError(f"{offset} is no offset")
        PyObject_GetBuffer(key, &view, PyBUF_SIMPLE)
        try:
            return bool(self.put_key(<uint8_t*>view.buf, <int32_t>view.len, offset))
        finally:
            PyBuffer_Release(&view)
