/* Records to bytes: the writing side of record.h.
 *
 *   length varint | attributes i8 | timestampDelta varlong | offsetDelta varint |
 *   keyLength varint, key | valueLength varint, value | headersCount varint |
 *   headers: keyLength varint, key, valueLength varint, value
 *
 * Two passes: the first computes how many bytes the records take, exactly, so that they are allocated once;
 * the second writes. Columns are memory of somebody else, who may change it between the two, so the second
 * checks again whatever it reads, and ends with ENCODE_CHANGED where the sums differ. */
#ifndef TXNKAFKA_ENCODE_H
#define TXNKAFKA_ENCODE_H

#include "record.h"

#define ENCODE_SLACK 160 /* bytes that the fast path may scribble on behind the record's first byte and data */
#define MAX_BATCH_SIZE 0x7fffffffll /* Kafka's buffers have no more */

enum encode_error {
    ENCODE_OK = 0,
    ENCODE_COLUMN,    /* the offsets of a binary column go back or past its data */
    ENCODE_HEADERS,   /* the same of header_offsets */
    ENCODE_TIMESTAMP, /* below -1 */
    ENCODE_OFFSET,    /* not above the one before, below the base offset, or too far from it */
    ENCODE_SIZE,      /* more than a batch can hold */
    ENCODE_CHANGED,   /* between the two passes */
};

struct encode_field {
    const uint8_t *data;
    int64_t length; /* -1: null */
};

/* Byte strings: as Arrow has them, or where `fields` is set, one by one. */
struct encode_column {
    const void *offsets; /* NULL: everything is null */
    const uint8_t *data, *validity;
    int64_t size;
    int wide; /* offsets are int64, else int32 */
    const struct encode_field *fields;
};

struct encode_input {
    struct encode_column keys, values, header_keys, header_values;
    const int64_t *timestamps;
    const int64_t *offsets;     /* NULL: one after the other from the base offset on */
    const void *header_offsets; /* NULL: no headers */
    int wide_header_offsets;
    int64_t header_count;
    int64_t start, stop; /* the records to write */
    int64_t base_offset, base_timestamp;
};

struct encode_result {
    int64_t size, max_timestamp, last_offset_delta, failed; /* `failed`: the record with the error */
};

struct encode_record {
    struct encode_field key, value;
    uint64_t timestamp_delta, offset_delta; /* zigzag */
    int64_t first_header, end_header;
    uint64_t body; /* what the length says */
};

TXNKAFKA_INLINE uint64_t zigzag_of(int64_t v) { return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63); }

/* Nine sixty-fourths of the bits, rounded up: exact from 1 to 64 bits. */
TXNKAFKA_INLINE uint64_t varint_size(uint64_t z) {
    return ((uint64_t)(64 - __builtin_clzll(z | 1)) * 9 + 64) >> 6;
}

TXNKAFKA_INLINE uint8_t *put_varint(uint8_t *p, uint64_t z) {
    for (; z >= 0x80; z >>= 7) *p++ = (uint8_t)z | 0x80;
    *p++ = (uint8_t)z;
    return p;
}

/* A varint of one or two bytes as they lie in memory, little end first. */
TXNKAFKA_INLINE uint64_t small_varint(uint64_t z, unsigned *bits) {
    uint64_t two = z >= 0x80;
    *bits = 8u << two;
    return (z & 0x7f) | (two << 7) | ((z >> 7) << 8);
}

/* Eight bytes are writable at p. */
TXNKAFKA_INLINE uint8_t *put_length(uint8_t *p, uint64_t z) {
    if (TXNKAFKA_UNLIKELY(z >= 1 << 14)) return put_varint(p, z);
    unsigned bits;
    uint16_t word = (uint16_t)small_varint(z, &bits);
    memcpy(p, &word, 2);
    return p + bits / 8;
}

