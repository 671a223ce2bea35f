/* A multiplication that combines both halves of the product: every bit of the factors affects every bit of
 * the result. With a secret factor, an attacker cannot choose numbers whose hashes collide. */
#ifndef TXNKAFKA_FOLDED_PRODUCT_H
#define TXNKAFKA_FOLDED_PRODUCT_H

#include <stdint.h>

static inline uint64_t folded_product(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#endif
