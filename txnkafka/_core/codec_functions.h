/* Decompression of one batch by C functions, without the interpreter: those of lz4, zstd and ISA-L in the
   shared objects of Python's bindings, which export them mostly, else those of the system's libraries;
   snappy.h for snappy.

   These functions read what the readers in txnkafka/record/codecs read, with the same bounds.
   Whatever is damaged, larger than its limit, or framed in an unusual way is CODEC_OTHER: those readers then
   decide, so that errors exist once. Every number of the input is read once: a mapped file may change. */
#ifndef TXNKAFKA_CODEC_FUNCTIONS_H
#define TXNKAFKA_CODEC_FUNCTIONS_H

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "snappy.h"

enum codec_status { CODEC_DONE, CODEC_OTHER, CODEC_ROOM };
enum { GZIP_CODEC = 1, SNAPPY_CODEC = 2, LZ4_CODEC = 3, ZSTD_CODEC = 4, CODECS = 5 };

/* The memory of the result. Positions count from ``data``; ``limit`` is the last one that the batch may use.
   After CODEC_ROOM, ``end`` is the capacity that is needed to try again. */
struct codec_output {
    uint8_t *data;
    int64_t end;
    int64_t capacity;
    int64_t limit;
};

/* The beginning of ISA-L's struct inflate_state (igzip_lib.h, the same in version 2). The rest is memory. */
struct inflate_head {
    uint8_t *next_out;
    uint32_t avail_out;
    uint32_t total_out;
    const uint8_t *next_in;
    uint64_t read_in;
    uint32_t avail_in;
    int32_t read_in_length;
};
enum { INFLATE_STATE_BYTES = 256 << 10 }; /* it takes 87 KB */

/* What one reader needs; not for two threads at once. */
struct codec_contexts {
    struct inflate_head *inflate;
    void *zstd;
};

static struct {
    int (*lz4)(const char *in, char *out, int in_size, int capacity);
    const char *(*lz4_version)(void);
    void *(*zstd_create)(void);
    size_t (*zstd_free)(void *context);
    size_t (*zstd)(void *context, void *out, size_t capacity, const void *in, size_t in_size);
    unsigned (*zstd_is_error)(size_t code);
    const char *(*zstd_version)(void);
    unsigned (*zstd_number)(void);
    void (*inflate_init)(struct inflate_head *state);
    int (*inflate)(struct inflate_head *state);
    uint32_t (*gzip_crc)(uint32_t before, const uint8_t *in, uint64_t size);
} codec_library;

/* zstd before 1.5.6, the version of Kafka's Java client, does not notice each damage. */
enum { LEAST_ZSTD = 10506 };

/* For each codec the file of Python's binding, which name_binding sets, and the system's library. */
static const char *codec_file[CODECS][2] = {
    {NULL, NULL}, {NULL, "libisal.so.2"}, {NULL, NULL}, {NULL, "liblz4.so.1"}, {NULL, "libzstd.so.1"},
};
static const char *codec_found[CODECS]; /* the file in use */
static pthread_once_t codec_once[CODECS] = {
    PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT,
};

struct codec_symbol {
    const char *name;
    void *pointer; /* to the pointer of the function */
};

static int find_in(const char *file, const struct codec_symbol *symbols, size_t count) {
    void *library = file == NULL ? NULL : dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return 0;
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, symbols[i].name);
        if (found == NULL) {
            dlclose(library);
            return 0;
        }
        memcpy(symbols[i].pointer, &found, sizeof found);
    }
    return 1;
}

static void find_symbols(int codec, const struct codec_symbol *symbols, size_t count) {
    for (int i = 0; i < 2 && codec_found[codec] == NULL; i++) {
        if (find_in(codec_file[codec][i], symbols, count))
            codec_found[codec] = codec_file[codec][i];
        if (codec == ZSTD_CODEC && codec_found[codec] != NULL && codec_library.zstd_number() < LEAST_ZSTD)
            codec_found[codec] = NULL;
    }
}

#define FIND_SYMBOLS(codec, symbols) find_symbols(codec, symbols, sizeof symbols / sizeof symbols[0])

