# Loads, stores and varints. No function reads past the readable bytes: fixed-width loads are called only
# after a size check, varint readers take the end pointer.
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from * nogil:
    """
    #if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    #error "txnkafka supports little-endian machines only"
    #endif
    """
    uint16_t bswap16 "__builtin_bswap16"(uint16_t)
    uint32_t bswap32 "__builtin_bswap32"(uint32_t)
    uint64_t bswap64 "__builtin_bswap64"(uint64_t)


cdef inline int16_t load_i16(const uint8_t* p) noexcept nogil:
    cdef uint16_t v
    memcpy(&v, p, 2)
    return <int16_t>bswap16(v)


cdef inline uint32_t load_u32(const uint8_t* p) noexcept nogil:
    cdef uint32_t v
    memcpy(&v, p, 4)
    return bswap32(v)


cdef inline int32_t load_i32(const uint8_t* p) noexcept nogil:
    return <int32_t>load_u32(p)


cdef inline int64_t load_i64(const uint8_t* p) noexcept nogil:
    cdef uint64_t v
    memcpy(&v, p, 8)
    return <int64_t>bswap64(v)


cdef inline void store_i16(uint8_t* p, int16_t value) noexcept nogil:
    cdef uint16_t v = bswap16(<uint16_t>value)
    memcpy(p, &v, 2)


cdef inline void store_u32(uint8_t* p, uint32_t value) noexcept nogil:
    cdef uint32_t v = bswap32(value)
    memcpy(p, &v, 4)


cdef inline void store_i32(uint8_t* p, int32_t value) noexcept nogil:
    store_u32(p, <uint32_t>value)


cdef inline void store_i64(uint8_t* p, int64_t value) noexcept nogil:
    cdef uint64_t v = bswap64(<uint64_t>value)
    memcpy(p, &v, 8)


cdef extern from "varint.h" nogil:
    # Both return the position after the varint, or NULL when it is cut off by `end` or too long (more than 5
    # or 10 bytes, org.apache.kafka.common.utils.ByteUtils).
    const uint8_t* read_varint(const uint8_t* p, const uint8_t* end, int32_t* value)
    const uint8_t* read_varlong(const uint8_t* p, const uint8_t* end, int64_t* value)
