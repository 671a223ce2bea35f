"""The state of the producers of a partition: duplicates, sequences, epochs, transactions, unstable offset.

``check`` a batch, write it, ``append`` it, all under the lock of the log: a batch that is written but not
yet flushed counts as appended, so a retry of it is a duplicate, whose answer waits for the same flush.
``check`` changes nothing and reserves the memory that ``append`` will need, so that nothing can fail after
the write.

The rules are those of a leading broker, in its order, with two improvements. The cleaner works below the last
stable offset, so transactional batches that it has emptied open no transaction. And a snapshot contains only
one batch of each producer: if older ones decide, ``Checked.search_below`` says so, and ``remember_older``
reads them from the log.

Source: ``ProducerStateManager``, ``ProducerAppendInfo``, ``ProducerStateEntry``,
``UnifiedLog.analyzeAndValidateProducerState``; KIP-98, KIP-360, KIP-890.

Files:

    producer_table.pyx     ProducerTable, which is Kafka's ProducerStateManager
    producer_table.h       its memory: ProducerStateEntry, open and ended transactions (unreplicatedTxns)
    producer_snapshot.h    read and write snapshots, expire and evict producers
    producer_rules.pxd     ProducerAppendInfo's checks: those of a leader, and the anomalies of a replay
    producer_rules.pyx     their codes and texts; Checked, the answer of ``check``
    producer_append.pxd    ProducerAppendInfo.append and appendEndTxnMarker: what a batch in the log changes
    producer_table.pxd     declares the two headers to Cython
"""
from collections import namedtuple
from os import urandom

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from txnkafka._core.batch_entry cimport BatchEntry
from txnkafka._core.bytes cimport load_i16, load_i32, load_i64, load_u32
from txnkafka._core.crc32c cimport crc32c_of, crc_initialize
from txnkafka._core.producer_append cimport BLOCK, Ended, apply, remember, replay_block, tell
from txnkafka._core.producer_rules cimport (
    DAMAGED,
    FINE,
    MOST_ANOMALIES,
    Anomaly,
    Checked,
    Request,
    Verdict,
    anomaly,
    duplicate,
    find_anomalies,
    find_duplicate,
    first_sequence_of,
    judge,
    may_be_written,
    older_may_match,
    refusal,
    state_entry,
)
from txnkafka._core.scan cimport BatchIndex, IndexHold
from txnkafka._core.validate cimport FROM_CLIENT, FROM_COORDINATOR, FROM_REPLICATION, IncomingBatch

from txnkafka.errors import CorruptFileError
from txnkafka.model import CompletedTxn

crc_initialize()

REPLICATION, COORDINATOR, CLIENT = FROM_REPLICATION, FROM_COORDINATOR, FROM_CLIENT

cdef enum:
    SNAPSHOT_VERSION = 1
    SNAPSHOT_HEAD = 10
    SNAPSHOT_CRC_BEGIN = 6

cdef uint64_t[2] SEED           # another one in every process, whatever PYTHONHASHSEED is
SEED[0], SEED[1] = [<uint64_t>int.from_bytes(urandom(8), "little") | 1 for _ in range(2)]

KnownBatch = namedtuple("KnownBatch", [
    "first_sequence", "last_sequence", "first_offset", "last_offset", "timestamp",
], module=__name__)
KnownBatch.__doc__ = "A batch that identifies its retries."


cdef object as_known_batch(const known_batch batch):
    first_sequence = -1 if batch.last_sequence < 0 else first_sequence_of(batch)
    return KnownBatch(
        first_sequence, batch.last_sequence, batch.last_offset - batch.offset_delta, batch.last_offset,
        batch.timestamp,
    )


cdef object completed_txn(const Ended* ended):
    return CompletedTxn(
        ended.producer_id, ended.txn.first_offset, ended.txn.last_offset, bool(ended.is_aborted),
        ended.last_stable_offset,
    )


