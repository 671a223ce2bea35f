/* CRC-32C (Castagnoli, reflected polynomial 0x82F63B78) of record batches.
 *
 * One function is chosen when the module is loaded:
 *   vpclmulqdq  x86 with AVX-512: four 512-bit accumulators folded by carry-less multiplication
 *   sse42       x86 with SSE4.2 and PCLMUL: three lanes of 256 bytes
 *   armv8       ARMv8 with the CRC extension: the same three lanes
 *   table       everything else: eight bytes at a time through tables
 *
 * Segments are read once, from memory that is rarely in cache, so the wide loops prefetch 4 KiB ahead, and
 * the lanes are short: lanes of a kilobyte and more defeat the hardware prefetcher and halve the speed.
 *
 * All functions take and return the finished value, as zlib's crc32() does: crc32c(0, "123456789") =
 * 0xe3069283. */
#ifndef TXNKAFKA_CRC32C_H
#define TXNKAFKA_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define TXNKAFKA_CRC_X86 1
#elif defined(__aarch64__)
#include <arm_acle.h>
#define TXNKAFKA_CRC_ARM 1
#if defined(__linux__)
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#endif
#endif

#define CRC_POLYNOMIAL 0x82F63B78u
#define CRC_LANE       256
#define CRC_PREFETCH   4096

typedef uint32_t (*crc32c_function)(uint32_t value, const uint8_t *p, size_t n);

static uint32_t crc_table[8][256];
/* Polynomials are stored bit-reflected: bit 31 is x^0. */
static uint32_t crc_lane_shift[2][4][256]; /* a CRC after one and after two lanes of zero bytes */
static uint64_t crc_lane_factor[2];        /* the same as factors for carry-less multiplication */
static uint64_t crc_fold[8][2]; /* factors that shift 128 bits by i + 1 times 128 bits; [7] by 2048 */

static uint32_t crc_multiply(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (int i = 31; i >= 0; i--) {
        if ((a >> i) & 1) product ^= b;
        b = (b & 1) ? (b >> 1) ^ CRC_POLYNOMIAL : b >> 1;
    }
    return product;
}

static uint32_t crc_x_power(uint64_t n) { /* x^n modulo the polynomial */
    uint32_t result = 0x80000000u, square = 0x40000000u;
    for (; n; n >>= 1) {
        if (n & 1) result = crc_multiply(result, square);
        square = crc_multiply(square, square);
    }
    return result;
}

static uint32_t crc32c_table(uint32_t value, const uint8_t *p, size_t n) {
    uint64_t crc = (uint32_t)~value;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        crc ^= word;
        crc = crc_table[7][crc & 255] ^ crc_table[6][(crc >> 8) & 255] ^ crc_table[5][(crc >> 16) & 255] ^
              crc_table[4][(crc >> 24) & 255] ^ crc_table[3][(crc >> 32) & 255] ^
              crc_table[2][(crc >> 40) & 255] ^ crc_table[1][(crc >> 48) & 255] ^ crc_table[0][crc >> 56];
    }
    uint32_t rest = (uint32_t)crc;
    while (n--) rest = crc_table[0][(rest ^ *p++) & 255] ^ (rest >> 8);
    return ~rest;
}

#if TXNKAFKA_CRC_X86
#define CRC_SSE __attribute__((target("sse4.2,pclmul")))
#define CRC_512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,vpclmulqdq,pclmul,sse4.2")))

CRC_SSE static inline uint32_t crc_sse_rest(uint32_t crc, const uint8_t *p, size_t n) {
    uint64_t wide = crc;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    while (n--) crc = _mm_crc32_u8(crc, *p++);
    return crc;
}

