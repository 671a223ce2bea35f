/* What encoding reads, and why it may refuse it. Nothing here owns memory. */
#ifndef TXNKAFKA_ENCODE_INPUT_H
#define TXNKAFKA_ENCODE_INPUT_H

#include <stdint.h>

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

#endif