cdef class ProducerTable:
    """The producers of one partition; ``len(table)`` is their number. The module describes their use."""

    def __cinit__(self):
        table_start(&self.t, SEED)
        self.end_offset = self.hole = -1

    def __dealloc__(self):
        table_free(&self.t)

    def __len__(self):
        """Number of producers."""
        return self.t.count

    def __sizeof__(self):
        return object.__sizeof__(self) + table_bytes(&self.t)

    def clear(self):
        """Remove everything but the counters."""
        cdef uint64_t expired = self.t.expired, evicted = self.t.evicted
        table_free(&self.t)
        table_start(&self.t, SEED)
        self.t.expired, self.t.evicted = expired, evicted

    def check(
        self, IncomingBatch batch not None, int origin, int transaction_version=-1, bint verified=True,
        lowest_sequence=None, bint supports_epoch_bump=False,
    ):
        """Decide whether the log may append a batch, whose offsets are not set yet.

        ``transaction_version`` comes from a request for markers. ``verified`` says that the request's guard
        matches the verification of its producer, or that verification is off; ``lowest_sequence`` and
        ``supports_epoch_bump`` come from a pending verification (``storage.log.verification``).
        """
        return self.decide(batch, origin, transaction_version, verified, lowest_sequence, supports_epoch_bump)

    cdef object decide(
        self, IncomingBatch batch, int origin, int transaction_version, bint verified, object lowest_sequence,
        bint supports_epoch_bump,
    ):
        cdef const BatchEntry* e = &batch.entry
        cdef Request r
        cdef producer* p
        cdef int same
        cdef Verdict verdict
        cdef Checked refused
        if not batch.is_readable:
            return refusal(DAMAGED, NULL, NULL)
        if e.producer_id < 0:
            return may_be_written()
        r.origin, r.transaction_version, r.verified = origin, transaction_version, verified
        r.pending = lowest_sequence is not None
        r.lowest_sequence = lowest_sequence if r.pending else -1
        r.supports_epoch_bump = supports_epoch_bump
        p = table_find(&self.t, e.producer_id)
        if origin == FROM_CLIENT and p != NULL:
            same = find_duplicate(p, e)
            if same >= 0:
                return duplicate(known_at(p, <unsigned int>same))
        verdict = judge(p, e, &r)
        if verdict != FINE:
            refused = refusal(verdict, p, e)
            if origin == FROM_CLIENT:
                refused.search_below = older_may_match(p, e)
            return refused
        self.make_room(1)
        return may_be_written()

    def reserve(self, uint32_t batches):
        """Reserve memory for a number of appends. Raises MemoryError without changing anything."""
        self.make_room(batches)

    cdef int make_room(self, uint32_t batches) except -1:
        if not (
            table_reserve(&self.t, batches)
            and open_reserve(&self.t, batches)
            and ended_reserve(&self.t, batches)
        ):
            raise MemoryError("no memory for the producers of a partition")
        return 0

    def append(self, IncomingBatch batch not None):
        """Update the state for a written batch; returns the transaction that it ended, or None."""
        return self.take(batch)

    cdef object take(self, IncomingBatch batch):
        cdef Ended ended
        cdef int outcome
        if not batch.is_readable:
            raise ValueError("the bytes that were written are not a whole batch")
        outcome = apply(&self.t, table_place(&self.t, batch.entry.producer_id), &batch.entry, &ended.txn)
        if outcome < 0:
            raise MemoryError("no memory for the producers of a partition")
        if outcome == 0:
            return None
        tell(&self.t, &batch.entry, &ended)
        return completed_txn(&ended)

    def adopt(self, ProducerTable other not None, int64_t producer_id):
        """Copy the state of a producer from ``other``, with its open transaction, unless it is known here."""
        cdef producer* known = table_find(&other.t, producer_id)
        if known == NULL or table_find(&self.t, producer_id) != NULL:
            return
        self.reserve(1)
        cdef producer* copied = table_add(&self.t, producer_id, known.epoch)
        copied[0] = known[0]
        if copied.txn_first_offset >= 0:
            txn_open(&self.t, self.t.count - 1, copied.txn_first_offset)

    def replay(self, BatchIndex batches not None, int64_t start_offset, list completed not None):
        """Update the state for the next batches of the log without checks, except for those that end below
        ``start_offset``.

        That is the snapshot's offset, or the log start offset, which may be inside a transaction: then the
        first remaining batch counts as its beginning. Transactions that end are added to ``completed``.
        """
        cdef IndexHold _held = batches.hold()
        cdef Ended[BLOCK] ended
        cdef Py_ssize_t at = 0, count
        cdef int found, i
        while at < batches.count:
            found = 0
            with nogil:
                while at < batches.count and found == 0:
                    count = min(BLOCK, batches.count - at)
                    found = replay_block(&self.t, batches.entries + at, count, start_offset, ended)
                    at += count
            if found < 0:
                raise MemoryError("no memory for the producers of a partition")
            for i in range(found):
                completed.append(completed_txn(&ended[i]))

    def replay_checked(
        self, BatchIndex batches not None, Py_ssize_t start, Py_ssize_t stop, list completed not None,
        list anomalies not None,
    ):
        """Replay the batches number ``start`` to ``stop`` - 1 like ``replay``. Contradictions in the log are
        added to ``anomalies``, as (name, number of the batch, text), and have no other effect.

        ``sequence_gap``: records of the producer are missing before this batch. ``sequence_back``: it
        repeats earlier sequences. ``producer_epoch_back``, ``marker_epoch_back``: data, or an end marker, of
        an incarnation that was fenced before. ``coordinator_epoch_back``: a marker of a coordinator that was
        replaced before. ``non_transactional_in_transaction``: plain data of a producer whose transaction is
        open. ``unknown_control_type``: a control batch that is not a readable end marker.
        """
        cdef IndexHold _held = batches.hold()
        cdef Anomaly[MOST_ANOMALIES] found
        cdef const BatchEntry* e
        cdef producer* p
        cdef Ended ended
        cdef Py_ssize_t number
        cdef uint32_t place
        cdef int outcome, i
        for number in range(max(start, 0), min(stop, batches.count)):
            e = &batches.entries[number]
            if e.base_offset > self.end_offset != -1:
                self.hole = e.base_offset
            self.end_offset = e.last_offset + 1
            if e.producer_id < 0:
                continue
            place = table_place(&self.t, e.producer_id)
            p = NULL if place == NO_PLACE else table_at(&self.t, place)
            for i in range(find_anomalies(p, e, self.hole, found)):
                anomalies.append(anomaly(found[i], number, p, e))
            outcome = apply(&self.t, place, e, &ended.txn)
            if outcome < 0:
                raise MemoryError("no memory for the producers of a partition")
            if outcome:
                tell(&self.t, e, &ended)
                completed.append(completed_txn(&ended))

    def remember_older(self, BatchIndex batches not None, int64_t producer_id):
        """Add older batches, from headers below the known ones, to a producer loaded from a snapshot.

        Call it with one part of the log after the other, from ``Checked.search_below`` downwards, without
        gaps.
        """
        cdef IndexHold _held = batches.hold()
        cdef Py_ssize_t i
        cdef producer* p = table_find(&self.t, producer_id)
        if p == NULL:
            return
        with nogil:
            for i in range(batches.count - 1, -1, -1):
                if p.partial and batches.entries[i].producer_id == producer_id:
                    remember(p, &batches.entries[i])

    def misses_older(self, int64_t producer_id):
        """Return whether the log may contain older batches of the producer's epoch than the known ones."""
        cdef producer* p = table_find(&self.t, producer_id)
        return p != NULL and p.partial

    def end_search(self, int64_t producer_id):
        """End the search for older batches of a producer."""
        cdef producer* p = table_find(&self.t, producer_id)
        if p != NULL:
            p.partial = 0

    def on_high_watermark(self, int64_t high_watermark):
        """Remove ended transactions whose markers are below the high watermark: all readers see these."""
        ended_drop(&self.t, high_watermark)

    @property
    def first_undecided_offset(self):
        """The first offset of the oldest open transaction; None when none is open."""
        return oldest_open(&self.t).txn_first_offset if self.t.open_count else None

    @property
    def first_unstable_offset(self):
        """The first offset of the oldest transaction that is open, or whose marker is not below the high
        watermark; None when there is none."""
        cdef int64_t offset = INT64_MAX
        if self.t.open_count:
            offset = oldest_open(&self.t).txn_first_offset
        if self.t.ended_count:
            offset = min(offset, ended_at(&self.t, 0).first_offset)
        return None if offset == INT64_MAX else offset

    @property
    def oldest_transaction_timestamp(self):
        """The last timestamp of the producer with the oldest open transaction; -1 when none is open."""
        return oldest_open(&self.t).last_timestamp if self.t.open_count else -1

    @property
    def open_count(self):
        """Number of open transactions."""
        return self.t.open_count

    @property
    def expired(self):
        """The number of producers that were removed because they were idle for too long."""
        return self.t.expired

    @property
    def evicted(self):
        """The number of producers that were removed because there were too many."""
        return self.t.evicted

    def is_active(self, int64_t producer_id):
        """Return whether the table has the producer."""
        return table_place(&self.t, producer_id) != NO_PLACE

    def entry(self, int64_t producer_id):
        """Return the state of a producer, or None."""
        cdef producer* p = table_find(&self.t, producer_id)
        return None if p == NULL else state_entry(p)

    def epochs(self, int64_t producer_id):
        """Return a producer's epoch, that of its coordinator, and whether its transaction is open; None for
        an unknown one. Cheaper than ``entry``."""
        cdef producer* p = table_find(&self.t, producer_id)
        return None if p == NULL else (p.epoch, p.coordinator_epoch, p.txn_first_offset >= 0)

    def known_batches(self, int64_t producer_id):
        """Return the batches by which retries of a producer are recognised, the oldest first."""
        cdef producer* p = table_find(&self.t, producer_id)
        return [] if p == NULL else [as_known_batch(known_at(p, i)) for i in range(p.known)]

    def last_data_offset(self, int64_t producer_id):
        """Return the last offset of the producer's last batch in its epoch; -1 when there is none."""
        cdef producer* p = table_find(&self.t, producer_id)
        return newest_batch(p).last_offset if p != NULL and p.known else -1

    def entries(self):
        """Return the states of all producers, sorted by id."""
        return sorted([state_entry(table_at(&self.t, place)) for place in range(self.t.count)])

    def open_transactions(self):
        """Return the producers with open transactions, the oldest transaction first."""
        cdef uint32_t i
        found = [state_entry(table_at(&self.t, self.t.open[i].place)) for i in range(self.t.open_count)]
        return sorted(found, key=_first_offset)

    def expire(self, int64_t now_ms, int64_t expiration_ms):
        """Remove producers without an open transaction whose last timestamp is older than
        ``expiration_ms``; returns their number."""
        cdef uint32_t before = self.t.count
        with nogil:
            remove_expired(&self.t, now_ms, expiration_ms)
        return before - self.t.count

    def evict(self, uint32_t most):
        """Keep at most ``most`` producers without an open transaction, those with the latest timestamps;
        returns the number of removed ones."""
        cdef uint32_t idle = self.t.count - self.t.open_count
        cdef sort_key* keys
        if idle <= most:
            return 0
        keys = new_keys(self.t.count)
        with nogil:
            remove_oldest(&self.t, keys, idle - most)
            free(keys)
        return idle - most

    def snapshot(self):
        """Return the content of a ``.snapshot`` file, with producers sorted by id."""
        cdef Py_ssize_t size = SNAPSHOT_HEAD + <Py_ssize_t>self.t.count * SNAPSHOT_ENTRY
        cdef bytes content = PyBytes_FromStringAndSize(NULL, size)
        cdef uint8_t* to = <uint8_t*>PyBytes_AS_STRING(content)
        cdef sort_key* keys = new_keys(self.t.count)
        with nogil:
            put_i32(to + SNAPSHOT_CRC_BEGIN, <int32_t>self.t.count)
            put_entries(&self.t, keys, to + SNAPSHOT_HEAD)
            free(keys)
            put_i16(to, SNAPSHOT_VERSION)
            put_i32(to + 2, <int32_t>crc32c_of(to + SNAPSHOT_CRC_BEGIN, <size_t>(size - SNAPSHOT_CRC_BEGIN)))
        return content

    def load(self, snapshot, *, int64_t now_ms, int64_t expiration_ms, int64_t end_offset=-1):
        """Load the content of the ``.snapshot`` file at ``end_offset`` (-1: not known), without the producers
        that are expired by now.

        Raises CorruptFileError, and leaves the table unchanged, when the content is damaged; see
        ``storage.formats.producer_snapshot``.
        """
        cdef Py_buffer view
        cdef producer_table loaded
        table_start(&loaded, SEED)
        PyObject_GetBuffer(snapshot, &view, PyBUF_SIMPLE)
        try:
            check_snapshot(<const uint8_t*>view.buf, view.len)
            load_entries(&loaded, <const uint8_t*>view.buf, view.len, end_offset)
        except BaseException:
            table_free(&loaded)
            raise
        finally:
            PyBuffer_Release(&view)
        loaded.expired, loaded.evicted = self.t.expired, self.t.evicted
        table_free(&self.t)
        self.t = loaded
        self.expire(now_ms, expiration_ms)


