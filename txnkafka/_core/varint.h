/* Zigzag varints as org.apache.kafka.common.utils.ByteUtils reads and writes them.
 *
 * A varint has at most 5 bytes, a varlong at most 10; non-minimal encodings are accepted, bits beyond
 * 32 or 64 are shifted out. Every reader gets the end of the readable bytes. */
#ifndef TXNKAFKA_VARINT_H
#define TXNKAFKA_VARINT_H

#include <stddef.h>
#include <stdint.h>

#define TXNKAFKA_INLINE      static inline __attribute__((always_inline, unused))
#define TXNKAFKA_LIKELY(x)   __builtin_expect(!!(x), 1)
#define TXNKAFKA_UNLIKELY(x) __builtin_expect(!!(x), 0)

TXNKAFKA_INLINE int32_t zigzag32(uint32_t v) { return (int32_t)((v >> 1) ^ (0u - (v & 1u))); }
TXNKAFKA_INLINE int64_t zigzag64(uint64_t v) { return (int64_t)((v >> 1) ^ (0ull - (v & 1ull))); }

TXNKAFKA_INLINE const uint8_t *read_varint(const uint8_t *p, const uint8_t *end, int32_t *value) {
    uint32_t v = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        if (p >= end) return NULL;
        uint32_t byte = *p++;
        v |= (byte & 0x7fu) << shift;
        if (byte < 0x80u) {
            *value = zigzag32(v);
            return p;
        }
    }
    return NULL;
}

TXNKAFKA_INLINE const uint8_t *read_varlong(const uint8_t *p, const uint8_t *end, int64_t *value) {
    uint64_t v = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (p >= end) return NULL;
        uint64_t byte = *p++;
        v |= (byte & 0x7fu) << shift;
        if (byte < 0x80u) {
            *value = zigzag64(v);
            return p;
        }
    }
    return NULL;
}

/* Writing, of numbers in zigzag form. */
TXNKAFKA_INLINE uint64_t zigzag_of(int64_t v) { return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63); }

/* The size is nine sixty-fourths of the bits, rounded up: exact from 1 to 64 bits. */
TXNKAFKA_INLINE uint64_t varint_size(uint64_t z) {
    return ((uint64_t)(64 - __builtin_clzll(z | 1)) * 9 + 64) >> 6;
}

TXNKAFKA_INLINE uint8_t *put_varint(uint8_t *p, uint64_t z) {
    for (; z >= 0x80; z >>= 7) *p++ = (uint8_t)z | 0x80;
    *p++ = (uint8_t)z;
    return p;
}

#endif
