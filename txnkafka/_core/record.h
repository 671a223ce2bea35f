/* The walk over the records of one magic 2 batch, into columns.
 *
 *   length varint | attributes i8 | timestampDelta varlong | offsetDelta varint |
 *   keyLength varint, key | valueLength varint, value | headersCount varint |
 *   headers: keyLength varint, key, valueLength varint, value
 *
 * The rules are those of the full reader, org.apache.kafka.common.record.internal.DefaultRecord.readFrom: a
 * record must be exactly as long as its length field, a negative key, value or header value length is null, a
 * header key is never null.
 *
 * There are three ends: the end of a record and of its batch decide what is valid; `limit`, the end of the
 * readable bytes, decides whether the unchecked fast path may look ahead. */
#ifndef TXNKAFKA_RECORD_H
#define TXNKAFKA_RECORD_H

#include "varint.h"
#include <string.h>

#define RECORD_LOOKAHEAD 64 /* readable bytes that the fast path needs after a record's first byte */
#define COLUMN_SLACK    128 /* bytes after the end of every data column that a copy may overwrite */
#define MIN_RECORD_SIZE 7   /* length, attributes, two deltas, two null lengths, no headers: a byte each */

enum record_error {
    RECORD_OK = 0,
    RECORD_LENGTH,     /* negative, or past the end of the batch */
    RECORD_FIELD,      /* a varint or a field does not fit into its record */
    RECORD_HEADERS,    /* header count negative or larger than the record */
    RECORD_HEADER_KEY, /* negative header key length */
    RECORD_SIZE,       /* fields end before or after the declared length */
    RECORD_COUNT,      /* fewer records than the batch header says */
    RECORD_TRAILING,   /* bytes left after the last record */
    RECORD_MANY_HEADERS, /* more headers than the limit per record */
};

struct record_sink { /* the output: arrays of a RecordColumns, and their fill counts */
    int64_t *offsets, *timestamps;
    int32_t *key_offsets, *value_offsets;
    uint8_t *key_data, *value_data, *key_validity, *value_validity;
    uint32_t *key_positions, *value_positions;
    int32_t *key_lengths, *value_lengths;
    int32_t *header_offsets, *header_key_offsets, *header_value_offsets;
    uint8_t *header_key_data, *header_value_data, *header_value_validity;
    size_t record_capacity, header_capacity;
    int32_t max_headers; /* of one record */
    size_t count, header_count, key_nulls, value_nulls, header_value_nulls;
};

struct record_batch {
    const uint8_t *records, *end;  /* the records, decompressed */
    const uint8_t *source, *limit; /* the readable bytes around them; views are relative to `source` */
    int64_t base_offset, base_timestamp;
    int64_t append_time; /* the time of all records with LogAppendTime ... */
    int has_append_time; /* ... if this is set */
    int32_t count;
    ptrdiff_t ahead; /* distance to the batch that is decoded next, for prefetching */
    int64_t start_offset, end_offset; /* a bounded walk skips records outside [start, end) */
};

struct record_fields {
    int64_t timestamp_delta;
    int32_t offset_delta, key_length, value_length, header_count;
    int roomy; /* COLUMN_SLACK bytes are readable after the record */
    const uint8_t *key, *value;
};

/* Copy n bytes; in blocks if the source is roomy: COLUMN_SLACK bytes are readable after it. In both cases
 * up to COLUMN_SLACK bytes after the copy may be overwritten. */
TXNKAFKA_INLINE void copy_bytes(uint8_t *to, const uint8_t *from, size_t n, int roomy) {
    if (TXNKAFKA_UNLIKELY(!roomy || n > 2048)) {
        memcpy(to, from, n);
        return;
    }
    if (n <= 32) {
        memcpy(to, from, 32);
        return;
    }
    size_t done = 0;
    do {
        memcpy(to + done, from + done, 128);
        done += 128;
    } while (done < n);
}

/* When the first null is found, bits are set once for the whole capacity, so that columns without nulls
 * cost nothing. */
TXNKAFKA_INLINE void clear_validity(uint8_t *validity, size_t capacity, size_t *nulls, size_t i) {
    if ((*nulls)++ == 0) memset(validity, 0xff, (capacity + 7) / 8);
    validity[i >> 3] &= (uint8_t)~(1u << (i & 7));
}

