/* Text of single values: decimal numbers, base64, JSON and CSV strings.
 *
 * Every put_... function writes at `out` and returns the position after its output. The output of a value
 * has at most text_bound(size) bytes plus quotes; up to TEXT_SLACK bytes after it may be overwritten, and the
 * next call overwrites these. Values are in a data column: TEXT_SLACK bytes after them may be read (see
 * COLUMN_SLACK), but have no influence. */
#ifndef TXNKAFKA_TEXT_H
#define TXNKAFKA_TEXT_H

#include <stdint.h>
#include <string.h>

#define TEXT_SLACK 32

static uint16_t base64_pairs[4096]; /* twelve bits -> two characters */
static uint16_t decimal_pairs[100];
static uint8_t escape_length[256];  /* size of the JSON text for this byte, the maximum if not ASCII */
static uint8_t longest_text[256];   /* maximum size of the text for this byte in any form */
static char escape_text[128][8];

static void fill_text_tables(void) {
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    static const char hex[] = "0123456789abcdef";
    for (int i = 0; i < 4096; i++) base64_pairs[i] = (uint16_t)(alphabet[i >> 6] | alphabet[i & 63] << 8);
    for (int i = 0; i < 100; i++) decimal_pairs[i] = (uint16_t)(('0' + i / 10) | ('0' + i % 10) << 8);
    for (int i = 0; i < 128; i++) {
        const char control[8] = {'\\', 'u', '0', '0', hex[i >> 4], hex[i & 15], 0, 0};
        memcpy(escape_text[i], control, 8);
        const int is_control = i < 0x20 || i == 0x7f;
        escape_length[i] = is_control ? 6 : 1;
        if (!is_control) escape_text[i][0] = (char)i;
    }
    for (int i = 128; i < 256; i++) escape_length[i] = 3; /* replaced by U+FFFD */
    for (int i = 0; letters[i]; i += 2) {
        const int byte = letters[i];
        escape_length[byte] = 2;
        escape_text[byte][0] = '\\';
        escape_text[byte][1] = letters[i + 1];
    }
    memcpy(longest_text, escape_length, sizeof longest_text);
    memset(longest_text, 6, 0x20); /* CSV on a terminal escapes as \u what JSON writes as \r */
}

static inline size_t base64_size(size_t size) {
    return (size + 2) / 3 * 4;
}

/* The maximum size of a value's text in any of the forms below. */
static inline size_t text_bound(size_t size) {
    return 6 * size;
}

/* The same, more exact: needs a pass over the value, which pays for large values. */
static size_t close_text_bound(const uint8_t *data, size_t size) {
    size_t escaped = 0, encoded = base64_size(size);
    for (size_t i = 0; i < size; i++) escaped += longest_text[data[i]];
    return escaped > encoded ? escaped : encoded;
}

static inline uint8_t *put_bytes(uint8_t *out, const void *data, size_t size) {
    memcpy(out, data, size);
    return out + size;
}

/* For literals, whose length the compiler knows. */
static inline uint8_t *put_text(uint8_t *out, const char *text) {
    return put_bytes(out, text, strlen(text));
}

static inline uint8_t *put_decimal(uint8_t *out, int64_t value) {
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char digits[20 + TEXT_SLACK];
    int first = 20;
    *out = '-';
    out += value < 0;
    for (; rest >= 100; rest /= 100) memcpy(digits + (first -= 2), decimal_pairs + rest % 100, 2);
    if (rest >= 10)
        memcpy(digits + (first -= 2), decimal_pairs + rest, 2);
    else
        digits[--first] = (char)('0' + rest);
    memcpy(out, digits + first, 20);
    return out + (20 - first);
}

/* Encode six bytes (the high ones of `bits`) as eight characters. */
static inline uint64_t base64_text(uint64_t bits) {
    return base64_pairs[bits >> 52] | (uint64_t)base64_pairs[bits >> 40 & 4095] << 16 |
           (uint64_t)base64_pairs[bits >> 28 & 4095] << 32 | (uint64_t)base64_pairs[bits >> 16 & 4095] << 48;
}

static inline uint8_t *put_base64(uint8_t *out, const uint8_t *data, size_t size) {
    uint64_t bits, text;
    for (; size >= 6; data += 6, size -= 6, out += 8) {
        memcpy(&bits, data, 8);
        text = base64_text(__builtin_bswap64(bits));
        memcpy(out, &text, 8);
    }
    if (size == 0) return out;
    memcpy(&bits, data, 8);
    text = base64_text(__builtin_bswap64(bits) & ~(~UINT64_C(0) >> 8 * size));
    memcpy(out, &text, 8);
    out += base64_size(size);
    if (size % 3) out[-1] = '=';
    if (size % 3 == 1) out[-2] = '=';
    return out;
}

static inline int is_continuation(uint8_t byte) {
    return (byte & 0xc0) == 0x80;
}

/* Return the length of the character at `data`, whose first byte is not ASCII, or minus the number of
 * bytes that Java's decoder replaces by one U+FFFD. Java replaces an encoded surrogate as a whole, Python
 * and the WHATWG each of its bytes. */
static inline int utf8_step(const uint8_t *data, size_t size) {
    const uint8_t lead = data[0];
    const uint8_t lowest = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t highest = lead == 0xf4 ? 0x8f : 0xbf;
    if (lead < 0xc2 || lead > 0xf4 || size < 2 || data[1] < lowest || data[1] > highest) return -1;
    if (lead < 0xe0) return 2;
    if (size < 3 || !is_continuation(data[2])) return -2;
    if (lead < 0xf0) return lead == 0xed && data[1] >= 0xa0 ? -3 : 3;
    return size < 4 || !is_continuation(data[3]) ? -3 : 4;
}

