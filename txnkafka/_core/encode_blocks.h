/* Writes many small records at once, the fast path of encode.h.
 *
 * Bulk writers mostly have int32 offsets, columns without nulls (or with nothing else), no headers, no
 * gaps between offsets. In such plain columns, a record is small if its lengths and timestamp delta fit
 * into two bytes and its offset delta into three. Small records are processed in blocks, by loops without
 * branches, which the compiler vectorizes; one word contains everything before a key. */
#ifndef TXNKAFKA_ENCODE_BLOCKS_H
#define TXNKAFKA_ENCODE_BLOCKS_H

#include "encode_input.h"
#include "record.h"

#define ENCODE_SLACK  160 /* bytes after a record that the fast path may overwrite */
#define SMALL_FIELD   2048
#define SMALL_DELTA   (1 << 14)
#define SMALL_RECORDS (1 << 20)
#define SMALL_BLOCK   64

struct small_block { /* of each record: positions and lengths of key and value, varints as bytes in memory */
    uint32_t key_at[SMALL_BLOCK], value_at[SMALL_BLOCK], key[SMALL_BLOCK], value[SMALL_BLOCK];
    uint32_t length_varint[SMALL_BLOCK], timestamp_varint[SMALL_BLOCK];
    uint32_t key_varint[SMALL_BLOCK], value_varint[SMALL_BLOCK], size[SMALL_BLOCK];
    int64_t count;
    uint32_t offset_bytes, all_small;
    int32_t latest; /* largest timestamp delta */
};

/* The first blocks of the measuring pass, so that batches of usual size are read once. */
#define KEPT_BLOCKS 4
struct kept_blocks {
    struct small_block blocks[KEPT_BLOCKS];
    int64_t count;
};

/* Copy exactly n bytes; a short copy needs no call. */
TXNKAFKA_INLINE void copy_exactly(uint8_t *to, const uint8_t *from, size_t n) {
    if (n > 32 || n < 4) {
        if (n) memcpy(to, from, n); /* a column without bytes may have no memory */
    } else if (n >= 16) {
        uint64_t a[2], b[2];
        memcpy(a, from, 16);
        memcpy(b, from + n - 16, 16);
        memcpy(to, a, 16);
        memcpy(to + n - 16, b, 16);
    } else {
        size_t half = n >= 8 ? 8 : 4;
        uint64_t a, b;
        memcpy(&a, from, half);
        memcpy(&b, from + n - half, half);
        memcpy(to, &a, half);
        memcpy(to + n - half, &b, half);
    }
}

TXNKAFKA_INLINE int64_t offset_at(const void *offsets, int wide, int64_t i) {
    return wide ? ((const int64_t *)offsets)[i] : ((const int32_t *)offsets)[i];
}

/* Offsets and bytes of a column of nulls. */
static const uint32_t no_offsets[SMALL_BLOCK + 1];
static const uint8_t no_bytes[COLUMN_SLACK];

static inline int is_plain_column(const struct encode_column *column, int64_t start, int64_t stop) {
    if (column->fields || column->validity || column->wide) return 0;
    return !column->offsets || (offset_at(column->offsets, 0, start) >= 0 &&
                                offset_at(column->offsets, 0, stop) <= column->size);
}

static inline int is_plain(const struct encode_input *input) {
    return is_plain_column(&input->keys, input->start, input->stop) &&
           is_plain_column(&input->values, input->start, input->stop) && !input->offsets &&
           !input->header_offsets;
}

/* Encode a number below SMALL_DELTA as a varint of one or two bytes, in little-endian order. */
TXNKAFKA_INLINE uint32_t two_bytes(uint32_t z) {
    return z + (z & ~0x7fu) + ((int32_t)z > 0x7f ? 0x80u : 0);
}

