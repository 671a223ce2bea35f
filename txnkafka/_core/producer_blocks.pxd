# Many batches: some are looked at together, so that memory is asked for before it is needed.
from libc.stdint cimport int64_t, uint32_t

from txnkafka._core.batch_entry cimport BatchEntry
from txnkafka._core.producer_append cimport Ended, apply, tell
from txnkafka._core.producer_table cimport (
    expect_cell,
    expect_producer,
    place_by_hash,
    producer_table,
    table_hash,
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