static void find_gzip(void) {
    const struct codec_symbol symbols[] = {
        {"isal_inflate_init", &codec_library.inflate_init},
        {"isal_inflate_stateless", &codec_library.inflate},
        {"crc32_gzip_refl", &codec_library.gzip_crc},
    };
    FIND_SYMBOLS(GZIP_CODEC, symbols);
}

static void find_snappy(void) {
    codec_found[SNAPPY_CODEC] = "txnkafka";
}

static void find_lz4(void) {
    const struct codec_symbol symbols[] = {
        {"LZ4_decompress_safe", &codec_library.lz4},
        {"LZ4_versionString", &codec_library.lz4_version},
    };
    FIND_SYMBOLS(LZ4_CODEC, symbols);
}

static void find_zstd(void) {
    const struct codec_symbol symbols[] = {
        {"ZSTD_createDCtx", &codec_library.zstd_create},
        {"ZSTD_freeDCtx", &codec_library.zstd_free},
        {"ZSTD_decompressDCtx", &codec_library.zstd},
        {"ZSTD_isError", &codec_library.zstd_is_error},
        {"ZSTD_versionString", &codec_library.zstd_version},
        {"ZSTD_versionNumber", &codec_library.zstd_number},
    };
    FIND_SYMBOLS(ZSTD_CODEC, symbols);
}

/* Return whether the functions of a codec were found; looks for them in the first call. */
static int has_codec(int codec) {
    static void (*const find[CODECS])(void) = {NULL, find_gzip, find_snappy, find_lz4, find_zstd};
    if (codec <= 0 || codec >= CODECS)
        return 0;
    pthread_once(&codec_once[codec], find[codec]);
    return codec_found[codec] != NULL;
}

/* Set the file of a binding, before the codec is used. Returns 0 without memory. */
static int name_binding(int codec, const char *file) {
    free((void *)codec_file[codec][0]);
    codec_file[codec][0] = strdup(file);
    return codec_file[codec][0] != NULL;
}

static void free_contexts(struct codec_contexts *contexts) {
    free(contexts->inflate);
    if (contexts->zstd != NULL)
        codec_library.zstd_free(contexts->zstd);
}

static inline uint32_t little_u32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint32_t big_u32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Ask for memory up to ``stop``. */
static inline enum codec_status need_room(struct codec_output *out, int64_t stop) {
    if (stop <= out->capacity)
        return CODEC_DONE;
    out->end = stop;
    return CODEC_ROOM;
}

/* The largest content of a block that may have ``most`` bytes: the limit of the batch may be lower. */
static inline int64_t block_room(const struct codec_output *out, int64_t most) {
    return most < out->limit - out->end ? most : out->limit - out->end;
}

/* xxHash32 of fewer than 16 bytes: the checksum of LZ4 frame headers. */
static uint32_t short_xxh32(const uint8_t *p, size_t size) {
    uint32_t hash = 374761393u + (uint32_t)size;
    for (; size >= 4; p += 4, size -= 4) {
        hash += little_u32(p) * 3266489917u;
        hash = (hash << 17 | hash >> 15) * 668265263u;
    }
    for (; size > 0; p++, size--) {
        hash += *p * 374761393u;
        hash = (hash << 11 | hash >> 21) * 2654435761u;
    }
    hash = (hash ^ hash >> 15) * 2246822519u;
    hash = (hash ^ hash >> 13) * 3266489917u;
    return hash ^ hash >> 16;
}

/* Return the size of an LZ4 frame header; 0 if it is not one that is read here. */
static int64_t lz4_header(const uint8_t *in, int64_t size, int *summed, int64_t *block_max) {
    uint8_t head[10]; /* flags, block descriptor, content size */
    int64_t length;
    if (size < 7 || little_u32(in) != 0x184D2204u)
        return 0;
    length = (head[0] = in[4]) & 0x08 ? 10 : 2;
    if (4 + length >= size)
        return 0;
    memcpy(head + 1, in + 5, (size_t)length - 1);
    /* version 1, independent blocks without checksums, no dictionary; the sizes of blocks that exist */
    if ((head[0] & 0xF3) != 0x60 || head[1] & 0x8F || head[1] < 0x40)
        return 0;
    if (in[4 + length] != (short_xxh32(head, (size_t)length) >> 8 & 0xFF))
        return 0;
    *summed = head[0] & 0x04;
    *block_max = (int64_t)1 << (2 * (head[1] >> 4) + 8);
    return 4 + length + 1;
}

