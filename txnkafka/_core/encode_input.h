/* The input of encoding, and the reasons to refuse it. No struct here owns memory. */
#ifndef TXNKAFKA_ENCODE_INPUT_H
#define TXNKAFKA_ENCODE_INPUT_H

#include <stdint.h>

enum encode_error {
    ENCODE_OK = 0,
    ENCODE_COLUMN,    /* the offsets of a binary column decrease or exceed its data */
    ENCODE_HEADERS,   /* the same of header_offsets */
    ENCODE_TIMESTAMP, /* below -1 */
    ENCODE_OFFSET,    /* not above the previous one, below the base offset, or too far from it */
    ENCODE_SIZE,      /* larger than a batch can be */
    ENCODE_CHANGED,   /* the input changed between the two passes */
};

struct encode_field {
    const uint8_t *data;
    int64_t length; /* -1: null */
};

/* Byte strings: in Arrow's layout, or if `fields` is set, one by one. */
struct encode_column {
    const void *offsets; /* NULL: all values are null */
    const uint8_t *data, *validity;
    int64_t size;
    int wide; /* offsets are int64, else int32 */
    const struct encode_field *fields;
};

struct encode_input {
    struct encode_column keys, values, header_keys, header_values;
    const int64_t *timestamps;
    const int64_t *offsets;     /* NULL: consecutive from the base offset on */
    const void *header_offsets; /* NULL: no headers */
    int wide_header_offsets;
    int64_t header_count;
    int64_t start, stop; /* the records to write */
    int64_t base_offset, base_timestamp;
};

#endif