/* Exactly n bytes; short ones without a call. */
TXNKAFKA_INLINE void copy_exactly(uint8_t *to, const uint8_t *from, size_t n) {
    if (n > 32 || n < 4) {
        memcpy(to, from, n);
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

TXNKAFKA_INLINE int take_field(const struct encode_column *column, int64_t i, struct encode_field *field) {
    if (column->fields) {
        *field = column->fields[i];
        return 1;
    }
    field->data = NULL;
    field->length = -1;
    if (!column->offsets) return 1;
    if (column->validity && !((column->validity[i >> 3] >> (i & 7)) & 1)) return 1;
    int64_t begin = offset_at(column->offsets, column->wide, i);
    int64_t end = offset_at(column->offsets, column->wide, i + 1);
    if (TXNKAFKA_UNLIKELY(begin < 0 || end < begin || end > column->size)) return 0;
    field->data = column->data + begin;
    field->length = end - begin;
    return 1;
}

TXNKAFKA_INLINE uint64_t field_size(const struct encode_field *field) {
    return field->length < 0 ? 1 : varint_size((uint64_t)field->length << 1) + (uint64_t)field->length;
}

/* How many bytes the headers of a record take, their count included. */
static inline int headers_size(const struct encode_input *input, const struct encode_record *record,
                        uint64_t *size) {
    uint64_t total = varint_size((uint64_t)(record->end_header - record->first_header) << 1);
    for (int64_t h = record->first_header; h < record->end_header; h++) {
        struct encode_field key, value;
        if (!take_field(&input->header_keys, h, &key) || !take_field(&input->header_values, h, &value))
            return ENCODE_COLUMN;
        total += field_size(&key) + field_size(&value);
        if (total > MAX_BATCH_SIZE) return ENCODE_SIZE;
    }
    *size = total;
    return ENCODE_OK;
}

/* Everything that is written of record i, and how long it becomes. `local` is a copy of `input` that the
 * compiler can keep in registers: whatever is written through a pointer to bytes might change `input`. */
TXNKAFKA_INLINE int take_record(const struct encode_input *input, const struct encode_input *local, int64_t i,
                                int64_t *last_delta, int64_t *timestamp, struct encode_record *record) {
    if (!take_field(&local->keys, i, &record->key) || !take_field(&local->values, i, &record->value))
        return ENCODE_COLUMN;
    *timestamp = local->timestamps[i];
    if (TXNKAFKA_UNLIKELY(*timestamp < -1)) return ENCODE_TIMESTAMP;
    record->timestamp_delta = zigzag_of(*timestamp - local->base_timestamp);
    int64_t delta = i - local->start;
    if (local->offsets) {
        int64_t offset = local->offsets[i];
        if (offset < local->base_offset || offset - local->base_offset <= *last_delta) return ENCODE_OFFSET;
        delta = offset - local->base_offset;
    }
    if (TXNKAFKA_UNLIKELY(delta > INT32_MAX)) return ENCODE_OFFSET;
    *last_delta = delta;
    record->offset_delta = (uint64_t)delta << 1;
    record->first_header = record->end_header = 0;
    uint64_t headers = 1;
    if (TXNKAFKA_UNLIKELY(local->header_offsets != NULL)) {
        record->first_header = offset_at(local->header_offsets, local->wide_header_offsets, i);
        record->end_header = offset_at(local->header_offsets, local->wide_header_offsets, i + 1);
        if (record->first_header < 0 || record->end_header < record->first_header ||
            record->end_header > input->header_count)
            return ENCODE_HEADERS;
        int error = headers_size(input, record, &headers);
        if (error) return error;
    }
    if (TXNKAFKA_UNLIKELY(record->key.length > MAX_BATCH_SIZE || record->value.length > MAX_BATCH_SIZE))
        return ENCODE_SIZE;
    record->body = 1 + varint_size(record->timestamp_delta) + varint_size(record->offset_delta) +
                   field_size(&record->key) + field_size(&record->value) + headers;
    return ENCODE_OK;
}

/* Bulk writers mostly have int32 offsets, columns without nulls (or of nothing else), no headers, no gaps
 * between offsets. Of such plain columns, records whose lengths and timestamp delta fit into two bytes and
 * whose offset delta fits into three are small. They are taken in blocks, by loops without a branch, so that the
 * compiler works at several records at once; then one word holds everything before a key. */
#define SMALL_FIELD   2048
#define SMALL_DELTA   (1 << 14)
#define SMALL_RECORDS (1 << 20)
#define SMALL_BLOCK   64

struct small_block { /* of each record: where key and value begin, lengths, varints as they lie in memory */
    uint32_t key_at[SMALL_BLOCK], value_at[SMALL_BLOCK], key[SMALL_BLOCK], value[SMALL_BLOCK];
    uint32_t length_varint[SMALL_BLOCK], timestamp_varint[SMALL_BLOCK];
    uint32_t key_varint[SMALL_BLOCK], value_varint[SMALL_BLOCK], size[SMALL_BLOCK];
    int64_t count;
    uint32_t offset_bytes, all_small;
    int32_t latest; /* largest timestamp delta */
};

/* Offsets and bytes of a column that is null throughout. */
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

/* A number below SMALL_DELTA as the varint of one or two bytes that is it, little end first. */
TXNKAFKA_INLINE uint32_t two_bytes(uint32_t z) {
    return z + (z & ~0x7fu) + ((int32_t)z > 0x7f ? 0x80u : 0);
}

/* The records from number n on, up to the next block or the next length of offset deltas. */
static inline void take_block(const struct encode_input *input, int64_t n, struct small_block *block) {
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

/* Adds up small records from number n on; returns the number of the first of a block that has another. */
static inline int64_t measure_blocks(const struct encode_input *input, int64_t n, uint64_t *total) {
    struct small_block block;
    for (; n < input->stop - input->start; n += block.count) {
        take_block(input, n, &block);
        if (!block.all_small) break;
        uint32_t sum = 0;
        for (int64_t i = 0; i < block.count; i++) sum += block.size[i];
        *total += sum;
    }
    return n;
}

/* The first pass: the bytes of all records. */
static inline int records_size(const struct encode_input *input, struct encode_result *result) {
    const struct encode_input local = *input;
    const int plain = is_plain(input);
    int64_t last_delta = -1, timestamp, block_end = 0;
    uint64_t total = 0;
    struct encode_record record;
    for (int64_t i = local.start; i < local.stop; i++) {
        if (plain && i >= block_end) {
            i = local.start + measure_blocks(input, i - local.start, &total);
            block_end = i + SMALL_BLOCK;
            last_delta = i - local.start - 1;
            if (i == local.stop) break;
        }
        int error = take_record(input, &local, i, &last_delta, &timestamp, &record);
        total += varint_size(record.body << 1) + record.body;
        if (TXNKAFKA_UNLIKELY(error || total > MAX_BATCH_SIZE)) {
            result->failed = i;
            return error ? error : ENCODE_SIZE;
        }
    }
    result->size = (int64_t)total;
    return ENCODE_OK;
}

/* How far a column's data can be read from a field's first byte on. */
TXNKAFKA_INLINE int is_roomy(const struct encode_column *column, const struct encode_field *field) {
    return !column->fields &&
           column->data + column->size - field->data >= field->length + (int64_t)COLUMN_SLACK;
}

/* Length and bytes of a field that fits; where there is slack behind it, in blocks. */
TXNKAFKA_INLINE uint8_t *put_field(uint8_t *p, const struct encode_column *column,
                                   const struct encode_field *field) {
    if (field->length < 0) {
        *p = 1;
        return p + 1;
    }
    size_t n = (size_t)field->length;
    p = put_length(p, (uint64_t)n << 1);
    if (is_roomy(column, field))
        copy_bytes(p, field->data, n, 1);
    else
        copy_exactly(p, field->data, n);
    return p + n;
}

TXNKAFKA_INLINE uint8_t *put_field_exactly(uint8_t *p, const struct encode_field *field) {
    if (field->length < 0) return put_varint(p, 1);
    p = put_varint(p, (uint64_t)field->length << 1);
    copy_exactly(p, field->data, (size_t)field->length);
    return p + field->length;
}

/* The record's bytes when ENCODE_SLACK bytes behind it may be scribbled on: what comes before the key is one
 * word. */
TXNKAFKA_INLINE uint8_t *put_record_fast(uint8_t *p, const struct encode_input *input,
                                         const struct encode_record *record) {
    uint64_t length = record->body << 1;
    if (TXNKAFKA_LIKELY((length | record->timestamp_delta | record->offset_delta) < 1 << 14)) {
        unsigned bits, shift;
        uint64_t word = small_varint(length, &shift);
        shift += 8;
        word |= small_varint(record->timestamp_delta, &bits) << shift;
        shift += bits;
        word |= small_varint(record->offset_delta, &bits) << shift;
        memcpy(p, &word, 8);
        p += (shift + bits) / 8;
    } else {
        p = put_varint(p, length);
        *p++ = 0;
        p = put_varint(p, record->timestamp_delta);
        p = put_varint(p, record->offset_delta);
    }
    p = put_field(p, &input->keys, &record->key);
    return put_field(p, &input->values, &record->value);
}

static inline uint8_t *put_record_exactly(uint8_t *p, const struct encode_record *record) {
    p = put_varint(p, record->body << 1);
    *p++ = 0;
    p = put_varint(p, record->timestamp_delta);
    p = put_varint(p, record->offset_delta);
    p = put_field_exactly(p, &record->key);
    return put_field_exactly(p, &record->value);
}

/* NULL when the headers are no longer those that were measured. */
static inline uint8_t *put_headers(uint8_t *p, const uint8_t *end, const struct encode_input *input,
                            const struct encode_record *record) {
    p = put_varint(p, (uint64_t)(record->end_header - record->first_header) << 1);
    for (int64_t h = record->first_header; h < record->end_header; h++) {
        struct encode_field key, value;
        if (!take_field(&input->header_keys, h, &key) || !take_field(&input->header_values, h, &value))
            return NULL;
        if (field_size(&key) + field_size(&value) > (uint64_t)(end - p)) return NULL;
        p = put_field_exactly(p, &key);
        p = put_field_exactly(p, &value);
    }
    return p == end ? p : NULL;
}

/* How many bytes a varint of one or two has, less one. */
TXNKAFKA_INLINE uint32_t second_byte(uint32_t varint) { return varint >> 7 & 1; }

/* Length and bytes of a small field, all of which is n bytes from `at` on; NULL where the data ends before. */
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

/* The offset delta n as it lies in memory, little end first. */
TXNKAFKA_INLINE uint64_t offset_varint(uint64_t n, const uint32_t bytes) {
    uint64_t z = n << 1;
    if (bytes == 1) return z;
    if (bytes == 2) return (z & 0x7f) | 0x80 | z >> 7 << 8;
    return (z & 0x7f) | 0x8080 | (z >> 7 & 0x7f) << 8 | z >> 14 << 16;
}

/* Writes records of a block, the first of which has number n, as long as ENCODE_SLACK bytes behind each may be
 * scribbled on; returns how many. */
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

/* As many small records as there are from number n on; returns the number of the next. */
static inline int64_t put_blocks(uint8_t **p, const uint8_t *end, const struct encode_input *input, int64_t n,
                                 int64_t *max_timestamp) {
    struct small_block block;
    while (n < input->stop - input->start) {
        take_block(input, n, &block);
        if (!block.all_small) break;
        int64_t done = block.offset_bytes == 1   ? put_block(p, end, input, &block, n, 1)
                       : block.offset_bytes == 2 ? put_block(p, end, input, &block, n, 2)
                                                 : put_block(p, end, input, &block, n, 3);
        int64_t latest = input->base_timestamp + block.latest;
        if (latest > *max_timestamp) *max_timestamp = latest;
        n += done;
        if (done < block.count) break;
    }
    return n;
}

/* The second pass: result->size bytes at p. */
static inline int put_records(uint8_t *p, const struct encode_input *input, struct encode_result *result) {
    const struct encode_input local = *input;
    const int plain = is_plain(input);
    const uint8_t *end = p + result->size;
    int64_t last_delta = -1, timestamp, max_timestamp = -1, block_end = 0;
    struct encode_record record;
    for (int64_t i = local.start; i < local.stop; i++) {
        if (plain && i >= block_end) {
            i = local.start + put_blocks(&p, end, input, i - local.start, &max_timestamp);
            block_end = i + SMALL_BLOCK;
            last_delta = i - local.start - 1;
            if (i == local.stop) break;
        }
        int error = take_record(input, &local, i, &last_delta, &timestamp, &record);
        uint64_t room = (uint64_t)(end - p);
        uint64_t size = error ? 0 : varint_size(record.body << 1) + record.body;
        if (TXNKAFKA_UNLIKELY(error || size > room)) return ENCODE_CHANGED;
        const uint8_t *stop = p + size;
        p = TXNKAFKA_LIKELY(room - size >= ENCODE_SLACK) ? put_record_fast(p, &local, &record)
                                                         : put_record_exactly(p, &record);
        if (TXNKAFKA_LIKELY(record.first_header == record.end_header))
            *p++ = 0;
        else if (!(p = put_headers(p, stop, input, &record)))
            return ENCODE_CHANGED;
        if (timestamp > max_timestamp) max_timestamp = timestamp;
    }
    if (p != end) return ENCODE_CHANGED;
    result->max_timestamp = max_timestamp;
    result->last_offset_delta = last_delta;
    return ENCODE_OK;
}

#endif