CRC_SSE static uint32_t crc32c_sse42(uint32_t value, const uint8_t *p, size_t n) {
    uint64_t a = (uint32_t)~value;
    while (n >= 3 * CRC_LANE) {
        uint64_t b = 0, c = 0;
        for (const uint8_t *end = p + CRC_LANE; p < end; p += 64) {
            _mm_prefetch((const char *)p + CRC_PREFETCH, _MM_HINT_T0);
            _mm_prefetch((const char *)p + CRC_PREFETCH + CRC_LANE, _MM_HINT_T0);
            _mm_prefetch((const char *)p + CRC_PREFETCH + 2 * CRC_LANE, _MM_HINT_T0);
            for (int i = 0; i < 64; i += 8) {
                uint64_t x, y, z;
                memcpy(&x, p + i, 8);
                memcpy(&y, p + i + CRC_LANE, 8);
                memcpy(&z, p + i + 2 * CRC_LANE, 8);
                a = _mm_crc32_u64(a, x);
                b = _mm_crc32_u64(b, y);
                c = _mm_crc32_u64(c, z);
            }
        }
        __m128i first = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)a),
                                             _mm_cvtsi64_si128((int64_t)crc_lane_factor[1]), 0);
        __m128i second = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)b),
                                              _mm_cvtsi64_si128((int64_t)crc_lane_factor[0]), 0);
        a = c ^ _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(first, second)));
        p += 2 * CRC_LANE;
        n -= 3 * CRC_LANE;
    }
    return ~crc_sse_rest((uint32_t)a, p, n);
}

#define CRC_LOAD(p) _mm512_loadu_si512((const void *)(p))
/* a shifted by the factor's distance, added to x */
#define CRC_FOLD(a, factor, x)                                                                               \
    _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(a, factor, 0x00),                                     \
                              _mm512_clmulepi64_epi128(a, factor, 0x11), x, 0x96)
#define CRC_FACTOR(i) _mm_set_epi64x((int64_t)crc_fold[i][1], (int64_t)crc_fold[i][0])

CRC_512 static uint32_t crc32c_vpclmulqdq(uint32_t value, const uint8_t *p, size_t n) {
    uint32_t crc = ~value;
    if (n < 128) return ~crc_sse_rest(crc, p, n);
    __m512i by_512 = _mm512_broadcast_i32x4(CRC_FACTOR(3));
    __m512i sum = _mm512_xor_si512(CRC_LOAD(p), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    p += 64;
    n -= 64;
    if (n >= 448) {
        __m512i by_2048 = _mm512_broadcast_i32x4(CRC_FACTOR(7));
        __m512i b = CRC_LOAD(p), c = CRC_LOAD(p + 64), d = CRC_LOAD(p + 128);
        for (p += 192, n -= 192; n >= 256; p += 256, n -= 256) {
            for (int line = 0; line < 256; line += 64)
                _mm_prefetch((const char *)p + CRC_PREFETCH + line, _MM_HINT_T0);
            sum = CRC_FOLD(sum, by_2048, CRC_LOAD(p));
            b = CRC_FOLD(b, by_2048, CRC_LOAD(p + 64));
            c = CRC_FOLD(c, by_2048, CRC_LOAD(p + 128));
            d = CRC_FOLD(d, by_2048, CRC_LOAD(p + 192));
        }
        sum = CRC_FOLD(CRC_FOLD(CRC_FOLD(sum, by_512, b), by_512, c), by_512, d);
    }
    for (; n >= 64; p += 64, n -= 64) sum = CRC_FOLD(sum, by_512, CRC_LOAD(p));
    /* four lanes to one: lane i is 3 - i times 128 bits away from the last */
    __m512i factors =
        _mm512_set_epi64(0, 0, (int64_t)crc_fold[0][1], (int64_t)crc_fold[0][0], (int64_t)crc_fold[1][1],
                         (int64_t)crc_fold[1][0], (int64_t)crc_fold[2][1], (int64_t)crc_fold[2][0]);
    __m512i moved = _mm512_xor_si512(_mm512_clmulepi64_epi128(sum, factors, 0x00),
                                     _mm512_clmulepi64_epi128(sum, factors, 0x11));
    __m128i last =
        _mm_xor_si128(_mm_xor_si128(_mm512_extracti32x4_epi32(moved, 0), _mm512_extracti32x4_epi32(moved, 1)),
                      _mm_xor_si128(_mm512_extracti32x4_epi32(moved, 2), _mm512_extracti32x4_epi32(sum, 3)));
    uint64_t wide = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(last));
    return ~crc_sse_rest((uint32_t)_mm_crc32_u64(wide, (uint64_t)_mm_extract_epi64(last, 1)), p, n);
}
#endif

