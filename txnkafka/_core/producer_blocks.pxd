# Many batches: some are looked at together, so that memory is asked for before it is needed.
from libc.stdint cimport INT32_MAX, int8_t, int64_t, uint8_t, uint32_t

from txnkafka._core.batch_entry cimport (
    AT_END,
    MAX_OFFSET,
    BatchEntry,
    read_entry,
)
from txnkafka._core.batch_header cimport BATCH_LENGTH, HEADER_SIZE, LOG_OVERHEAD, MAGIC, PRODUCER_ID
from txnkafka._core.bytes cimport load_i32, load_i64
from txnkafka._core.producer_append cimport Ended, apply, tell
from txnkafka._core.producer_rules cimport (
    DAMAGED,
    DUPLICATE,
    FINE,
    FROM_CLIENT,
    Request,
    Verdict,
    find_duplicate,
    judge,
    verdict_codes,
)
from txnkafka._core.producer_table cimport (
    NO_PLACE,
    ended_txn,
    expect_cell,
    expect_header,
    expect_producer,
    place_by_hash,
    producer,
    producer_table,
    table_at,
    table_hash,
    take_next,
)

cdef enum:
    BLOCK = 32


cdef inline int replay_block(
    producer_table* t, const BatchEntry* entries, Py_ssize_t count, int64_t start_offset, Ended* ended
) noexcept nogil:
    """At most BLOCK batches. The number of transactions that ended, or -1 without memory."""
    cdef uint32_t[BLOCK] hashes
    cdef uint32_t place
    cdef int found = 0, outcome
    cdef Py_ssize_t i
    for i in range(count):
        hashes[i] = table_hash(t, entries[i].producer_id)
        expect_cell(t, hashes[i])
    for i in range(count):
        expect_producer(t, hashes[i])
    for i in range(count):
        if entries[i].last_offset < start_offset or entries[i].producer_id < 0:
            continue
        place = place_by_hash(t, hashes[i], entries[i].producer_id)
        outcome = apply(t, place, &entries[i], &ended[found].txn)
        if outcome < 0:
            return -1
        if outcome:
            tell(t, &entries[i], &ended[found])
            found += 1
    return found


cdef inline int64_t size_of(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Bytes of the batch at p; 0 when there is no whole one. Nearly all are of magic 2."""
    cdef BatchEntry e
    cdef int64_t size
    if end - p >= HEADER_SIZE and p[MAGIC] == 2:
        size = LOG_OVERHEAD + <int64_t>load_i32(p + BATCH_LENGTH)
        if HEADER_SIZE <= size <= end - p and 0 <= load_i64(p) <= MAX_OFFSET - INT32_MAX and p[23] < 128:
            return size
    return e.size if read_entry(p, end, &e) == AT_END else 0


cdef inline int check_one(
    producer_table* t, uint32_t hash, const uint8_t* p, const uint8_t* end, const Request* r
) noexcept nogil:
    """The verdict on a batch, which is taken in if that is FINE; -1 without memory."""
    cdef BatchEntry e
    cdef ended_txn ended
    cdef producer* known = NULL
    cdef Verdict verdict
    cdef uint32_t place
    if p[MAGIC] < 2:                # batches of old formats have no producer, and may end before its field
        return FINE
    place = place_by_hash(t, hash, load_i64(p + PRODUCER_ID))
    if place != NO_PLACE:
        known = table_at(t, place)
        if r.origin == FROM_CLIENT and take_next(known, p):
            return FINE
    if read_entry(p, end, &e) != AT_END:
        return DAMAGED
    if e.producer_id < 0:
        return FINE
    if r.origin == FROM_CLIENT and known != NULL and find_duplicate(known, &e) >= 0:
        return DUPLICATE
    verdict = judge(known, &e, r)
    if verdict == FINE and apply(t, place, &e, &ended) < 0:
        return -1
    return verdict


cdef inline Py_ssize_t check_all(
    producer_table* t, const uint8_t* p, Py_ssize_t size, const Request* r, int8_t* codes
) noexcept nogil:
    """The number of batches, up to bytes that are no whole one; -1 without memory."""
    cdef const uint8_t* end = p + size
    cdef const uint8_t* batches[BLOCK]
    cdef uint32_t[BLOCK] hashes
    cdef Py_ssize_t count = 0, found = BLOCK, i
    cdef int64_t length = 1
    cdef int verdict
    while found == BLOCK:
        found = 0
        while found < BLOCK and p < end:
            length = size_of(p, end)
            if not length:
                break
            expect_header(p, length)
            batches[found] = p
            hashes[found] = table_hash(t, load_i64(p + PRODUCER_ID)) if p[MAGIC] >= 2 else 0
            expect_cell(t, hashes[found])
            p += length
            found += 1
        for i in range(found):
            expect_producer(t, hashes[i])
        for i in range(found):
            verdict = check_one(t, hashes[i], batches[i], end, r)
            if verdict < 0:
                return -1
            codes[count + i] = verdict_codes[verdict]
        count += found
    return count
