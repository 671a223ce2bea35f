/* Operations on all producers: write and load snapshots, expire by age, sort. */
#ifndef TXNKAFKA_PRODUCER_SNAPSHOT_H
#define TXNKAFKA_PRODUCER_SNAPSHOT_H

#include "producer_table.h"

#define SNAPSHOT_ENTRY 46 /* bytes; see txnkafka/storage/formats/producer_snapshot.py */

typedef struct {
    uint64_t key;
    uint32_t place;
} sort_key;

/* Radix sort, least significant byte first, which is stable; a byte that is equal in all keys costs only
 * one comparison. `keys` has room for twice `count`; returns the half with the result. */
static inline sort_key *sort_keys(sort_key *keys, size_t count) {
    sort_key *from = keys, *to = keys + count;
    uint64_t differ = 0;
    size_t descents = 0;
    for (size_t i = 1; i < count; i++) {
        differ |= keys[i].key ^ keys[0].key;
        descents += keys[i - 1].key > keys[i].key;
    }
    for (int shift = 0; descents && shift < 64; shift += 8) {
        if (!(differ >> shift & 255)) continue;
        size_t begin[257] = {0};
        for (size_t i = 0; i < count; i++) begin[(from[i].key >> shift & 255) + 1]++;
        for (int i = 1; i < 256; i++) begin[i] += begin[i - 1];
        for (size_t i = 0; i < count; i++) to[begin[from[i].key >> shift & 255]++] = from[i];
        sort_key *sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

#define PUT_NUMBER(bits)                                                                                     \
    static inline uint8_t *put_i##bits(uint8_t *p, int##bits##_t value) {                                    \
        uint##bits##_t v = __builtin_bswap##bits((uint##bits##_t)value);                                     \
        memcpy(p, &v, sizeof v);                                                                             \
        return p + sizeof v;                                                                                 \
    }
PUT_NUMBER(16)
PUT_NUMBER(32)
PUT_NUMBER(64)

static inline uint8_t *put_entry(uint8_t *to, const producer *p) {
    known_batch last = p->known ? newest_batch(p) : (known_batch){-1, 0, -1, -1};
    to = put_i64(to, p->producer_id);
    to = put_i16(to, p->epoch);
    to = put_i32(to, last.last_sequence);
    to = put_i64(to, last.last_offset);
    to = put_i32(to, last.offset_delta);
    to = put_i64(to, p->last_timestamp);
    to = put_i32(to, p->coordinator_epoch);
    return put_i64(to, p->txn_first_offset);
}

/* Write all entries sorted by producer id; `keys` has room for twice the producers. */
static inline void put_entries(const producer_table *t, sort_key *keys, uint8_t *to) {
    for (uint32_t place = 0; place < t->count; place++)
        keys[place] = (sort_key){(uint64_t)table_at(t, place)->producer_id, place};
    const sort_key *order = sort_keys(keys, t->count);
    for (uint32_t i = 0; i < t->count; i++) {
        if (i + 16 < t->count) __builtin_prefetch(table_at(t, order[i + 16].place));
        to = put_entry(to, table_at(t, order[i].place));
    }
}

typedef enum { TAKEN, IMPOSSIBLE, BEYOND, TWICE, NO_MEMORY_FOR_IT } entry_outcome;

/* The largest offset in an entry. */
static inline int64_t entry_offset(const uint8_t *entry) {
    int64_t last_offset = take_i64(entry + 14), txn_first_offset = take_i64(entry + 38);
    return last_offset > txn_first_offset ? last_offset : txn_first_offset;
}

/* Add one entry of the snapshot at `end_offset` (-1: not known) as a new producer. The checksum is right, so
 * an invalid entry is a bug of its writer. */
static inline entry_outcome take_entry(producer_table *t, const uint8_t *from, int64_t end_offset) {
    int64_t producer_id = take_i64(from);
    int16_t epoch = take_i16(from + 8);
    known_batch last = {take_i32(from + 10), take_i32(from + 22), take_i64(from + 14), take_i64(from + 26)};
    int32_t coordinator_epoch = take_i32(from + 34);
    int64_t txn_first_offset = take_i64(from + 38);
    /* a batch of a replica or of an old log may have any epoch */
    if (producer_id < 0 || last.last_sequence < -1 || last.last_offset < -1 || last.offset_delta < 0 ||
        txn_first_offset < -1)
        return IMPOSSIBLE;
    if (end_offset >= 0 && entry_offset(from) >= end_offset) return BEYOND;
    if (table_find(t, producer_id)) return TWICE;
    producer *p = table_add(t, producer_id, epoch);
    if (!p) return NO_MEMORY_FOR_IT;
    p->anew = 1; /* a broker that loaded an entry without a batch requires sequence 0 */
    if (last.last_offset >= 0) {
        know_batch(p, last);
        p->partial = 1;
    }
    p->last_timestamp = last.timestamp;
    p->coordinator_epoch = coordinator_epoch;
    p->txn_first_offset = txn_first_offset;
    return TAKEN;
}

/* Build the heap of open transactions after take_entry(). Returns 0 if memory is missing. */
static inline int open_transactions(producer_table *t) {
    uint32_t count = 0;
    for (uint32_t place = 0; place < t->count; place++) count += table_at(t, place)->txn_first_offset >= 0;
    if (!open_reserve(t, count)) return 0;
    for (uint32_t place = 0; place < t->count; place++)
        if (table_at(t, place)->txn_first_offset >= 0)
            txn_open(t, place, table_at(t, place)->txn_first_offset);
    return 1;
}

/* A producer with an open transaction is never removed. */

static inline int is_expired(const producer *p, int64_t now_ms, int64_t expiration_ms) {
    int64_t idle_ms;
    if (p->txn_first_offset >= 0) return 0;
    /* a difference beyond 64 bits is decided by its sign */
    if (__builtin_sub_overflow(now_ms, p->last_timestamp, &idle_ms)) return now_ms > p->last_timestamp;
    return idle_ms >= expiration_ms;
}

static inline void remove_expired(producer_table *t, int64_t now_ms, int64_t expiration_ms) {
    uint32_t before = t->count;
    /* backwards, since the last one moves to the place of a removed one */
    for (uint32_t place = t->count; place-- > 0;)
        if (is_expired(table_at(t, place), now_ms, expiration_ms)) table_remove(t, place);
    t->expired += before - t->count;
}

/* Among equal timestamps smaller producer ids are removed first, whatever the order of insertion. */
static inline void remove_oldest(producer_table *t, sort_key *keys, uint32_t number) {
    size_t idle = 0;
    for (uint32_t place = 0; place < t->count; place++)
        if (table_at(t, place)->txn_first_offset < 0)
            keys[idle++] = (sort_key){(uint64_t)table_at(t, place)->producer_id, place};
    sort_key *order = sort_keys(keys, idle);
    if (order != keys) memcpy(keys, order, idle * sizeof *keys);
    for (size_t i = 0; i < idle; i++)
        keys[i].key = (uint64_t)table_at(t, keys[i].place)->last_timestamp ^ (UINT64_C(1) << 63);
    order = sort_keys(keys, idle);
    /* removals change places, but not ids */
    for (uint32_t i = 0; i < number; i++) order[i].key = (uint64_t)table_at(t, order[i].place)->producer_id;
    for (uint32_t i = 0; i < number; i++) table_remove(t, table_place(t, (int64_t)order[i].key));
    t->evicted += number;
}

#endif