#if TXNKAFKA_CRC_ARM
#if defined(__clang__)
#define CRC_ARM __attribute__((target("crc")))
#else
#define CRC_ARM __attribute__((target("+crc")))
#endif

static inline uint32_t crc_shift(const uint32_t table[4][256], uint32_t crc) {
    return table[0][crc & 255] ^ table[1][(crc >> 8) & 255] ^ table[2][(crc >> 16) & 255] ^
           table[3][crc >> 24];
}

CRC_ARM static uint32_t crc32c_armv8(uint32_t value, const uint8_t *p, size_t n) {
    uint32_t a = ~value;
    while (n >= 3 * CRC_LANE) {
        uint32_t b = 0, c = 0;
        for (const uint8_t *end = p + CRC_LANE; p < end; p += 64) {
            __builtin_prefetch(p + CRC_PREFETCH);
            __builtin_prefetch(p + CRC_PREFETCH + CRC_LANE);
            __builtin_prefetch(p + CRC_PREFETCH + 2 * CRC_LANE);
            for (int i = 0; i < 64; i += 8) {
                uint64_t x, y, z;
                memcpy(&x, p + i, 8);
                memcpy(&y, p + i + CRC_LANE, 8);
                memcpy(&z, p + i + 2 * CRC_LANE, 8);
                a = __crc32cd(a, x);
                b = __crc32cd(b, y);
                c = __crc32cd(c, z);
            }
        }
        a = crc_shift(crc_lane_shift[1], a) ^ crc_shift(crc_lane_shift[0], b) ^ c;
        p += 2 * CRC_LANE;
        n -= 3 * CRC_LANE;
    }
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        a = __crc32cd(a, word);
    }
    while (n--) a = __crc32cb(a, *p++);
    return ~a;
}
#endif

/* Names in order of preference; NULL where this machine cannot run it. */
static struct {
    const char *name;
    crc32c_function function;
} crc_implementations[3];
static int crc_implementation_count = 0;
static crc32c_function crc_chosen = crc32c_table;

static void crc_offer(const char *name, crc32c_function function) {
    crc_implementations[crc_implementation_count].name = name;
    crc_implementations[crc_implementation_count++].function = function;
}

static inline void crc_initialize(void) {
    if (crc_implementation_count) return;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = (c & 1) ? (c >> 1) ^ CRC_POLYNOMIAL : c >> 1;
        crc_table[0][i] = c;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            crc_table[k][i] = crc_table[0][crc_table[k - 1][i] & 255] ^ (crc_table[k - 1][i] >> 8);
    for (int lanes = 0; lanes < 2; lanes++) {
        uint64_t bits = 8ull * CRC_LANE * (uint64_t)(lanes + 1);
        uint32_t power = crc_x_power(bits);
        for (int k = 0; k < 4; k++)
            for (uint32_t i = 0; i < 256; i++)
                crc_lane_shift[lanes][k][i] = crc_multiply(i << (8 * k), power);
        /* the CRC instruction that reduces the product multiplies by x^32, a reflected product by x */
        crc_lane_factor[lanes] = crc_x_power(bits - 33);
    }
    for (int i = 0; i < 8; i++) {
        uint64_t bits = i < 7 ? 128ull * (uint64_t)(i + 1) : 2048;
        crc_fold[i][0] = (uint64_t)crc_x_power(bits + 31);
        crc_fold[i][1] = (uint64_t)crc_x_power(bits - 33);
    }
#if TXNKAFKA_CRC_X86
    __builtin_cpu_init();
    int sse = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
    if (sse && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("vpclmulqdq"))
        crc_offer("vpclmulqdq", crc32c_vpclmulqdq);
    if (sse) crc_offer("sse42", crc32c_sse42);
#elif TXNKAFKA_CRC_ARM
#if defined(__linux__)
    if (getauxval(AT_HWCAP) & HWCAP_CRC32) crc_offer("armv8", crc32c_armv8);
#else
    crc_offer("armv8", crc32c_armv8); /* every Apple CPU has it */
#endif
#endif
    crc_offer("table", crc32c_table);
    crc_chosen = crc_implementations[0].function;
}

#endif