/* Read a varint, fast if it has one or two bytes; at least two bytes must be readable at p. */
TXNKAFKA_INLINE const uint8_t *fast_varint(const uint8_t *p, const uint8_t *end, int32_t *value) {
    uint32_t first = p[0], second = p[1];
    if (TXNKAFKA_LIKELY(first < 0x80u)) {
        *value = zigzag32(first);
        return p + 1;
    }
    if (TXNKAFKA_LIKELY(second < 0x80u)) {
        *value = zigzag32((first & 0x7fu) | (second << 7));
        return p + 2;
    }
    return read_varint(p, end, value);
}

/* Read all fields up to the value length; at least RECORD_LOOKAHEAD bytes must be readable at p (5 + 1 +
 * 10 + 5 + 5 at most). */
TXNKAFKA_INLINE const uint8_t *fields_fast(const uint8_t *p, const uint8_t *limit, int32_t *length,
                                           const uint8_t **start, struct record_fields *r) {
    if (!(p = fast_varint(p, limit, length))) return NULL;
    *start = p;
    p += 1; /* attributes: any value is accepted */
    if (TXNKAFKA_LIKELY(*p < 0x80u)) {
        r->timestamp_delta = zigzag32(*p);
        p += 1;
    } else if (!(p = read_varlong(p, limit, &r->timestamp_delta)))
        return NULL;
    if (!(p = fast_varint(p, limit, &r->offset_delta))) return NULL;
    return fast_varint(p, limit, &r->key_length);
}

TXNKAFKA_INLINE const uint8_t *fields_checked(const uint8_t *p, const uint8_t *end, int32_t *length,
                                              const uint8_t **start, struct record_fields *r) {
    if (!(p = read_varint(p, end, length))) return NULL;
    *start = p;
    if (p >= end) return NULL;
    p += 1;
    if (!(p = read_varlong(p, end, &r->timestamp_delta))) return NULL;
    if (!(p = read_varint(p, end, &r->offset_delta))) return NULL;
    return read_varint(p, end, &r->key_length);
}

TXNKAFKA_INLINE void add_header(struct record_sink *sink, const uint8_t *key, int32_t key_length,
                                const uint8_t *value, int32_t value_length) {
    size_t h = sink->header_count++;
    int32_t key_at = sink->header_key_offsets[h], value_at = sink->header_value_offsets[h];
    if (value_length < 0) {
        clear_validity(sink->header_value_validity, sink->header_capacity, &sink->header_value_nulls, h);
        value_length = 0;
    }
    memcpy(sink->header_key_data + key_at, key, (size_t)key_length);
    memcpy(sink->header_value_data + value_at, value, (size_t)value_length);
    sink->header_key_offsets[h + 1] = key_at + key_length;
    sink->header_value_offsets[h + 1] = value_at + value_length;
}

/* Read the headers of one record, into the sink if there is one. They are checked and copied in one pass:
 * the bytes may be a mapped file, which may change between two reads. */
static inline const uint8_t *read_headers(const uint8_t *p, const uint8_t *stop, int32_t count,
                                          struct record_sink *sink, int *error) {
    for (int32_t i = 0; i < count; i++) {
        int32_t key_length, value_length;
        *error = RECORD_FIELD;
        if (!(p = read_varint(p, stop, &key_length))) return NULL;
        *error = RECORD_HEADER_KEY;
        if (key_length < 0) return NULL;
        *error = RECORD_FIELD;
        if (key_length > stop - p) return NULL;
        const uint8_t *key = p;
        if (!(p = read_varint(p + key_length, stop, &value_length))) return NULL;
        if (value_length > stop - p) return NULL;
        if (sink) add_header(sink, key, key_length, p, value_length);
        if (value_length > 0) p += value_length;
    }
    return p;
}

/* Read one record, its headers into `headers` if that is given; return the position after it, or NULL with
 * *error set. */
