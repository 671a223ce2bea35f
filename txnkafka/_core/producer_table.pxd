# The structures of producer_table.h, the operations on all producers, and the table as an object.
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from txnkafka._core.validate cimport IncomingBatch

cdef extern from "producer_table.h" nogil:
    enum:
        KNOWN_BATCHES
        NO_PLACE

    ctypedef struct known_batch:
        int32_t last_sequence
        int32_t offset_delta
        int64_t last_offset
        int64_t timestamp

    ctypedef struct producer:
        int64_t producer_id
        int64_t last_timestamp
        int64_t txn_first_offset
        int64_t emptied_first_offset
        int32_t coordinator_epoch
        int16_t epoch
        uint8_t known
        uint8_t anew
        uint8_t partial

    ctypedef struct open_txn:
        int64_t first_offset
        uint32_t place

    ctypedef struct ended_txn:
        int64_t first_offset
        int64_t last_offset

    ctypedef struct producer_table:
        uint32_t count
        open_txn* open
        uint32_t open_count
        size_t ended_count
        uint64_t expired
        uint64_t evicted

    void table_start(producer_table* t, const uint64_t* seed)
    void table_free(producer_table* t)
    size_t table_bytes(const producer_table* t)
    bint table_reserve(producer_table* t, uint32_t producers)
    bint open_reserve(producer_table* t, uint32_t transactions)
    bint ended_reserve(producer_table* t, size_t transactions)
    producer* table_at(const producer_table* t, uint32_t place)
    uint32_t table_hash(const producer_table* t, int64_t producer_id)
    uint32_t place_by_hash(const producer_table* t, uint32_t hash, int64_t producer_id)
    uint32_t table_place(const producer_table* t, int64_t producer_id)
    producer* table_find(const producer_table* t, int64_t producer_id)
    void expect_cell(const producer_table* t, uint32_t hash)
    void expect_producer(const producer_table* t, uint32_t hash)
    producer* table_add(producer_table* t, int64_t producer_id, int16_t epoch)
    producer* oldest_open(const producer_table* t)
    void txn_open(producer_table* t, uint32_t place, int64_t first_offset)
    void txn_close(producer_table* t, producer* p)
    ended_txn* ended_at(const producer_table* t, size_t i)
    void ended_put(producer_table* t, int64_t first_offset, int64_t last_offset)
    void ended_drop(producer_table* t, int64_t high_watermark)
    known_batch newest_batch(const producer* p)
    known_batch known_at(const producer* p, unsigned int i)
    int find_batch(const producer* p, int32_t last_sequence, int32_t offset_delta)
    void know_batch(producer* p, known_batch batch)
    void know_older_batch(producer* p, known_batch batch)
    void forget_batches(producer* p)

cdef extern from "producer_snapshot.h" nogil:
    enum:
        SNAPSHOT_ENTRY

    ctypedef struct sort_key:
        pass

    ctypedef enum entry_outcome:
        TAKEN
        IMPOSSIBLE
        BEYOND
        TWICE
        NO_MEMORY_FOR_IT

    uint8_t* put_i16(uint8_t* p, int16_t value)
    uint8_t* put_i32(uint8_t* p, int32_t value)
    void put_entries(const producer_table* t, sort_key* keys, uint8_t* to)
    int64_t entry_offset(const uint8_t* entry)
    entry_outcome take_entry(producer_table* t, const uint8_t* entry, int64_t end_offset)
    bint open_transactions(producer_table* t)
    void remove_expired(producer_table* t, int64_t now_ms, int64_t expiration_ms)
    void remove_oldest(producer_table* t, sort_key* keys, uint32_t number)


cdef class ProducerTable:
    cdef producer_table t
    cdef int64_t end_offset         # of replay_checked: the end of the log so far,
    cdef int64_t hole               # and the first offset after its last gap
    cdef object decide(
        self, IncomingBatch batch, int origin, int transaction_version, bint verified, object lowest_sequence,
        bint supports_epoch_bump,
    )
    cdef object take(self, IncomingBatch batch)
    cdef int make_room(self, uint32_t batches) except -1