/* Measure the records from number n on, up to the next block or the next size of offset deltas. */
TXNKAFKA_INLINE void take_block(const struct encode_input *input, int64_t n, struct small_block *block) {
    const uint32_t *keys = (const uint32_t *)input->keys.offsets;
    const uint32_t *values = (const uint32_t *)input->values.offsets;
    const int64_t *timestamps = input->timestamps + input->start + n;
    const uint64_t base = (uint64_t)input->base_timestamp;
    const uint32_t no_key = !keys, no_value = !values;
    keys = keys ? keys + input->start + n : no_offsets;
    values = values ? values + input->start + n : no_offsets;
    const int32_t offset_bytes = (int32_t)varint_size((uint64_t)n << 1);
    int64_t count = input->stop - input->start - n;
    const int64_t same = ((int64_t)1 << (7 * offset_bytes - 1)) - n;
    if (count > same) count = same;
    if (count > SMALL_BLOCK) count = SMALL_BLOCK;
    uint32_t large = n >= SMALL_RECORDS;
    int32_t latest = -SMALL_DELTA;
    for (int64_t i = 0; i < count; i++) {
        const int32_t key = (int32_t)(keys[i + 1] - keys[i]), value = (int32_t)(values[i + 1] - values[i]);
        const uint64_t delta = (uint64_t)timestamps[i] - base;
        const int32_t low = (int32_t)delta, sign = low >> 31, zigzag = (int32_t)((uint32_t)low << 1) ^ sign;
        const uint32_t too_early = (uint32_t)(((uint64_t)timestamps[i] + 1) >> 63); /* before -1 */
        large |= (uint32_t)(key | value) / SMALL_FIELD | (uint32_t)zigzag / SMALL_DELTA |
                 ((uint32_t)(delta >> 32) ^ (uint32_t)sign) | too_early;
        latest = low > latest ? low : latest;
        const int32_t body =
            5 + offset_bytes + (zigzag > 0x7f) + (key > 0x3f) + (value > 0x3f) + key + value;
        block->key_at[i] = keys[i];
        block->value_at[i] = values[i];
        block->key[i] = (uint32_t)key;
        block->value[i] = (uint32_t)value;
        block->length_varint[i] = two_bytes((uint32_t)body << 1);
        block->timestamp_varint[i] = two_bytes((uint32_t)zigzag);
        block->key_varint[i] = two_bytes((uint32_t)key << 1) | no_key;
        block->value_varint[i] = two_bytes((uint32_t)value << 1) | no_value;
        block->size[i] = (uint32_t)(body + 1 + (body > 0x3f));
    }
    block->count = count;
    block->offset_bytes = (uint32_t)offset_bytes;
    block->all_small = !large;
    block->latest = latest;
}

/* Add up the sizes of small records from number n on; return the first record of a block with others. */
TXNKAFKA_INLINE int64_t measure_blocks(const struct encode_input *input, int64_t n, uint64_t *total,
                                       struct kept_blocks *kept) {
    struct small_block passing;
    while (n < input->stop - input->start) {
        const int keep = kept->count < KEPT_BLOCKS && n == kept->count * SMALL_BLOCK;
        struct small_block *block = keep ? &kept->blocks[kept->count] : &passing;
        take_block(input, n, block);
        if (!block->all_small) break;
        kept->count += keep;
        uint32_t sum = 0;
        for (int64_t i = 0; i < block->count; i++) sum += block->size[i];
        *total += sum;
        n += block->count;
    }
    return n;
}

/* Return the size of a varint of one or two bytes, minus one. */
TXNKAFKA_INLINE uint32_t second_byte(uint32_t varint) { return varint >> 7 & 1; }

/* Write length and bytes of a small field: n bytes from `at` on; NULL if the data ends before. */
TXNKAFKA_INLINE uint8_t *put_small_field(uint8_t *p, const uint8_t *data, int64_t size, uint32_t varint,
                                         uint32_t at, uint32_t n) {
    memcpy(p, &varint, 2);
    p += 1 + second_byte(varint);
    if (TXNKAFKA_LIKELY((int64_t)at + n <= size - COLUMN_SLACK)) {
        copy_bytes(p, data + at, n, 1);
    } else {
        if ((int64_t)at + n > size) return NULL;
        copy_exactly(p, data + at, n);
    }
    return p + n;
}

/* Encode the offset delta n as bytes in memory, in little-endian order. */
TXNKAFKA_INLINE uint64_t offset_varint(uint64_t n, const uint32_t bytes) {
    uint64_t z = n << 1;
    if (bytes == 1) return z;
    if (bytes == 2) return (z & 0x7f) | 0x80 | z >> 7 << 8;
    return (z & 0x7f) | 0x8080 | (z >> 7 & 0x7f) << 8 | z >> 14 << 16;
}

/* Write records of a block, the first of which has number n, as long as there are ENCODE_SLACK bytes
 * between each and `end`; return their number. */
