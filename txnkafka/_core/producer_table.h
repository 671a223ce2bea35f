/* The producers of one partition: the state of each, open transactions, and recently ended ones.
 *
 * Producers are stored without gaps in chunks that never move; only the first chunk grows, so that a
 * partition with one producer needs a kilobyte. An open-addressed index with cells of eight bytes finds them:
 * half a hash, whose first bits are the number of the cell where the search begins, and the place of the
 * producer. The last producer moves to the place of a removed one. A producer needs 168 bytes and 11 to 21
 * bytes of index.
 *
 * Open transactions are a heap whose front has the smallest first offset. They arrive in the order of their
 * offsets, at its end and in one step; in a damaged log they may arrive in any order. Of the ended
 * transactions only those matter for the first unstable offset that began before all that ended after them:
 * `ended` contains these, and its front has the smallest first offset whatever their number.
 *
 * Functions that allocate return 0 when memory is missing, and have then changed nothing. */
#ifndef TXNKAFKA_PRODUCER_TABLE_H
#define TXNKAFKA_PRODUCER_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "folded_product.h"

#define KNOWN_BATCHES 5 /* as many as Kafka keeps per producer (ProducerStateEntry) */
#define NO_PLACE      UINT32_MAX
#define CHUNK_BITS    8
#define CHUNK         (1u << CHUNK_BITS)
#define FIRST_CHUNK   4
#define FEWEST_CELLS  8
#define MOST_PLACES   INT32_MAX /* the limit of a snapshot's count */

typedef struct {
    int32_t last_sequence;
    int32_t offset_delta;
    int64_t last_offset;
    int64_t timestamp;
} known_batch;

/* Fields that every batch needs come first, in one or two cache lines. The known batches are a ring, which
 * begins at its first slot until it is full. */
typedef struct {
    int64_t producer_id;
    int16_t epoch;
    uint8_t newest;      /* slot of the last batch */
    uint8_t known : 6;   /* number of batches */
    uint8_t anew : 1;    /* without batches: the epoch begins with sequence 0; else the next is unknown */
    uint8_t partial : 1; /* there may have been older batches: a snapshot has only the last one */
    int32_t coordinator_epoch;
    int64_t last_timestamp;
    int64_t txn_first_offset; /* -1: no transaction is open */
    int32_t last_sequence[KNOWN_BATCHES];
    int32_t offset_delta[KNOWN_BATCHES];
    struct {
        int64_t last_offset, timestamp;
    } ends[KNOWN_BATCHES]; /* the two fields of a batch are used together */
    uint32_t open_at;             /* the place of its open transaction in the heap */
    int64_t emptied_first_offset; /* of batches without records after cleaning, until their marker */
} producer;

typedef struct {
    uint32_t hash;
    uint32_t place; /* the producer's plus one; 0: no producer */
} index_cell;

typedef struct {
    int64_t first_offset;
    uint32_t place; /* of the producer */
} open_txn;

typedef struct {
    int64_t first_offset;
    int64_t last_offset;
} ended_txn;

typedef struct {
    producer **chunks;
    size_t chunk_count, chunk_room; /* chunks, and allocated pointers to them */
    uint32_t count, room;
    index_cell *cells;
    uint32_t mask, shift; /* cells - 1; bits of a hash besides the cell number */
    uint64_t seed[2];
    open_txn *open; /* a binary heap */
    uint32_t open_count, open_room;
    ended_txn *ended; /* a ring */
    size_t ended_room, ended_first, ended_count;
    uint64_t expired, evicted;
} producer_table;

static inline producer *table_at(const producer_table *t, uint32_t place) {
    return &t->chunks[place >> CHUNK_BITS][place & (CHUNK - 1)];
}

/* Clients choose producer ids, and snapshots come from anywhere: without the random seeds, nobody can
 * choose ids that fall into neighbouring cells. Consecutive ids, as brokers assign them, are spread more
 * evenly than random ones. */
static inline uint32_t table_hash(const producer_table *t, int64_t producer_id) {
    return (uint32_t)(folded_product((uint64_t)producer_id ^ t->seed[0], t->seed[1]) >> 32);
}

static inline uint32_t cell_of(const producer_table *t, uint32_t hash) {
    return (uint32_t)((uint64_t)hash >> t->shift);
}