/* Return the code point of a character that controls a terminal, else 0: controls of the second half of
 * Latin-1 (C1), line and paragraph separators, and changes of the writing direction. `length` is that of
 * the character, which is not ASCII. */
static inline unsigned hidden_command(const uint8_t *data, int length) {
    if (length == 2) {
        const unsigned point = (data[0] & 0x1fu) << 6 | (data[1] & 0x3fu);
        return point < 0xa0 || point == 0x61c ? point : 0;
    }
    if (data[0] != 0xe2 || length != 3) return 0;
    const unsigned point = 0x2000u | (data[1] & 0x3fu) << 6 | (data[2] & 0x3fu);
    const int is_command = point == 0x200e || point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
                           (point >= 0x2066 && point <= 0x2069);
    return is_command ? point : 0;
}

/* Write \u and four digits: six bytes. */
static inline uint8_t *put_code_point(uint8_t *out, unsigned point) {
    static const char hex[] = "0123456789abcdef";
    const char text[6] = {'\\', 'u',
                          hex[point >> 12 & 15], hex[point >> 8 & 15], hex[point >> 4 & 15], hex[point & 15]};
    return put_bytes(out, text, 6);
}

/* Count the bytes before the first that is a control (DEL, too), '"', '\\' or not ASCII; 8 when there is
 * none. */
static inline size_t plain_bytes(uint64_t eight) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t quote = eight ^ ones * '"', backslash = eight ^ ones * '\\';
    /* A borrow or carry only affects bytes after (above) a marked one, so the first mark is correct. */
    const uint64_t below = eight - ones * 0x20, above = eight + ones;
    const uint64_t marks = (eight | below | above | (quote - ones) | (backslash - ones)) & ones * 0x80;
    return marks ? (size_t)__builtin_ctzll(marks) >> 3 : 8;
}

/* Write a JSON string in quotes. Bytes that are not UTF-8 become U+FFFD with `replace`, otherwise the
 * result is NULL. Hidden commands are escaped. */
static inline uint8_t *put_json_string(uint8_t *out, const uint8_t *data, size_t size, int replace) {
    const uint8_t *end = data + size;
    *out++ = '"';
    while (data < end) {
        uint64_t eight;
        memcpy(&eight, data, 8);
        memcpy(out, &eight, 8);
        const size_t plain = plain_bytes(eight), left = (size_t)(end - data);
        if (plain >= left) {
            out += left;
            break;
        }
        data += plain;
        out += plain;
        if (plain == 8) continue;
        if (*data < 0x80) {
            memcpy(out, escape_text[*data], 8);
            out += escape_length[*data++];
            continue;
        }
        do { /* characters that are not ASCII come in runs */
            const int step = utf8_step(data, (size_t)(end - data));
            if (step < 0 && !replace) return NULL;
            const unsigned command = step > 0 ? hidden_command(data, step) : 0;
            if (command) {
                out = put_code_point(out, command);
                data += step;
                continue;
            }
            memcpy(out, step < 0 ? "\xef\xbf\xbd" : (const char *)data, 4);
            out += step < 0 ? 3 : step;
            data += step < 0 ? -step : step;
        } while (data < end && *data >= 0x80);
    }
    *out++ = '"';
    return out;
}

/* Write a CSV field in quotes (RFC 4180), with '"' doubled. NULL when the bytes are not UTF-8. */
static inline uint8_t *put_csv_string(uint8_t *out, const uint8_t *data, size_t size) {
    const uint8_t *end = data + size;
    *out++ = '"';
    while (data < end) {
        uint64_t eight;
        memcpy(&eight, data, 8);
        memcpy(out, &eight, 8);
        const size_t plain = plain_bytes(eight), left = (size_t)(end - data);
        if (plain >= left) {
            out += left;
            break;
        }
        data += plain;
        out += plain;
        if (plain == 8) continue;
        if (*data < 0x80) {
            if (*data == '"') *out++ = '"';
            *out++ = *data++;
            continue;
        }
        do {
            const int step = utf8_step(data, (size_t)(end - data));
            if (step < 0) return NULL;
            memcpy(out, data, 4);
            out += step;
            data += step;
        } while (data < end && *data >= 0x80);
    }
    *out++ = '"';
    return out;
}

/* The same for a terminal: controls except tab and line feed, and hidden commands, become \u and digits. */
static inline uint8_t *put_csv_shown(uint8_t *out, const uint8_t *data, size_t size) {
    const uint8_t *end = data + size;
    *out++ = '"';
    while (data < end) {
        const int step = *data < 0x80 ? 1 : utf8_step(data, (size_t)(end - data));
        if (step < 0) return NULL;
        const int is_control = step == 1 && (*data < 0x20 || *data == 0x7f) && *data != '\t' && *data != '\n';
        const unsigned command = is_control ? *data : step > 1 ? hidden_command(data, step) : 0;
        if (command || is_control) {
            out = put_code_point(out, command);
        } else {
            if (*data == '"') *out++ = '"';
            out = put_bytes(out, data, (size_t)step);
        }
        data += step;
    }
    *out++ = '"';
    return out;
}

/* Double every '"' of the text start .. end in place; the text needs its size again as room after it. */
static inline uint8_t *double_quotes(uint8_t *start, uint8_t *end) {
    size_t quotes = 0;
    for (const uint8_t *p = start; p < end; p++) quotes += *p == '"';
    for (uint8_t *from = end, *to = end + quotes; from < to;) {
        *--to = *--from;
        if (*from == '"') *--to = '"';
    }
    return end + quotes;
}

#endif
