/* Records to bytes: the writing side of record.h.
 *
 *   length varint | attributes i8 | timestampDelta varlong | offsetDelta varint |
 *   keyLength varint, key | valueLength varint, value | headersCount varint |
 *   headers: keyLength varint, key, valueLength varint, value
 *
 * Two passes: the first computes the exact size of the records, so that they are allocated once;
 * the second writes. Columns are memory of the caller, which may change between the two, so the second checks
 * all that it reads again, and returns ENCODE_CHANGED if the sizes differ. */
#ifndef TXNKAFKA_ENCODE_H
#define TXNKAFKA_ENCODE_H

#include "encode_blocks.h"

#define MAX_BATCH_SIZE 0x7fffffffll /* the size limit of Kafka's buffers */

struct encode_result {
    int64_t size, max_timestamp, last_offset_delta, failed; /* `failed`: the record with the error */
    struct kept_blocks kept;
};

struct encode_record {
    struct encode_field key, value;
    uint64_t timestamp_delta, offset_delta; /* zigzag */
    int64_t first_header, end_header;
    uint64_t body; /* the value of the length field */
};

/* A varint of one or two bytes as bytes in memory, in little-endian order. */
TXNKAFKA_INLINE uint64_t small_varint(uint64_t z, unsigned *bits) {
    uint64_t two = z >= 0x80;
    *bits = 8u << two;
    return (z & 0x7f) | (two << 7) | ((z >> 7) << 8);
}

/* Eight bytes must be writable at p. */
TXNKAFKA_INLINE uint8_t *put_length(uint8_t *p, uint64_t z) {
    if (TXNKAFKA_UNLIKELY(z >= 1 << 14)) return put_varint(p, z);
    unsigned bits;
    uint16_t word = (uint16_t)small_varint(z, &bits);
    memcpy(p, &word, 2);
    return p + bits / 8;
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

/* Compute the size of a record's headers with their count. */
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

/* Read record number n from the start, and compute its size. */
TXNKAFKA_INLINE int take_record(const struct encode_input *input, int64_t n, int64_t *last_delta,
                                int64_t *timestamp, struct encode_record *record) {
    const int64_t i = input->start + n;
    if (!take_field(&input->keys, i, &record->key) || !take_field(&input->values, i, &record->value))
        return ENCODE_COLUMN;
    *timestamp = input->timestamps[i];
    if (TXNKAFKA_UNLIKELY(*timestamp < -1)) return ENCODE_TIMESTAMP;
    record->timestamp_delta = zigzag_of(*timestamp - input->base_timestamp);
    int64_t delta = n;
    if (input->offsets) {
        int64_t offset = input->offsets[i];
        if (offset < input->base_offset || offset - input->base_offset <= *last_delta) return ENCODE_OFFSET;
        delta = offset - input->base_offset;
    }
    if (TXNKAFKA_UNLIKELY(delta > INT32_MAX)) return ENCODE_OFFSET;
    *last_delta = delta;
    record->offset_delta = (uint64_t)delta << 1;
    record->first_header = record->end_header = 0;
    uint64_t headers = 1;
    if (TXNKAFKA_UNLIKELY(input->header_offsets != NULL)) {
        record->first_header = offset_at(input->header_offsets, input->wide_header_offsets, i);
        record->end_header = offset_at(input->header_offsets, input->wide_header_offsets, i + 1);
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

/* Whether a fast copy may read past a field's end in the column's data. */
TXNKAFKA_INLINE int is_roomy(const struct encode_column *column, const struct encode_field *field) {
    return !column->fields &&
           column->data + column->size - field->data >= field->length + (int64_t)COLUMN_SLACK;
}

/* Write length and bytes of a field that fits; in blocks if there is slack after it. */
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

/* Write a record; up to ENCODE_SLACK bytes after it may be overwritten. The fields before the key are one
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

/* Return NULL when the headers have changed since they were measured. */
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

/* The first pass: compute the size of all records. */
static int records_size(const struct encode_input *input, struct encode_result *result) {
    const int plain = is_plain(input);
    const int64_t count = input->stop - input->start;
    int64_t n = 0, block_end = 0, last_delta = -1, timestamp;
    uint64_t total = 0;
    struct encode_record record;
    result->kept.count = 0;
    for (;;) {
        if (plain && n >= block_end) {
            n = measure_chosen(input, n, &total, &result->kept);
            block_end = n + SMALL_BLOCK;
            last_delta = n - 1;
        }
        if (n >= count) break;
        int error = take_record(input, n, &last_delta, &timestamp, &record);
        total += varint_size(record.body << 1) + record.body;
        if (TXNKAFKA_UNLIKELY(error || total > MAX_BATCH_SIZE)) {
            result->failed = input->start + n;
            return error ? error : ENCODE_SIZE;
        }
        n++;
    }
    result->size = (int64_t)total;
    return ENCODE_OK;
}

/* Write one record; return NULL when it became invalid, or does not fit. */
static inline uint8_t *put_record(uint8_t *p, const uint8_t *end, const struct encode_input *input,
                                  const struct encode_record *record) {
    uint64_t room = (uint64_t)(end - p), size = varint_size(record->body << 1) + record->body;
    if (TXNKAFKA_UNLIKELY(size > room)) return NULL;
    const uint8_t *stop = p + size;
    p = TXNKAFKA_LIKELY(room - size >= ENCODE_SLACK) ? put_record_fast(p, input, record)
                                                     : put_record_exactly(p, record);
    if (TXNKAFKA_UNLIKELY(record->first_header != record->end_header))
        return put_headers(p, stop, input, record);
    *p = 0;
    return p + 1;
}

/* The second pass: write result->size bytes at p; up to `slack` bytes after them, at most ENCODE_SLACK,
 * may be overwritten. */
static int put_records(uint8_t *p, const struct encode_input *input, struct encode_result *result,
                       int64_t slack) {
    const int plain = is_plain(input);
    const int64_t count = input->stop - input->start;
    const uint8_t *end = p + result->size;
    int64_t n = 0, block_end = 0, last_delta = -1, timestamp, max_timestamp = -1;
    struct encode_record record;
    for (;;) {
        if (plain && n >= block_end) {
            n = put_chosen(&p, end + slack, input, n, &max_timestamp, &result->kept);
            block_end = n + SMALL_BLOCK;
            last_delta = n - 1;
        }
        if (n >= count) break;
        if (take_record(input, n, &last_delta, &timestamp, &record)) return ENCODE_CHANGED;
        if (!(p = put_record(p, end, input, &record))) return ENCODE_CHANGED;
        if (timestamp > max_timestamp) max_timestamp = timestamp;
        n++;
    }
    if (p != end) return ENCODE_CHANGED;
    result->max_timestamp = max_timestamp;
    result->last_offset_delta = last_delta;
    return ENCODE_OK;
}

#endif