TXNKAFKA_INLINE const uint8_t *read_record(const uint8_t *p, const uint8_t *end, const uint8_t *limit,
                                           struct record_fields *r, struct record_sink *headers, int *error) {
    int32_t length;
    const uint8_t *start;
    if (TXNKAFKA_LIKELY(limit - p >= RECORD_LOOKAHEAD))
        p = fields_fast(p, limit, &length, &start, r);
    else
        p = fields_checked(p, end, &length, &start, r);
    *error = RECORD_FIELD;
    if (TXNKAFKA_UNLIKELY(!p)) return NULL;
    *error = RECORD_LENGTH;
    if (TXNKAFKA_UNLIKELY(length < 0 || length > end - start)) return NULL;
    const uint8_t *stop = start + length;
    *error = RECORD_FIELD;
    ptrdiff_t left = stop - p; /* negative when the fields passed the end of the record */
    r->roomy = limit - stop >= COLUMN_SLACK;
    r->key = p;
    int32_t key_bytes = r->key_length > 0 ? r->key_length : 0;
    /* value length and header count: at least one byte each */
    if (TXNKAFKA_UNLIKELY(left < key_bytes + (ptrdiff_t)2)) return NULL;
    p += key_bytes;
    if (!(p = fast_varint(p, stop, &r->value_length))) return NULL;
    r->value = p;
    int32_t value_bytes = r->value_length > 0 ? r->value_length : 0;
    left = stop - p - value_bytes;
    if (TXNKAFKA_UNLIKELY(left < 0)) return NULL;
    p += value_bytes;
    if (TXNKAFKA_LIKELY(left == 1 && *p == 0)) {
        r->header_count = 0;
        return stop;
    }
    if (!(p = read_varint(p, stop, &r->header_count))) return NULL;
    *error = RECORD_HEADERS;
    if (r->header_count < 0 || r->header_count > stop - p) return NULL;
    *error = RECORD_MANY_HEADERS;
    if (headers && r->header_count > headers->max_headers) return NULL;
    if (!(p = read_headers(p, stop, r->header_count, headers, error))) return NULL;
    *error = RECORD_SIZE;
    return p == stop ? stop : NULL;
}

/* Remove the headers from number `count` on, with their nulls. */
static inline void drop_headers(struct record_sink *sink, size_t count) {
    for (size_t h = count; h < sink->header_count && sink->header_value_nulls; h++) {
        uint8_t bit = (uint8_t)(1u << (h & 7));
        if (!(sink->header_value_validity[h >> 3] & bit)) sink->header_value_nulls--;
        sink->header_value_validity[h >> 3] |= bit;
    }
    sink->header_count = count;
}

