/* Computes the effect of changed bytes on a CRC-32C, from the change and the number of bytes after it alone.
 *
 * Without its inversions a CRC is linear over GF(2): that of (old xor change) is that of old xor that of
 * change. Each zero byte after the change multiplies its remainder by x^8, so the remainder is multiplied
 * by x^(8 n); tables contain that power for each byte of a 32-bit n. */
#ifndef TXNKAFKA_CRC32C_SHIFT_H
#define TXNKAFKA_CRC32C_SHIFT_H

#include "crc32c.h"

static uint32_t crc_byte_powers[4][256]; /* [k][b] is x^(8 b 256^k) modulo the polynomial */

static void crc_fill_shifts(void) {
    for (int k = 0; k < 4; k++) {
        uint32_t step = crc_x_power(8ull << (8 * k));
        crc_byte_powers[k][0] = 0x80000000u;
        for (int b = 1; b < 256; b++)
            crc_byte_powers[k][b] = crc_multiply(crc_byte_powers[k][b - 1], step);
    }
}

/* The number to add (xor) to the CRC of bytes that were changed by `change` (old xor new, `size` bytes),
 * with `behind` bytes between the change and the end of what the CRC covers. */
static inline uint32_t crc_of_change(const uint8_t *change, size_t size, uint32_t behind) {
    uint32_t crc = ~crc_chosen(0xffffffffu, change, size); /* begins and ends without inversion */
    for (int k = 0; k < 4; k++) {
        uint32_t byte = (behind >> (8 * k)) & 255;
        if (byte) crc = crc_multiply(crc, crc_byte_powers[k][byte]);
    }
    return crc;
}

#endif