static inline uint32_t place_by_hash(const producer_table *t, uint32_t hash, int64_t producer_id) {
    if (!t->count) return NO_PLACE;
    for (uint32_t i = cell_of(t, hash);; i = (i + 1) & t->mask) {
        const index_cell *cell = &t->cells[i];
        if (!cell->place) return NO_PLACE;
        if (cell->hash == hash && table_at(t, cell->place - 1)->producer_id == producer_id)
            return cell->place - 1;
    }
}

static inline uint32_t table_place(const producer_table *t, int64_t producer_id) {
    return place_by_hash(t, table_hash(t, producer_id), producer_id);
}

static inline producer *table_find(const producer_table *t, int64_t producer_id) {
    uint32_t place = table_place(t, producer_id);
    return place == NO_PLACE ? NULL : table_at(t, place);
}

/* For a loop that knows its next producers: prefetches first their cells, then the producers. GCC removes
 * the call of a function that only prefetches, but not of one with an asm statement, even an empty one. */
#define KEEP_PREFETCH() __asm__ volatile("")

static inline void expect_cell(const producer_table *t, uint32_t hash) {
    if (t->count) __builtin_prefetch(&t->cells[cell_of(t, hash)]);
    KEEP_PREFETCH();
}

static inline void expect_producer(const producer_table *t, uint32_t hash) {
    uint32_t place = t->count ? t->cells[cell_of(t, hash)].place : 0;
    if (!place) return;
    const char *p = (const char *)table_at(t, place - 1);
    __builtin_prefetch(p, 1);
    __builtin_prefetch(p + 64, 1);
    __builtin_prefetch(p + 128, 1);
    KEEP_PREFETCH();
}

static inline void table_start(producer_table *t, const uint64_t *seed) {
    memset(t, 0, sizeof *t);
    t->seed[0] = seed[0];
    t->seed[1] = seed[1];
}

static inline void table_free(producer_table *t) {
    for (size_t i = 0; i < t->chunk_count; i++) free(t->chunks[i]);
    free(t->chunks);
    free(t->cells);
    free(t->open);
    free(t->ended);
}

static inline size_t table_bytes(const producer_table *t) {
    size_t cells = t->cells ? (size_t)t->mask + 1 : 0;
    return t->room * sizeof(producer) + t->chunk_room * sizeof(producer *) + cells * sizeof(index_cell) +
           t->open_room * sizeof(open_txn) + t->ended_room * sizeof(ended_txn);
}

/* Reserve room for one more producer, open transaction, or ended one. */

static inline int grow_first_chunk(producer_table *t) {
    uint32_t room = t->room ? 2 * t->room : FIRST_CHUNK;
    producer *chunk = realloc(t->room ? t->chunks[0] : NULL, room * sizeof(producer));
    if (!chunk) return 0;
    t->chunks[0] = chunk;
    t->chunk_count = 1;
    t->room = room;
    return 1;
}

static inline int grow_chunks(producer_table *t) {
    if (t->chunk_count == t->chunk_room) {
        size_t room = t->chunk_room ? 2 * t->chunk_room : 1;
        producer **chunks = realloc(t->chunks, room * sizeof(producer *));
        if (!chunks) return 0;
        t->chunks = chunks;
        t->chunk_room = room;
    }
    if (t->room < CHUNK) return grow_first_chunk(t);
    producer *chunk = malloc(CHUNK * sizeof(producer));
    if (!chunk) return 0;
    t->chunks[t->chunk_count++] = chunk;
    t->room += CHUNK;
    return 1;
}

static inline void index_put(producer_table *t, index_cell cell) {
    uint32_t i = cell_of(t, cell.hash);
    while (t->cells[i].place) i = (i + 1) & t->mask;
    t->cells[i] = cell;
}

static inline int grow_index(producer_table *t) {
    index_cell *before = t->cells;
    uint64_t cells = before ? 2 * ((uint64_t)t->mask + 1) : FEWEST_CELLS;
    index_cell *grown = calloc(cells, sizeof(index_cell));
    if (!grown) return 0;
    uint64_t filled = before ? (uint64_t)t->mask + 1 : 0;
    t->cells = grown;
    t->mask = (uint32_t)(cells - 1);
    t->shift = 32;
    while (cells >>= 1) t->shift--;
    for (uint64_t i = 0; i < filled; i++)
        if (before[i].place) index_put(t, before[i]);
    free(before);
    return 1;
}

