# Many batches: some are looked at together, so that memory is asked for before it is needed.
from libc.stdint cimport int8_t, int64_t, uint8_t, uint32_t

from txnkafka._core.producer_append cimport Ended, apply, tell
from txnkafka._core.producer_rules cimport (
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
    expect_producer,
    place_by_hash,
    producer,
    producer_table,
    table_at,
    table_hash,
)
from txnkafka._core.scan cimport AT_END, BatchEntry, read_entry

cdef enum:
    BLOCK = 32


cdef inline void expect(
    const producer_table* t, const BatchEntry* entries, Py_ssize_t count, uint32_t* hashes
) noexcept nogil:
    """Fetch what these batches need: a table of a million producers is in no cache."""
    cdef Py_ssize_t i
    for i in range(count):
        hashes[i] = table_hash(t, entries[i].producer_id)
        expect_cell(t, hashes[i])
    for i in range(count):
        expect_producer(t, hashes[i])


cdef inline int replay_block(
    producer_table* t, const BatchEntry* entries, Py_ssize_t count, int64_t start_offset, Ended* ended
) noexcept nogil:
    """At most BLOCK batches. The number of transactions that ended, or -1 without memory."""
    cdef uint32_t[BLOCK] hashes
    cdef uint32_t place
    cdef int found = 0, outcome
    cdef Py_ssize_t i
    expect(t, entries, count, hashes)
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


cdef inline bint check_block(
    producer_table* t, const BatchEntry* entries, Py_ssize_t count, const Request* r, int8_t* codes
) noexcept nogil:
    """At most BLOCK batches. False without memory, behind those that were taken in."""
    cdef uint32_t[BLOCK] hashes
    cdef uint32_t place
    cdef Py_ssize_t i
    cdef ended_txn ended
    cdef producer* p
    cdef Verdict verdict
    expect(t, entries, count, hashes)
    for i in range(count):
        if entries[i].producer_id < 0:
            codes[i] = 0
            continue
        place = place_by_hash(t, hashes[i], entries[i].producer_id)
        p = NULL if place == NO_PLACE else table_at(t, place)
        if r.origin == FROM_CLIENT and p != NULL and find_duplicate(p, &entries[i]) >= 0:
            verdict = DUPLICATE
        else:
            verdict = judge(p, &entries[i], r)
        codes[i] = verdict_codes[<int>verdict]
        if verdict == FINE and apply(t, place, &entries[i], &ended) < 0:
            return False
    return True


cdef inline Py_ssize_t check_all(
    producer_table* t, const uint8_t* p, Py_ssize_t size, const Request* r, int8_t* codes
) noexcept nogil:
    """The number of batches, up to bytes that are no whole one; -1 without memory."""
    cdef const uint8_t* end = p + size
    cdef BatchEntry[BLOCK] entries
    cdef Py_ssize_t count = 0, i = BLOCK
    while i == BLOCK:
        i = 0
        while i < BLOCK and p < end and read_entry(p, end, &entries[i]) == AT_END:
            p += entries[i].size
            i += 1
        if not check_block(t, entries, i, r, codes + count):
            return -1
        count += i
    return count
