# Updates of the producer table by batches that are in the log, which are never refused.
from libc.stdint cimport int32_t, int64_t, uint32_t

from txnkafka._core.batch_entry cimport BatchEntry
from txnkafka._core.batch_header cimport (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_TRANSACTIONAL,
    CONTROL_ABORT,
    CONTROL_COMMIT,
)
from txnkafka._core.producer_rules cimport last_sequence_of
from txnkafka._core.producer_table cimport (
    NO_PLACE,
    ended_put,
    ended_reserve,
    ended_txn,
    expect_cell,
    expect_producer,
    forget_batches,
    know_batch,
    know_older_batch,
    known_at,
    known_batch,
    oldest_open,
    open_reserve,
    place_by_hash,
    producer,
    producer_table,
    table_add,
    table_at,
    table_hash,
    txn_close,
    txn_open,
)

cdef enum:
    BLOCK = 32                  # batches processed together: memory is prefetched before it is needed

cdef struct Ended:
    ended_txn txn
    int64_t producer_id
    int64_t last_stable_offset
    bint is_aborted


cdef inline void apply_data(producer_table* t, uint32_t place, const BatchEntry* e) noexcept nogil:
    cdef producer* p = table_at(t, place)
    cdef known_batch batch
    if p.epoch != e.producer_epoch:
        forget_batches(p)
        p.epoch = e.producer_epoch
    batch.last_sequence = last_sequence_of(e)
    batch.offset_delta = <int32_t>(e.last_offset - e.base_offset)
    batch.last_offset = e.last_offset
    batch.timestamp = p.last_timestamp = e.max_timestamp
    know_batch(p, batch)
    if e.attributes & ATTRIBUTE_TRANSACTIONAL and p.txn_first_offset < 0:
        if e.count:
            txn_open(t, place, e.base_offset)
        elif p.emptied_first_offset < 0:
            p.emptied_first_offset = e.base_offset


cdef inline int apply_marker(
    producer_table* t, producer* p, const BatchEntry* e, ended_txn* ended
) noexcept nogil:
    ended.first_offset = p.txn_first_offset if p.emptied_first_offset < 0 else p.emptied_first_offset
    ended.last_offset = e.base_offset
    if ended.first_offset >= 0:
        if not ended_reserve(t, 1):
            return -1
        ended_put(t, ended.first_offset, ended.last_offset)
        if p.txn_first_offset >= 0:
            txn_close(t, p)
        p.emptied_first_offset = -1
    if p.epoch != e.producer_epoch:
        forget_batches(p)
        p.epoch = e.producer_epoch
    p.coordinator_epoch = e.coordinator_epoch
    p.last_timestamp = e.max_timestamp
    return ended.first_offset >= 0


cdef inline int apply(
    producer_table* t, uint32_t place, const BatchEntry* e, ended_txn* ended
) noexcept nogil:
    """Update the producer at ``place`` for a batch. Returns -1 if memory is missing, without a change; 1 when
    a transaction ended, which is in ``ended``; else 0."""
    if e.producer_id < 0:
        return 0
    if e.attributes & ATTRIBUTE_CONTROL and (
        not e.count or (e.control_type != CONTROL_ABORT and e.control_type != CONTROL_COMMIT)
    ):
        return 0                    # emptied by the cleaner, or no end of a transaction
    if e.attributes & ATTRIBUTE_TRANSACTIONAL and not open_reserve(t, 1):
        return -1
    if place == NO_PLACE:
        if table_add(t, e.producer_id, e.producer_epoch) == NULL:
            return -1
        place = t.count - 1
    if e.attributes & ATTRIBUTE_CONTROL:
        return apply_marker(t, table_at(t, place), e, ended)
    apply_data(t, place, e)
    return 0


cdef inline void tell(producer_table* t, const BatchEntry* e, Ended* ended) noexcept nogil:
    """Complete the facts about a transaction that ``apply`` has just ended."""
    ended.producer_id = e.producer_id
    ended.is_aborted = e.control_type == CONTROL_ABORT
    ended.last_stable_offset = e.base_offset + 1
    if t.open_count:
        ended.last_stable_offset = oldest_open(t).txn_first_offset


cdef inline void remember(producer* p, const BatchEntry* e) noexcept nogil:
    """Add an older batch to the known ones, unless it is one of them or of another epoch: batches before an
    epoch change do not count."""
    cdef known_batch batch = known_at(p, 0)
    if e.last_offset > batch.last_offset - batch.offset_delta - 1:
        return
    if e.producer_epoch != p.epoch:
        p.partial = 0
    elif not e.attributes & ATTRIBUTE_CONTROL:
        batch.last_sequence = last_sequence_of(e)
        batch.offset_delta = <int32_t>(e.last_offset - e.base_offset)
        batch.last_offset = e.last_offset
        batch.timestamp = e.max_timestamp
        know_older_batch(p, batch)


cdef inline int replay_block(
    producer_table* t, const BatchEntry* entries, Py_ssize_t count, int64_t start_offset, Ended* ended
) noexcept nogil:
    """Replay at most BLOCK batches; returns the number of ended transactions, or -1 if memory is missing."""
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
