/* Decompression of one raw block of snappy (format_description.txt of its sources). */
#ifndef TXNKAFKA_SNAPPY_H
#define TXNKAFKA_SNAPPY_H

#include <stdint.h>
#include <string.h>

enum { SNAPPY_OVERCOPY = 16 }; /* short pieces are copied in this size where both sides have it */

/* Read the length of the content. Returns the bytes that it takes; 0 for more than five or above 32 bits. */
static inline int snappy_length(const uint8_t *in, int64_t size, uint32_t *length) {
    uint64_t value = 0;
    for (int i = 0; i < 5 && i < size; i++) {
        const uint8_t byte = in[i];
        value |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte < 0x80) {
            *length = (uint32_t)value;
            return value > UINT32_MAX ? 0 : i + 1;
        }
    }
    return 0;
}

/* Repeat the ``length`` bytes that begin ``offset`` bytes before ``out``; they may overlap the result. */
static inline void snappy_repeat(uint8_t *out, int64_t offset, int64_t length, const uint8_t *limit) {
    const uint8_t *from = out - offset, *const stop = out + length;
    if (offset >= SNAPPY_OVERCOPY && limit - stop >= SNAPPY_OVERCOPY) {
        do {
            memcpy(out, from, SNAPPY_OVERCOPY);
            out += SNAPPY_OVERCOPY;
            from += SNAPPY_OVERCOPY;
        } while (out < stop);
    } else if (offset >= 8 && limit - stop >= 8) {
        do {
            memcpy(out, from, 8);
            out += 8;
            from += 8;
        } while (out < stop);
    } else {
        while (out < stop)
            *out++ = *from++;
    }
}

/* Decompress the elements at ``in``, which must become ``length`` bytes; returns 1 if they do. Nothing is
   written outside of ``out`` and ``length``, whatever the input contains, also if it changes meanwhile. */
static int snappy_elements(const uint8_t *in, int64_t size, uint8_t *out, int64_t length) {
    const uint8_t *const end = in + size, *const begin = out, *const limit = out + length;
    while (in < end) {
        const uint8_t tag = *in++;
        int64_t count, offset;
        if ((tag & 3) == 0) {
            count = (tag >> 2) + 1;
            if (count <= SNAPPY_OVERCOPY && end - in >= SNAPPY_OVERCOPY && limit - out >= SNAPPY_OVERCOPY) {
                memcpy(out, in, SNAPPY_OVERCOPY);
                in += count;
                out += count;
                continue;
            }
            if (count > 60) {
                const int bytes = (int)count - 60;
                if (end - in < bytes)
                    return 0;
                count = 0;
                for (int i = 0; i < bytes; i++)
                    count |= (int64_t)in[i] << (8 * i);
                count++;
                in += bytes;
            }
            if (count > end - in || count > limit - out)
                return 0;
            memcpy(out, in, (size_t)count);
            in += count;
            out += count;
            continue;
        }
        if ((tag & 3) == 1) {
            if (end - in < 1)
                return 0;
            count = (tag >> 2 & 7) + 4;
            offset = (int64_t)(tag >> 5) << 8 | in[0];
            in += 1;
        } else if ((tag & 3) == 2) {
            if (end - in < 2)
                return 0;
            count = (tag >> 2) + 1;
            offset = (int64_t)in[0] | (int64_t)in[1] << 8;
            in += 2;
        } else {
            if (end - in < 4)
                return 0;
            count = (tag >> 2) + 1;
            offset = (int64_t)in[0] | (int64_t)in[1] << 8 | (int64_t)in[2] << 16 | (int64_t)in[3] << 24;
            in += 4;
        }
        if (offset == 0 || offset > out - begin || count > limit - out)
            return 0;
        snappy_repeat(out, offset, count, limit);
        out += count;
    }
    return out == limit;
}

#endif