TXNKAFKA_INLINE int64_t put_block(uint8_t **at, const uint8_t *end, const struct encode_input *input,
                                  const struct small_block *block, int64_t n, const uint32_t offset_bytes) {
    const uint8_t *keys = input->keys.offsets ? input->keys.data : no_bytes;
    const uint8_t *values = input->values.offsets ? input->values.data : no_bytes;
    const int64_t key_size = input->keys.offsets ? input->keys.size : COLUMN_SLACK;
    const int64_t value_size = input->values.offsets ? input->values.size : COLUMN_SLACK;
    const int64_t count = block->count;
    uint8_t *p = *at;
    int64_t i = 0;
    for (; i < count; i++) {
        if (TXNKAFKA_UNLIKELY(end - p < (int64_t)block->size[i] + ENCODE_SLACK)) break;
        const uint64_t length = block->length_varint[i], timestamp = block->timestamp_varint[i];
        const uint32_t before = 2 + second_byte((uint32_t)length); /* length and attributes */
        const uint32_t behind = before + 1 + second_byte((uint32_t)timestamp);
        const uint64_t word = length | timestamp << (8 * before) |
                              offset_varint((uint64_t)(n + i), offset_bytes) << (8 * behind);
        memcpy(p, &word, 8);
        uint8_t *next = put_small_field(p + behind + offset_bytes, keys, key_size, block->key_varint[i],
                                        block->key_at[i], block->key[i]);
        if (TXNKAFKA_UNLIKELY(!next)) break;
        next = put_small_field(next, values, value_size, block->value_varint[i], block->value_at[i],
                               block->value[i]);
        if (TXNKAFKA_UNLIKELY(!next)) break;
        *next = 0;
        p = next + 1;
    }
    *at = p;
    return i;
}

/* Write all small records from number n on; return the number of the next record. */
TXNKAFKA_INLINE int64_t put_blocks(uint8_t **p, const uint8_t *end, const struct encode_input *input,
                                   int64_t n, int64_t *max_timestamp, const struct kept_blocks *kept) {
    struct small_block taken;
    while (n < input->stop - input->start) {
        const struct small_block *block = &taken;
        if (n % SMALL_BLOCK == 0 && n / SMALL_BLOCK < kept->count)
            block = &kept->blocks[n / SMALL_BLOCK];
        else
            take_block(input, n, &taken);
        if (!block->all_small) break;
        int64_t done = block->offset_bytes == 1   ? put_block(p, end, input, block, n, 1)
                       : block->offset_bytes == 2 ? put_block(p, end, input, block, n, 2)
                                                  : put_block(p, end, input, block, n, 3);
        int64_t latest = input->base_timestamp + block->latest;
        if (latest > *max_timestamp) *max_timestamp = latest;
        n += done;
        if (done < block->count) break;
    }
    return n;
}

/* The same code compiled for newer processors; chosen when the module is loaded. */
typedef int64_t (*measure_function)(const struct encode_input *, int64_t, uint64_t *, struct kept_blocks *);
typedef int64_t (*put_function)(uint8_t **, const uint8_t *, const struct encode_input *, int64_t, int64_t *,
                                const struct kept_blocks *);

#define BLOCKS_FOR(name, target)                                                                             \
    target static int64_t measure_##name(const struct encode_input *input, int64_t n, uint64_t *total,       \
                                         struct kept_blocks *kept) {                                         \
        return measure_blocks(input, n, total, kept);                                                        \
    }                                                                                                        \
    target static int64_t put_##name(uint8_t **p, const uint8_t *end, const struct encode_input *input,      \
                                     int64_t n, int64_t *max_timestamp, const struct kept_blocks *kept) {    \
        return put_blocks(p, end, input, n, max_timestamp, kept);                                            \
    }

BLOCKS_FOR(baseline, )
static measure_function measure_chosen = measure_baseline;
static put_function put_chosen = put_baseline;

#if defined(__x86_64__)
BLOCKS_FOR(avx2, __attribute__((target("avx2,bmi2"))))
BLOCKS_FOR(avx512, __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,bmi2"))))
#endif

static inline void choose_blocks(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2")) return;
    measure_chosen = measure_avx2;
    put_chosen = put_avx2;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq"))
        return;
    measure_chosen = measure_avx512;
    put_chosen = put_avx512;
#endif
}

#endif