def _first_offset(entry):
    return entry.current_txn_first_offset, entry.producer_id


cdef sort_key* new_keys(uint32_t count) except NULL:
    cdef sort_key* keys = <sort_key*>malloc(2 * (<size_t>count + 1) * sizeof(sort_key))
    if keys == NULL:
        raise MemoryError("no memory to sort the producers of a partition")
    return keys


cdef int check_snapshot(const uint8_t* p, Py_ssize_t size) except -1:
    """Check the checksum before anything else; then the number of entries must match the size of the file."""
    cdef uint32_t computed
    if size < SNAPSHOT_HEAD:
        raise CorruptFileError(f"{size} bytes are not a producer snapshot", position=0)
    computed = crc32c_of(p + SNAPSHOT_CRC_BEGIN, <size_t>(size - SNAPSHOT_CRC_BEGIN))
    if load_u32(p + 2) != computed:
        raise CorruptFileError(
            f"CRC is {load_u32(p + 2):#010x}, but the content has {computed:#010x}", position=2
        )
    if load_i16(p) != SNAPSHOT_VERSION:
        raise CorruptFileError(f"version {load_i16(p)} is not known, only 1 is", position=0)
    if SNAPSHOT_HEAD + <int64_t>load_i32(p + SNAPSHOT_CRC_BEGIN) * SNAPSHOT_ENTRY != size:
        text = f"{load_i32(p + SNAPSHOT_CRC_BEGIN)} producers do not fill {size} bytes"
        raise CorruptFileError(text, position=SNAPSHOT_CRC_BEGIN)
    return 0