static enum codec_status lz4_payload(const uint8_t *in, int64_t size, struct codec_output *out) {
    int summed = 0, after_empty = 0;
    int64_t block_max = 0, at = lz4_header(in, size, &summed, &block_max);
    if (at == 0)
        return CODEC_OTHER;
    while (at + 4 <= size) {
        const uint32_t word = little_u32(in + at);
        const int64_t length = word & 0x7FFFFFFF, before = out->end;
        at += 4;
        if (length == 0)
            return summed && at + 4 > size ? CODEC_OTHER : CODEC_DONE;
        if (length > block_max || length > size - at)
            return CODEC_OTHER;
        if (word >> 31) {
            if (length > out->limit - out->end)
                return CODEC_OTHER;
            if (need_room(out, out->end + length))
                return CODEC_ROOM;
            memcpy(out->data + out->end, in + at, (size_t)length);
            out->end += length;
        } else {
            const int64_t room = block_room(out, block_max);
            int written;
            if (need_room(out, out->end + room))
                return CODEC_ROOM;
            written = codec_library.lz4(
                (const char *)in + at, (char *)out->data + out->end, (int)length, (int)room);
            if (written < 0)
                return CODEC_OTHER;
            out->end += written;
        }
        if (out->end == before)
            after_empty = 1;
        else if (after_empty)
            return CODEC_OTHER;
        at += length;
    }
    return CODEC_OTHER;
}

static enum codec_status snappy_block(const uint8_t *in, int64_t size, struct codec_output *out) {
    uint32_t length;
    const int head = snappy_length(in, size, &length);
    if (head == 0 || length > out->limit - out->end)
        return CODEC_OTHER;
    if (need_room(out, out->end + length))
        return CODEC_ROOM;
    if (!snappy_elements(in + head, size - head, out->data + out->end, length))
        return CODEC_OTHER;
    out->end += length;
    return CODEC_DONE;
}

static enum codec_status snappy_payload(const uint8_t *in, int64_t size, struct codec_output *out) {
    int64_t at = 16; /* after xerial's header */
    if (size < 16 || memcmp(in, "\x82SNAPPY", 8) != 0)
        return snappy_block(in, size, out);
    while (at + 4 <= size) {
        const int64_t length = big_u32(in + at);
        enum codec_status status;
        at += 4;
        if (length > size - at) /* also a header that is repeated */
            return CODEC_OTHER;
        status = snappy_block(in + at, length, out);
        if (status != CODEC_DONE)
            return status;
        at += length;
    }
    return CODEC_DONE;
}

/* Return the bound of the size of a frame's content, and where it ends; -1 for a frame that is not read
   here. ``announced`` is the size that its header contains, or -1. */
static int64_t zstd_bound(
    const uint8_t *in, int64_t size, int64_t *stop, uint64_t *announced, int *has_announced) {
    static const int dictionary_bytes[4] = {0, 1, 2, 4}, content_bytes[4] = {0, 2, 4, 8};
    int64_t at = 5, bound = 0, block_max;
    const uint8_t descriptor = in[4];
    const int single = descriptor & 0x20;
    const int told = descriptor >> 6 == 0 && single ? 1 : content_bytes[descriptor >> 6];
    uint64_t window = 0, content = 0;
    uint32_t head = 0;
    if (descriptor & 0x08 || at + !single + dictionary_bytes[descriptor & 3] + told > size)
        return -1;
    if (!single) {
        const uint8_t packed = in[at++];
        window = (uint64_t)1 << (10 + (packed >> 3));
        window += (window >> 3) * (packed & 7);
    }
    at += dictionary_bytes[descriptor & 3];
    for (int i = 0; i < told; i++)
        content |= (uint64_t)in[at + i] << (8 * i);
    content += told == 2 ? 256 : 0;
    at += told;
    window = single ? content : window;
    if (window > 1 << 27)
        return -1;
    block_max = window < 128 << 10 ? (int64_t)window : 128 << 10;
    while (!(head & 1)) {
        int kind;
        if (at + 3 > size)
            return -1;
        head = in[at] | (uint32_t)in[at + 1] << 8 | (uint32_t)in[at + 2] << 16;
        kind = head >> 1 & 3;
        bound += kind == 2 ? block_max : head >> 3;
        at += 3 + (kind == 1 ? 1 : head >> 3);
        if (kind == 3 || at > size)
            return -1;
    }
    *stop = at + (descriptor & 0x04);
    *announced = content;
    *has_announced = told > 0;
    return *stop > size ? -1 : bound;
}

