# The rules of a leading broker for a producer's batches, in its order (ProducerAppendInfo, UnifiedLog).
from libc.stdint cimport INT32_MAX, int16_t, int32_t, int64_t

from txnkafka._core.batch_entry cimport BatchEntry
from txnkafka._core.batch_header cimport (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_TRANSACTIONAL,
    CONTROL_ABORT,
    CONTROL_COMMIT,
)
from txnkafka._core.producer_table cimport find_batch, known_at, known_batch, newest_batch, producer
from txnkafka._core.validate cimport FROM_CLIENT, FROM_REPLICATION

cdef enum:
    LATEST_EPOCH = 32767

cdef enum Verdict:
    FINE
    DUPLICATE
    DAMAGED
    FENCED
    NOT_VERIFIED
    NO_STATE
    BEHIND_PENDING
    LATE_IN_EPOCH
    OUT_OF_ORDER
    REUSED_SEQUENCE
    PLAIN_IN_TRANSACTION
    NO_MARKER
    NO_VERSION
    OLD_MARKER
    OLD_COORDINATOR

cdef enum Anomaly:              # faults in a log, in the order in which they are reported for a batch
    PRODUCER_EPOCH_BACK
    NON_TRANSACTIONAL
    SEQUENCE_GAP
    SEQUENCE_BACK
    MARKER_EPOCH_BACK
    COORDINATOR_EPOCH_BACK
    UNKNOWN_CONTROL

cdef enum:
    MOST_ANOMALIES = 3          # of one batch

cdef struct Request:
    int origin
    int transaction_version
    bint verified
    bint pending                    # a verification is pending, with:
    bint supports_epoch_bump
    int64_t lowest_sequence

cdef class Checked:
    cdef readonly int code
    cdef readonly bint is_duplicate
    cdef readonly int64_t first_offset
    cdef readonly int64_t last_offset
    cdef readonly int64_t timestamp
    cdef readonly int64_t search_below
    cdef readonly str text

cdef Checked may_be_written()
cdef Checked duplicate(const known_batch batch)
cdef Checked refusal(Verdict verdict, producer* p, const BatchEntry* e)
cdef int64_t older_may_match(producer* p, const BatchEntry* e) noexcept
cdef object state_entry(producer* p)
cdef tuple anomaly(Anomaly found, Py_ssize_t number, const producer* p, const BatchEntry* e)


cdef inline int32_t last_sequence_of(const BatchEntry* e) noexcept nogil:
    """Return the last sequence of a batch; sequences wrap around to 0."""
    cdef int64_t last
    if e.base_sequence < 0:
        return -1
    last = e.base_sequence + (e.last_offset - e.base_offset)
    return <int32_t>(last & INT32_MAX)


cdef inline int32_t first_sequence_of(const known_batch batch) noexcept nogil:
    return <int32_t>((<int64_t>batch.last_sequence - batch.offset_delta) & INT32_MAX)


cdef inline int find_same(const producer* p, const BatchEntry* e) noexcept nogil:
    """Return the number of the known batch with this epoch, these sequences and this size, or -1."""
    if p.epoch != e.producer_epoch or e.base_sequence < 0:
        return -1
    return find_batch(p, last_sequence_of(e), <int32_t>(e.last_offset - e.base_offset))


cdef inline int find_duplicate(const producer* p, const BatchEntry* e) noexcept nogil:
    """Return the number of the known batch that this one repeats, or -1. In a transaction it repeats batches
    of this transaction only: an ended one has none whose answer is still waited for, and librdkafka gives
    the sequences of messages that it gave up when it aborted to new messages."""
    cdef int same = find_same(p, e)
    if same < 0 or not e.attributes & ATTRIBUTE_TRANSACTIONAL:
        return same
    if p.txn_first_offset < 0 or known_at(p, <unsigned int>same).last_offset < p.txn_first_offset:
        return -1
    return same


cdef inline Verdict judge_sequence(producer* p, const BatchEntry* e, const Request* r) noexcept nogil:
    cdef int32_t last_sequence = -1
    cdef bint no_epoch = p == NULL or p.epoch == -1
    if r.pending and r.supports_epoch_bump and e.base_sequence != 0 and (p == NULL or not p.known):
        return NO_STATE
    if r.pending and e.base_sequence > r.lowest_sequence:
        return BEHIND_PENDING
    if no_epoch:                    # without known batches of the producer any sequence is right
        return FINE
    if e.producer_epoch != p.epoch:
        return LATE_IN_EPOCH if e.base_sequence != 0 else FINE
    if find_same(p, e) >= 0:        # and it is no duplicate
        return REUSED_SEQUENCE
    if p.known:
        last_sequence = newest_batch(p).last_sequence
    if e.base_sequence == <int64_t>last_sequence + 1 or (e.base_sequence == 0 and last_sequence == INT32_MAX):
        return FINE
    return OUT_OF_ORDER