cdef int load_entries(producer_table* t, const uint8_t* p, Py_ssize_t size, int64_t end_offset) except -1:
    cdef entry_outcome outcome = TAKEN
    cdef Py_ssize_t position = SNAPSHOT_HEAD
    with nogil:
        if not table_reserve(t, <uint32_t>(size // SNAPSHOT_ENTRY)):
            outcome = NO_MEMORY_FOR_IT
        while outcome == TAKEN and position < size:
            outcome = take_entry(t, p + position, end_offset)
            position += SNAPSHOT_ENTRY
        if outcome == TAKEN and not open_transactions(t):
            outcome = NO_MEMORY_FOR_IT
    position -= SNAPSHOT_ENTRY
    if outcome == IMPOSSIBLE:
        text = f"producer {load_i64(p + position)} has values that no log gives"
        raise CorruptFileError(text, position=position)
    if outcome == BEYOND:
        text = (
            f"producer {load_i64(p + position)} has offset {entry_offset(p + position)}, "
            f"the snapshot ends at offset {end_offset}"
        )
        raise CorruptFileError(text, position=position)
    if outcome == TWICE:
        raise CorruptFileError("a producer is in the snapshot twice", position=position)
    if outcome == NO_MEMORY_FOR_IT:
        raise MemoryError("no memory for the producers of a partition")
    return 0
