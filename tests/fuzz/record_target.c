/* The walk over the records of one batch, alone, for libFuzzer or for the driver below.
 *
 *   byte 0      bit 0 views, bit 1 headers, bit 2 bounded
 *   byte 1      number of records
 *   byte 2      readable bytes behind the records (0: the batch ends where its memory ends)
 *   the rest    the records
 *
 * The arrays are as large as the library would make them, each in memory of its own, so that the address
 * sanitizer sees every byte too far. An accepted batch must give columns that fit together.
 *
 *   clang -fsanitize=fuzzer,address,undefined -DTXNKAFKA_LIBFUZZER -I txnkafka/_core record_target.c
 *   cc -fsanitize=address,undefined -I txnkafka/_core record_target.c && ./a.out SEED ITERATIONS FILE... */
#include <stdio.h>
#include <stdlib.h>

#include "record.h"

enum { CONTROL_BYTES = 3, LARGEST = 4096 };

#define REQUIRE(condition)                                                     \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);    \
            abort();                                                           \
        }                                                                      \
    } while (0)

static void *room(size_t size) {
    void *memory = malloc(size ? size : 1);
    REQUIRE(memory);
    memset(memory, 0, size ? size : 1);
    return memory;
}

static void make_sink(struct record_sink *sink, size_t records, size_t data) {
    const size_t headers = data / 2 + 64, bits = (records + 7) / 8 + 8, header_bits = (headers + 7) / 8 + 8;
    memset(sink, 0, sizeof *sink);
    sink->record_capacity = records;
    sink->header_capacity = headers;
    sink->max_headers = INT32_MAX;
    sink->offsets = room(records * 8);
    sink->timestamps = room(records * 8);
    sink->key_offsets = room(records * 4 + 4);
    sink->value_offsets = room(records * 4 + 4);
    sink->key_data = room(data + COLUMN_SLACK);
    sink->value_data = room(data + COLUMN_SLACK);
    sink->key_validity = room(bits);
    sink->value_validity = room(bits);
    sink->key_positions = room(records * 4);
    sink->value_positions = room(records * 4);
    sink->key_lengths = room(records * 4);
    sink->value_lengths = room(records * 4);
    sink->header_offsets = room(records * 4 + 4);
    sink->header_key_offsets = room(headers * 4 + 4);
    sink->header_value_offsets = room(headers * 4 + 4);
    sink->header_key_data = room(data + COLUMN_SLACK);
    sink->header_value_data = room(data + COLUMN_SLACK);
    sink->header_value_validity = room(header_bits);
    memset(sink->key_validity, 0xff, bits);
    memset(sink->value_validity, 0xff, bits);
    memset(sink->header_value_validity, 0xff, header_bits);
}

static void free_sink(struct record_sink *sink) {
    free(sink->offsets);
    free(sink->timestamps);
    free(sink->key_offsets);
    free(sink->value_offsets);
    free(sink->key_data);
    free(sink->value_data);
    free(sink->key_validity);
    free(sink->value_validity);
    free(sink->key_positions);
    free(sink->value_positions);
    free(sink->key_lengths);
    free(sink->value_lengths);
    free(sink->header_offsets);
    free(sink->header_key_offsets);
    free(sink->header_value_offsets);
    free(sink->header_key_data);
    free(sink->header_value_data);
    free(sink->header_value_validity);
}

static void check_views(const struct record_sink *sink, size_t size) {
    for (size_t i = 0; i < sink->count; i++) {
        REQUIRE(sink->key_lengths[i] >= -1 && sink->value_lengths[i] >= -1);
        if (sink->key_lengths[i] > 0) REQUIRE(sink->key_positions[i] + (size_t)sink->key_lengths[i] <= size);
        if (sink->value_lengths[i] > 0)
            REQUIRE(sink->value_positions[i] + (size_t)sink->value_lengths[i] <= size);
    }
}

static void check_copies(const struct record_sink *sink, size_t size) {
    for (size_t i = 0; i < sink->count; i++) {
        REQUIRE(sink->key_offsets[i] <= sink->key_offsets[i + 1]);
        REQUIRE(sink->value_offsets[i] <= sink->value_offsets[i + 1]);
    }
    REQUIRE((size_t)sink->key_offsets[sink->count] + (size_t)sink->value_offsets[sink->count] <= size);
}