static inline int table_reserve(producer_table *t, uint32_t producers) {
    if (producers > MOST_PLACES - t->count) return 0;
    uint64_t wanted = (uint64_t)t->count + producers;
    while (t->room < wanted)
        if (!grow_chunks(t)) return 0;
    while (!t->cells || 4 * wanted > 3 * ((uint64_t)t->mask + 1))
        if (!grow_index(t)) return 0;
    return 1;
}

static inline int open_reserve(producer_table *t, uint32_t transactions) {
    uint64_t wanted = (uint64_t)t->open_count + transactions, room = t->open_room;
    if (wanted <= room) return 1;
    while (room < wanted) room = room ? 2 * room : FIRST_CHUNK;
    if (room > UINT32_MAX) return 0;
    open_txn *open = realloc(t->open, room * sizeof(open_txn));
    if (!open) return 0;
    t->open = open;
    t->open_room = (uint32_t)room;
    return 1;
}

static inline int ended_reserve(producer_table *t, size_t transactions) {
    size_t wanted = t->ended_count + transactions, room = t->ended_room;
    if (wanted <= room) return 1;
    while (room < wanted) room = room ? 2 * room : FIRST_CHUNK;
    ended_txn *ended = malloc(room * sizeof(ended_txn));
    if (!ended) return 0;
    for (size_t i = 0; i < t->ended_count; i++)
        ended[i] = t->ended[(t->ended_first + i) & (t->ended_room - 1)];
    free(t->ended);
    t->ended = ended;
    t->ended_room = room;
    t->ended_first = 0;
    return 1;
}

/* Adding and removing producers. */

static inline producer *table_add(producer_table *t, int64_t producer_id, int16_t epoch) {
    if (!table_reserve(t, 1)) return NULL;
    producer *p = table_at(t, t->count++);
    memset(p, 0, sizeof *p);
    p->producer_id = producer_id;
    p->epoch = epoch;
    p->newest = KNOWN_BATCHES - 1;
    p->coordinator_epoch = -1;
    p->last_timestamp = p->txn_first_offset = p->emptied_first_offset = -1;
    index_put(t, (index_cell){table_hash(t, producer_id), t->count});
    return p;
}

static inline uint32_t index_find(const producer_table *t, uint32_t place) {
    uint32_t i = cell_of(t, table_hash(t, table_at(t, place)->producer_id));
    while (t->cells[i].place != place + 1) i = (i + 1) & t->mask;
    return i;
}

/* Move cells after the hole up where allowed: a search must not find an empty cell on its way. */
static inline void index_remove(producer_table *t, uint32_t hole) {
    for (uint32_t i = (hole + 1) & t->mask; t->cells[i].place; i = (i + 1) & t->mask) {
        uint32_t way = (i - cell_of(t, t->cells[i].hash)) & t->mask;
        if (way >= ((i - hole) & t->mask)) {
            t->cells[hole] = t->cells[i];
            hole = i;
        }
    }
    t->cells[hole].place = 0;
}

/* Remove a producer without an open transaction; the last one moves to its place. */
static inline void table_remove(producer_table *t, uint32_t place) {
    uint32_t last = t->count - 1;
    index_remove(t, index_find(t, place));
    if (place != last) {
        producer *moved = table_at(t, last);
        t->cells[index_find(t, last)].place = place + 1;
        if (moved->txn_first_offset != -1) t->open[moved->open_at].place = place;
        *table_at(t, place) = *moved;
    }
    t->count = last;
    if (t->room > CHUNK && t->room - t->count >= 2 * CHUNK) {
        free(t->chunks[--t->chunk_count]);
        t->room -= CHUNK;
    }
}

/* Beginning and ending transactions. */

static inline void open_put(producer_table *t, uint32_t at, open_txn txn) {
    t->open[at] = txn;
    table_at(t, txn.place)->open_at = at;
}