static enum codec_status zstd_payload(
    struct codec_contexts *contexts, const uint8_t *in, int64_t size, struct codec_output *out
) {
    int64_t at = 0;
    if (contexts->zstd == NULL && (contexts->zstd = codec_library.zstd_create()) == NULL)
        return CODEC_OTHER;
    do {
        int64_t bound, room, stop = 0;
        uint64_t announced = 0;
        int has_announced = 0;
        size_t written;
        if (size - at < 8 || little_u32(in + at) != 0xFD2FB528u)
            return CODEC_OTHER;
        bound = zstd_bound(in + at, size - at, &stop, &announced, &has_announced);
        if (bound < 0)
            return CODEC_OTHER;
        room = block_room(out, bound);
        if (need_room(out, out->end + room))
            return CODEC_ROOM;
        written = codec_library.zstd(
            contexts->zstd, out->data + out->end, (size_t)room, in + at, (size_t)stop);
        if (codec_library.zstd_is_error(written) || (has_announced && written != announced))
            return CODEC_OTHER;
        out->end += (int64_t)written;
        at += stop;
    } while (at < size);
    return CODEC_DONE;
}

/* One member with a plain header, which is the whole payload. */
static enum codec_status gzip_payload(
    struct codec_contexts *contexts, const uint8_t *in, int64_t size, struct codec_output *out
) {
    struct inflate_head *state = contexts->inflate;
    uint32_t crc, length;
    if (size < 18 || memcmp(in, "\x1f\x8b\x08", 4) != 0)
        return CODEC_OTHER;
    crc = little_u32(in + size - 8);
    length = little_u32(in + size - 4);
    if (length > (uint64_t)(out->limit - out->end))
        return CODEC_OTHER;
    if (need_room(out, out->end + length))
        return CODEC_ROOM;
    if (state == NULL) {
        state = contexts->inflate = (struct inflate_head *)calloc(1, INFLATE_STATE_BYTES);
        if (state == NULL)
            return CODEC_OTHER;
        codec_library.inflate_init(state);
    }
    state->next_in = in + 10;
    state->avail_in = (uint32_t)(size - 18);
    state->next_out = out->data + out->end;
    state->avail_out = length;
    if (codec_library.inflate(state) != 0 || state->avail_in != 0 || state->avail_out != 0)
        return CODEC_OTHER;
    if (codec_library.gzip_crc(0, out->data + out->end, length) != crc)
        return CODEC_OTHER;
    out->end += length;
    return CODEC_DONE;
}

/* Decompress what follows the header of one batch of magic 1 or 2 to ``out->end``. Unless it is CODEC_DONE,
   ``out->data`` after that position is undefined. */
static enum codec_status decompress_payload(
    struct codec_contexts *contexts, int codec, const uint8_t *in, int64_t size, struct codec_output *out
) {
    if (!has_codec(codec))
        return CODEC_OTHER;
    if (codec == GZIP_CODEC)
        return gzip_payload(contexts, in, size, out);
    if (codec == SNAPPY_CODEC)
        return snappy_payload(in, size, out);
    return codec == LZ4_CODEC ? lz4_payload(in, size, out) : zstd_payload(contexts, in, size, out);
}

#endif