static void check_headers(const struct record_sink *sink, size_t size) {
    REQUIRE((size_t)sink->header_offsets[sink->count] == sink->header_count);
    for (size_t h = 0; h < sink->header_count; h++) {
        REQUIRE(sink->header_key_offsets[h] <= sink->header_key_offsets[h + 1]);
        REQUIRE(sink->header_value_offsets[h] <= sink->header_value_offsets[h + 1]);
    }
    REQUIRE((size_t)sink->header_key_offsets[sink->header_count] <= size);
    REQUIRE((size_t)sink->header_value_offsets[sink->header_count] <= size);
}

/* 1 when the batch is accepted. */
static int walk_one(const uint8_t *data, size_t size) {
    if (size < CONTROL_BYTES) return 0;
    const int views = data[0] & 1, headers = data[0] >> 1 & 1, bounded = data[0] >> 2 & 1;
    const size_t length = size - CONTROL_BYTES, behind = data[2];
    uint8_t *source = malloc(length + behind ? length + behind : 1);
    REQUIRE(source);
    memcpy(source, data + CONTROL_BYTES, length);
    memset(source + length, 0x80, behind);
    struct record_sink sink;
    make_sink(&sink, data[1], length);
    struct record_batch batch = {
        .records = source, .end = source + length, .source = source, .limit = source + length + behind,
        .base_offset = 100, .base_timestamp = 1000, .count = data[1], .start_offset = 101, .end_offset = 103};
    const int error = walk_batch(&batch, &sink, views, headers, bounded);
    if (error == RECORD_OK) {
        REQUIRE(sink.count <= (size_t)batch.count && (bounded || sink.count == (size_t)batch.count));
        if (views) check_views(&sink, length);
        else check_copies(&sink, length);
        if (headers) check_headers(&sink, length);
    } else
        REQUIRE(sink.count == 0 && sink.header_count == 0 && sink.key_nulls == 0 && sink.value_nulls == 0);
    free_sink(&sink);
    free(source);
    return error == RECORD_OK;
}

#ifdef TXNKAFKA_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    walk_one(data, size);
    return 0;
}
#else
/* Without libFuzzer: changed copies of the files, from a seed. Prints how many were walked and accepted. */
static uint64_t state;

static uint32_t next_number(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 11) % below;
}

static size_t change(uint8_t *data, size_t size) {
    static const uint8_t odd[] = {0x00, 0x01, 0x02, 0x7e, 0x7f, 0x80, 0x81, 0xfe, 0xff, 0x0f, 0x10, 0x40};
    const size_t at = next_number((uint32_t)size);
    switch (next_number(6)) {
    case 0: data[at] ^= (uint8_t)(1u << next_number(8)); break;
    case 1: data[at] = odd[next_number(sizeof odd)]; break;
    case 2: data[at] = (uint8_t)next_number(256); break;
    case 3: return at > CONTROL_BYTES ? at : size;
    case 4:
        if (size < LARGEST) {
            memmove(data + at + 1, data + at, size - at);
            data[at] = odd[next_number(sizeof odd)];
            return size + 1;
        }
        break;
    default: data[at] = (uint8_t)(data[at] + next_number(9) - 4); break;
    }
    return size;
}

int main(int arguments, char **names) {
    if (arguments < 4) return 2;
    state = strtoull(names[1], NULL, 10) * 2654435761u + 1;
    const long iterations = strtol(names[2], NULL, 10);
    const int files = arguments - 3;
    static uint8_t seeds[64][LARGEST], data[LARGEST + 1];
    size_t sizes[64];
    REQUIRE(files <= 64);
    for (int i = 0; i < files; i++) {
        FILE *file = fopen(names[3 + i], "rb");
        REQUIRE(file);
        sizes[i] = fread(seeds[i], 1, LARGEST, file);
        fclose(file);
        REQUIRE(sizes[i] > CONTROL_BYTES);
    }
    long accepted = 0;
    for (long n = 0; n < iterations; n++) {
        const int i = (int)next_number((uint32_t)files);
        size_t size = sizes[i];
        memcpy(data, seeds[i], size);
        data[0] = (uint8_t)next_number(8);
        if (next_number(2)) data[2] = 0;
        for (uint32_t step = next_number(4); step > 0; step--) size = change(data, size);
        accepted += walk_one(data, size);
    }
    printf("%ld walked, %ld accepted\n", iterations, accepted);
    return 0;
}
#endif
