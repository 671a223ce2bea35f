/* CRC-32 as in gzip (reflected polynomial 0xEDB88320), eight bytes a step; magic 0 and 1 have it. */
#ifndef TXNKAFKA_LEGACY_H
#define TXNKAFKA_LEGACY_H

#include <stdint.h>
#include <string.h>

static uint32_t crc32_table[8][256];

static void fill_crc32_table(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
        crc32_table[0][i] = crc;
    }
    for (int step = 1; step < 8; step++)
        for (int i = 0; i < 256; i++) {
            const uint32_t before = crc32_table[step - 1][i];
            crc32_table[step][i] = before >> 8 ^ crc32_table[0][before & 0xff];
        }
}

static uint32_t crc32_of(const uint8_t *data, size_t size) {
    uint32_t crc = ~UINT32_C(0);
    for (; size >= 8; data += 8, size -= 8) {
        uint32_t low, high;
        memcpy(&low, data, 4);
        memcpy(&high, data + 4, 4);
        low ^= crc;
        crc = crc32_table[7][low & 0xff] ^ crc32_table[6][low >> 8 & 0xff] ^
              crc32_table[5][low >> 16 & 0xff] ^ crc32_table[4][low >> 24] ^
              crc32_table[3][high & 0xff] ^ crc32_table[2][high >> 8 & 0xff] ^
              crc32_table[1][high >> 16 & 0xff] ^ crc32_table[0][high >> 24];
    }
    for (; size > 0; data++, size--) crc = crc >> 8 ^ crc32_table[0][(crc ^ *data) & 0xff];
    return ~crc;
}

#endif