static inline void open_put_up(producer_table *t, uint32_t at, open_txn txn) {
    while (at && t->open[(at - 1) / 2].first_offset > txn.first_offset) {
        open_put(t, at, t->open[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    open_put(t, at, txn);
}

static inline void open_put_down(producer_table *t, uint32_t at, open_txn txn) {
    for (uint32_t child = 2 * at + 1; child < t->open_count; child = 2 * at + 1) {
        if (child + 1 < t->open_count && t->open[child + 1].first_offset < t->open[child].first_offset)
            child++;
        if (t->open[child].first_offset >= txn.first_offset) break;
        open_put(t, at, t->open[child]);
        at = child;
    }
    open_put(t, at, txn);
}

/* Return the producer with the oldest open transaction; NULL: none is open. */
static inline producer *oldest_open(const producer_table *t) {
    return t->open_count ? table_at(t, t->open[0].place) : NULL;
}

/* open_reserve() must have reserved room. */
static inline void txn_open(producer_table *t, uint32_t place, int64_t first_offset) {
    table_at(t, place)->txn_first_offset = first_offset;
    open_put_up(t, t->open_count++, (open_txn){first_offset, place});
}

static inline void txn_close(producer_table *t, producer *p) {
    uint32_t at = p->open_at;
    open_txn last = t->open[--t->open_count];
    p->txn_first_offset = -1;
    if (at == t->open_count) return;
    if (at && t->open[(at - 1) / 2].first_offset > last.first_offset)
        open_put_up(t, at, last);
    else
        open_put_down(t, at, last);
}

static inline ended_txn *ended_at(const producer_table *t, size_t i) {
    return &t->ended[(t->ended_first + i) & (t->ended_room - 1)];
}

/* ended_reserve() must have reserved room. */
static inline void ended_put(producer_table *t, int64_t first_offset, int64_t last_offset) {
    while (t->ended_count && ended_at(t, t->ended_count - 1)->first_offset >= first_offset)
        t->ended_count--;
    *ended_at(t, t->ended_count++) = (ended_txn){first_offset, last_offset};
}

static inline void ended_drop(producer_table *t, int64_t high_watermark) {
    while (t->ended_count && ended_at(t, 0)->last_offset < high_watermark) {
        t->ended_first = (t->ended_first + 1) & (t->ended_room - 1);
        t->ended_count--;
    }
}

/* The known batches of one producer. */

static inline known_batch known_in(const producer *p, unsigned slot) {
    return (known_batch){p->last_sequence[slot], p->offset_delta[slot], p->ends[slot].last_offset,
                         p->ends[slot].timestamp};
}

static inline known_batch known_at(const producer *p, unsigned i) { /* 0 is the oldest */
    return known_in(p, p->known < KNOWN_BATCHES ? i : (p->newest + 1u + i) % KNOWN_BATCHES);
}

static inline known_batch newest_batch(const producer *p) {
    return known_in(p, p->newest);
}

static inline void set_batch(producer *p, unsigned slot, known_batch batch) {
    p->last_sequence[slot] = batch.last_sequence;
    p->offset_delta[slot] = batch.offset_delta;
    p->ends[slot].last_offset = batch.last_offset;
    p->ends[slot].timestamp = batch.timestamp;
}

static inline void know_batch(producer *p, known_batch batch) {
    /* without a branch, since the next slot is unpredictable */
    p->newest = (uint8_t)((p->newest + 1) & -(p->newest != KNOWN_BATCHES - 1));
    if (p->known < KNOWN_BATCHES) p->known++;
    if (p->known == KNOWN_BATCHES) p->partial = 0;
    set_batch(p, p->newest, batch);
}

static inline void know_older_batch(producer *p, known_batch batch) {
    for (unsigned slot = p->known; slot > 0; slot--) set_batch(p, slot, known_in(p, slot - 1));
    set_batch(p, 0, batch);
    p->newest = p->known++;
    if (p->known == KNOWN_BATCHES) p->partial = 0;
}

static inline void forget_batches(producer *p) {
    p->newest = KNOWN_BATCHES - 1;
    p->known = 0;
    p->anew = 1;
    p->partial = 0;
}

/* Return the number of the known batch with these sequences, counted from the oldest; -1: none. */
static inline int find_batch(const producer *p, int32_t last_sequence, int32_t offset_delta) {
    int equal = 0;
    for (int slot = 0; slot < KNOWN_BATCHES; slot++) equal |= p->last_sequence[slot] == last_sequence;
    for (int i = 0; equal && i < p->known; i++) {
        known_batch batch = known_at(p, (unsigned)i);
        if (batch.last_sequence == last_sequence && batch.offset_delta == offset_delta) return i;
    }
    return -1;
}

#define NUMBER_OF(bits)                                                                                      \
    static inline int##bits##_t take_i##bits(const uint8_t *p) {                                             \
        uint##bits##_t v;                                                                                    \
        memcpy(&v, p, sizeof v);                                                                             \
        return (int##bits##_t)__builtin_bswap##bits(v);                                                      \
    }
NUMBER_OF(16)
NUMBER_OF(32)
NUMBER_OF(64)

#endif