cdef inline Verdict judge_data(producer* p, const BatchEntry* e, const Request* r) noexcept nogil:
    cdef Verdict verdict = FINE
    if r.origin != FROM_REPLICATION and e.producer_epoch < (-1 if p == NULL else p.epoch):
        return FENCED
    if r.origin == FROM_CLIENT:
        verdict = judge_sequence(p, e, r)
        if verdict != FINE:
            return verdict
    if p != NULL and p.txn_first_offset >= 0 and not e.attributes & ATTRIBUTE_TRANSACTIONAL:
        return PLAIN_IN_TRANSACTION
    return FINE


cdef inline Verdict judge_marker(producer* p, const BatchEntry* e, const Request* r) noexcept nogil:
    cdef int16_t epoch = -1 if p == NULL else p.epoch
    if e.crc_wrong:
        return DAMAGED
    if (e.control_type != CONTROL_ABORT and e.control_type != CONTROL_COMMIT) or e.coordinator_epoch < 0:
        return NO_MARKER
    if r.origin == FROM_REPLICATION:
        return FINE
    if r.transaction_version < 0:
        return NO_VERSION
    # With transaction version 2 a marker has the epoch after the epoch of the data. The same epoch again is a
    # retry of a written marker, if no transaction is open; the largest epoch has no successor.
    if e.producer_epoch < epoch or (
        e.producer_epoch == epoch and r.transaction_version >= 2
        and p != NULL and p.txn_first_offset >= 0 and epoch != LATEST_EPOCH
    ):
        return OLD_MARKER
    return OLD_COORDINATOR if p != NULL and e.coordinator_epoch < p.coordinator_epoch else FINE


cdef inline Verdict judge(producer* p, const BatchEntry* e, const Request* r) noexcept nogil:
    """Apply the rules to a batch that is no duplicate; ``p`` is NULL for an unknown producer."""
    cdef bint control = e.attributes & ATTRIBUTE_CONTROL
    if r.origin != FROM_REPLICATION and e.attributes & ATTRIBUTE_TRANSACTIONAL:
        if p == NULL or p.txn_first_offset < 0 or p.epoch != e.producer_epoch:
            if p != NULL and e.producer_epoch < p.epoch:
                return FENCED
            if not (control or r.verified):
                return NOT_VERIFIED
    if control:
        return judge_marker(p, e, r) if e.count else FINE
    return judge_data(p, e, r)


cdef inline int32_t next_sequence(const producer* p, int16_t epoch) noexcept nogil:
    """Return the next base sequence; -1 where any is allowed."""
    cdef int32_t last
    if epoch != p.epoch:
        return -1 if p.epoch == -1 else 0
    if not p.known:
        return 0 if p.anew else -1
    last = newest_batch(p).last_sequence
    return -1 if last < 0 else <int32_t>((<int64_t>last + 1) & INT32_MAX)


cdef inline int data_anomalies(
    const producer* p, const BatchEntry* e, int64_t hole, Anomaly* found
) noexcept nogil:
    cdef int32_t expected = next_sequence(p, e.producer_epoch)
    cdef int64_t last_offset = newest_batch(p).last_offset if p.known else -1
    cdef int count = 0
    if e.producer_epoch < p.epoch:
        found[count] = PRODUCER_EPOCH_BACK
        count += 1
    if p.txn_first_offset >= 0 and not e.attributes & ATTRIBUTE_TRANSACTIONAL:
        found[count] = NON_TRANSACTIONAL
        count += 1
    if e.base_sequence != expected and e.base_sequence != -1 and expected != -1:
        # Sequences wrap at 2^31: a number in the half circle ahead is a gap, in the other a repetition.
        if (<int64_t>e.base_sequence - expected) & INT32_MAX >= 1 << 30:
            found[count] = SEQUENCE_BACK
            count += 1
        elif hole <= last_offset:
            found[count] = SEQUENCE_GAP
            count += 1
    return count


cdef inline int find_anomalies(
    const producer* p, const BatchEntry* e, int64_t hole, Anomaly* found
) noexcept nogil:
    """Find the anomalies of a batch in the log; returns their number. A leader refuses such batches, a broker
    that replays its log reports some of them (``ProducerAppendInfo``). ``p`` is NULL for an unknown producer.
    A sequence may jump where offsets are missing between two batches of the producer, since compaction leaves
    holes: ``hole`` is the first offset after the last hole, -1 for none."""
    cdef int count = 0
    if not e.attributes & ATTRIBUTE_CONTROL:
        return 0 if p == NULL else data_anomalies(p, e, hole, found)
    if not e.count:                 # the cleaner emptied it
        return 0
    if e.control_type != CONTROL_ABORT and e.control_type != CONTROL_COMMIT:
        found[0] = UNKNOWN_CONTROL
        return 1
    if p != NULL and e.producer_epoch < p.epoch:
        found[count] = MARKER_EPOCH_BACK
        count += 1
    if p != NULL and e.coordinator_epoch < p.coordinator_epoch:
        found[count] = COORDINATOR_EPOCH_BACK
        count += 1
    return count