/* On an error the counts of the sink do not change: no record of a bad batch is delivered. */
TXNKAFKA_INLINE int walk_records(const struct record_batch *batch, struct record_sink *sink, const int views,
                                 const int headers, const int bounded) {
    const uint8_t *p = batch->records, *end = batch->end, *limit = batch->limit;
    /* in locals, as a store through a byte pointer might otherwise change them */
    int64_t *const offsets = sink->offsets, *const timestamps = sink->timestamps;
    int32_t *const key_offsets = sink->key_offsets, *const value_offsets = sink->value_offsets;
    uint8_t *const key_data = sink->key_data, *const value_data = sink->value_data;
    const int64_t base_offset = batch->base_offset, base_timestamp = batch->base_timestamp;
    size_t n = sink->count, key_nulls = sink->key_nulls, value_nulls = sink->value_nulls;
    const size_t header_count = sink->header_count;
    int32_t key_at = views ? 0 : sink->key_offsets[n], value_at = views ? 0 : sink->value_offsets[n];
    const ptrdiff_t ahead = batch->ahead;
    int error = RECORD_OK;
    for (int32_t i = 0; i < batch->count; i++) {
        struct record_fields r;
        if (TXNKAFKA_UNLIKELY(p >= end)) {
            error = RECORD_COUNT;
            goto failed;
        }
        __builtin_prefetch(p + ahead);
        __builtin_prefetch(p + ahead + 64);
        p = read_record(p, end, limit, &r, headers ? sink : NULL, &error);
        if (TXNKAFKA_UNLIKELY(!p)) goto failed;
        int64_t offset = (int64_t)((uint64_t)base_offset + (uint64_t)(int64_t)r.offset_delta);
        if (bounded && (offset < batch->start_offset || offset >= batch->end_offset)) {
            if (headers) drop_headers(sink, (size_t)sink->header_offsets[n]);
            continue;
        }
        offsets[n] = offset;
        timestamps[n] = batch->has_append_time
                            ? batch->append_time
                            : (int64_t)((uint64_t)base_timestamp + (uint64_t)r.timestamp_delta);
        if (views) {
            sink->key_lengths[n] = r.key_length < 0 ? -1 : r.key_length;
            sink->key_positions[n] = (uint32_t)(r.key - batch->source);
            sink->value_lengths[n] = r.value_length < 0 ? -1 : r.value_length;
            sink->value_positions[n] = (uint32_t)(r.value - batch->source);
        } else {
            if (r.key_length > 0) {
                copy_bytes(key_data + key_at, r.key, (size_t)r.key_length, r.roomy);
                key_at += r.key_length;
            } else if (r.key_length < 0)
                clear_validity(sink->key_validity, sink->record_capacity, &key_nulls, n);
            if (r.value_length > 0) {
                copy_bytes(value_data + value_at, r.value, (size_t)r.value_length, r.roomy);
                value_at += r.value_length;
            } else if (r.value_length < 0)
                clear_validity(sink->value_validity, sink->record_capacity, &value_nulls, n);
            key_offsets[n + 1] = key_at;
            value_offsets[n + 1] = value_at;
        }
        if (headers) {
            sink->header_offsets[n + 1] = (int32_t)sink->header_count;
        }
        n++;
    }
    error = RECORD_TRAILING;
    if (TXNKAFKA_UNLIKELY(p != end)) goto failed;
    sink->count = n;
    sink->key_nulls = key_nulls;
    sink->value_nulls = value_nulls;
    return RECORD_OK;
failed:
    /* Validity bits of records after `count` may be cleared: restore them for the next batch. */
    if (!views) {
        for (size_t i = sink->count; i <= n && i < sink->record_capacity; i++) {
            if (key_nulls) sink->key_validity[i >> 3] |= (uint8_t)(1u << (i & 7));
            if (value_nulls) sink->value_validity[i >> 3] |= (uint8_t)(1u << (i & 7));
        }
    }
    if (headers) drop_headers(sink, header_count);
    return error;
}

struct record_cut { /* the end of a piece of a batch: bytes and records of the batch up to it */
    ptrdiff_t size;
    int32_t count;
};

/* Check every record of a batch and deliver none. `cuts` gets the end of each piece of at least `piece`
 * bytes; it has room for (end - records) / piece + 1 of them. */
static inline int cut_records(const struct record_batch *batch, ptrdiff_t piece, int32_t max_headers,
                              struct record_cut *cuts, size_t *cut_count) {
    const uint8_t *p = batch->records, *begin = p;
    *cut_count = 0;
    for (int32_t i = 0; i < batch->count; i++) {
        struct record_fields r;
        int error = RECORD_OK;
        if (p >= batch->end) return RECORD_COUNT;
        p = read_record(p, batch->end, batch->limit, &r, NULL, &error);
        if (!p) return error;
        if (r.header_count > max_headers) return RECORD_MANY_HEADERS;
        if (p - begin < piece && i + 1 < batch->count) continue;
        cuts[*cut_count].size = p - batch->records;
        cuts[(*cut_count)++].count = i + 1;
        begin = p;
    }
    return p == batch->end ? RECORD_OK : RECORD_TRAILING;
}

static inline int walk_batch(const struct record_batch *batch, struct record_sink *sink, int views,
                             int headers, int bounded) {
    switch ((views ? 4 : 0) | (headers ? 2 : 0) | (bounded ? 1 : 0)) {
    case 0:
        return walk_records(batch, sink, 0, 0, 0);
    case 1:
        return walk_records(batch, sink, 0, 0, 1);
    case 2:
        return walk_records(batch, sink, 0, 1, 0);
    case 3:
        return walk_records(batch, sink, 0, 1, 1);
    case 4:
        return walk_records(batch, sink, 1, 0, 0);
    case 5:
        return walk_records(batch, sink, 1, 0, 1);
    case 6:
        return walk_records(batch, sink, 1, 1, 0);
    default:
        return walk_records(batch, sink, 1, 1, 1);
    }
}

#endif
