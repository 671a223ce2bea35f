"""Determines the visible part of a log: finds transactions by batch headers, and selects batches to decode.

Kafka's consumer hides aborted data with a list from the broker's ``.txnindex``
(org.apache.kafka.clients.consumer.internals.
CompletedFetch); the broker hides undecided data by ending at the last stable offset. Here both are derived
from the log itself: ``TransactionScan`` walks headers, and a transactional batch counts as committed only
when the COMMIT marker of its producer follows.
So a missing or damaged ``.txnindex`` or ``.snapshot`` cannot make aborted or open data visible.

Control batches are never selected: their records are not for applications, in either isolation level. One
whose CRC is wrong, and what may have been one, decides nothing, and is selected so that decoding reports it.
Where a marker may be lost, with a missing segment or in such a batch, transactions that are open there are
undecided: the next marker of their producer may belong to its next transaction.
"""
from collections import namedtuple

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc

from txnkafka._core.batch_entry cimport BatchEntry
from txnkafka._core.batch_header cimport (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    CONTROL_ABORT,
    CONTROL_COMMIT,
)
from txnkafka._core.scan cimport BatchIndex, IndexHold

HiddenRange = namedtuple("HiddenRange", ["producer_id", "first_offset", "last_offset"], module=__name__)
HiddenRange.__doc__ = "Transactional batches of a producer, with base offsets from first to last."

TransactionRange = namedtuple("TransactionRange", [
    "producer_id", "producer_epoch", "first_offset", "last_offset", "first_timestamp", "last_timestamp",
    "batches", "records", "bytes", "outcome", "last_data_offset", "marker_timestamp", "coordinator_epoch",
], module=__name__)
TransactionRange.__doc__ = """One transaction in one partition.

``last_offset`` is that of the end marker, or of the last batch while the transaction is open. ``outcome``
is ``committed``, ``aborted``, ``open`` (no marker follows) or ``undecided`` (its marker may be lost in the
middle of the log). Timestamp and coordinator epoch are those of the end marker, -1 where there is
none; then ``last_offset`` is ``last_data_offset``."""


OpenRange = namedtuple("OpenRange", [
    "producer_id", "producer_epoch", "first_offset", "last_offset", "first_timestamp", "last_timestamp",
    "batches", "records", "bytes", "across_hole",
], module=__name__)
OpenRange.__doc__ = """The batches so far of a transaction that has not ended. ``across_hole``: its marker may
have been lost after them."""


cdef class CountedTransaction:
    cdef int64_t first_offset, last_offset, first_timestamp, last_timestamp, records, size
    cdef int32_t batches
    cdef int16_t producer_epoch
    cdef int64_t holes              # before it

    cdef object end(self, int64_t producer_id, str outcome, BatchEntry* marker):
        """Return the ended transaction; ``marker`` is NULL if there is none."""
        return TransactionRange(
            producer_id, self.producer_epoch, self.first_offset,
            self.last_offset if marker == NULL else marker.base_offset,
            self.first_timestamp, self.last_timestamp, self.batches, self.records, self.size, outcome,
            self.last_offset,
            -1 if marker == NULL else marker.max_timestamp,
            -1 if marker == NULL else marker.coordinator_epoch,
        )

    cdef object state(self, int64_t producer_id, int64_t holes):
        return OpenRange(
            producer_id, self.producer_epoch, self.first_offset, self.last_offset, self.first_timestamp,
            self.last_timestamp, self.batches, self.records, self.size, self.holes < holes,
        )


cdef CountedTransaction counted(state):
    cdef CountedTransaction transaction = CountedTransaction.__new__(CountedTransaction)
    transaction.producer_epoch = state.producer_epoch
    transaction.first_offset = state.first_offset
    transaction.last_offset = state.last_offset
    transaction.first_timestamp = state.first_timestamp
    transaction.last_timestamp = state.last_timestamp
    transaction.batches = state.batches
    transaction.records = state.records
    transaction.size = state.bytes
    transaction.holes = -1 if state.across_hole else 0
    return transaction


cdef class TransactionScan:
    """Follows the transactions of one partition over its batch headers, in offset order.

    ``feed(index)`` per segment; ``hole()`` where a marker may be missing. ``ended``
    lists the transactions that ended (in the order of their markers, those without data left out),
    ``open_transactions()`` those that did not. A scan that begins at ``next_offset`` with the
    ``open_ranges()`` that another scan had there continues that scan.
    """

    cdef dict current               # producer id -> CountedTransaction
    cdef int64_t holes
    cdef readonly list ended
    cdef readonly dict markers      # producer id -> last offset of a marker seen
    cdef readonly int64_t next_offset

    def __cinit__(self, int64_t next_offset=0, open_ranges=()):
        self.current = {open_range.producer_id: counted(open_range) for open_range in open_ranges}
        self.ended = []
        self.markers = {}
        self.next_offset = next_offset

    def hole(self):
        """Record that markers may be missing here: a later one may belong to a transaction that began inside
        the hole."""
        self.holes += 1

    def open_transactions(self):
        """Return the transactions without an end marker so far, oldest first."""
        cdef CountedTransaction transaction
        ranges = [transaction.end(producer_id, "open", NULL)
                  for producer_id, transaction in self.current.items()]
        return sorted(ranges, key=lambda open_range: open_range.first_offset)

    def open_ranges(self):
        """Return the open transactions as input for another scan, in the order in which they began."""
        cdef CountedTransaction transaction
        ranges = [transaction.state(producer_id, self.holes)
                  for producer_id, transaction in self.current.items()]
        return tuple(sorted(ranges, key=lambda open_range: open_range.first_offset))

    def feed(self, BatchIndex index not None, Py_ssize_t start=0, stop=None):
        """Scan the batches ``start`` to ``stop`` of ``index``. A batch that repeats offsets already seen is
        skipped."""
        cdef IndexHold _held = index.hold()
        cdef Py_ssize_t i, end = index.count if stop is None else stop
        cdef BatchEntry* e
        if not 0 <= start <= end <= index.count:
            raise IndexError(f"batches {start} to {end} of {index.count}")
        for i in range(start, end):
            e = &index.entries[i]
            if e.last_offset < self.next_offset:
                continue
            self.next_offset = e.last_offset + 1
            if e.crc_wrong:
                self.hole()
                continue
            if e.producer_id < 0 or not e.attributes & (ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL):
                continue
            if e.attributes & ATTRIBUTE_CONTROL:
                self.marker(e)
            else:
                self.data(e)

    cdef int data(self, BatchEntry* e) except -1:
        cdef CountedTransaction transaction = self.current.get(e.producer_id)
        if transaction is not None and transaction.holes < self.holes:
            # The next marker ends the batches after the hole. Whether it also ends those before is unknown.
            self.ended.append(transaction.end(e.producer_id, "undecided", NULL))
            del self.current[e.producer_id]
            transaction = None
        if transaction is None:
            if e.count == 0:
                return 0            # emptied by the cleaner, which may have removed its marker too
            transaction = CountedTransaction.__new__(CountedTransaction)
            transaction.holes = self.holes
            transaction.first_offset = e.base_offset
            transaction.first_timestamp = first_timestamp(e)
            self.current[e.producer_id] = transaction
        transaction.producer_epoch = e.producer_epoch
        transaction.last_offset = e.last_offset
        transaction.last_timestamp = e.max_timestamp
        transaction.batches += 1
        transaction.records += max(e.count, 0)
        transaction.size += e.size
        return 0

    cdef int marker(self, BatchEntry* e) except -1:
        cdef CountedTransaction transaction
        cdef str outcome
        if e.control_type != CONTROL_ABORT and e.control_type != CONTROL_COMMIT:
            return 0
        self.markers[e.producer_id] = e.base_offset
        transaction = self.current.pop(e.producer_id, None)
        if transaction is None:
            return 0
        # The epoch does not help: the next epoch belongs to the marker with transaction version 2, and to the
        # producer's next transaction, after InitProducerId, with version 1.
        if transaction.holes < self.holes:
            outcome = "undecided"
        else:
            outcome = "committed" if e.control_type == CONTROL_COMMIT else "aborted"
        self.ended.append(transaction.end(e.producer_id, outcome, e))
        return 0


cdef int64_t first_timestamp(BatchEntry* e) noexcept:
    """Return the timestamp of the first record: the base timestamp, unless the batch has LogAppendTime or a
    delete horizon."""
    if e.attributes & (ATTRIBUTE_LOG_APPEND_TIME | ATTRIBUTE_DELETE_HORIZON):
        return e.max_timestamp
    return e.base_timestamp


cdef struct Hidden:
    int64_t producer_id
    int64_t first_offset
    int64_t last_offset


cdef class HiddenRanges:
    """Ranges of offsets whose transactional batches are hidden, prepared for lookups.

    Built from HiddenRange tuples; build it once to select many pieces of a log.
    """

    cdef Hidden* ranges
    cdef readonly Py_ssize_t count

    def __cinit__(self, hidden=()):
        # Of ranges of one producer the ends grow with the beginnings, so that the last one that begins at or
        # before a batch decides.
        ordered = merged(hidden)
        if not ordered:
            return
        self.ranges = <Hidden*>malloc(len(ordered) * sizeof(Hidden))
        if self.ranges == NULL:
            raise MemoryError("no memory for the aborted transactions")
        for producer_id, first_offset, last_offset in ordered:
            self.ranges[self.count].producer_id = producer_id
            self.ranges[self.count].first_offset = first_offset
            self.ranges[self.count].last_offset = last_offset
            self.count += 1

    def __dealloc__(self):
        free(self.ranges)

    def __len__(self):
        return self.count


def select(
    BatchIndex index not None,
    hidden=(),
    *,
    int64_t start_offset=0,
    int64_t end_offset=0x7FFFFFFFFFFFFFFF,
    Py_ssize_t start=0,
    stop=None,
):
    """Return one byte per batch of ``index``: SKIP it, decode it WHOLE, or BOUNDED: decode it and keep
    offsets in [start_offset, end_offset).

    ``hidden`` are ranges (with producer_id, first_offset, last_offset) whose transactional batches are
    hidden: the aborted ones for read_committed, none for read_uncommitted. Batches outside ``start`` to
    ``stop`` are skipped, and so is a batch whose offsets were all seen before (a consumer also drops its
    records).
    """
    cdef IndexHold _held = index.hold()
    cdef Py_ssize_t end = index.count if stop is None else stop
    cdef HiddenRanges ranges = hidden if isinstance(hidden, HiddenRanges) else HiddenRanges(hidden)
    if not 0 <= start <= end <= index.count:
        raise IndexError(f"batches {start} to {end} of {index.count}")
    selection = bytearray(index.count)
    cdef uint8_t[::1] chosen = selection
    if end > start:
        with nogil:
            choose(
                index.entries, start, end, ranges.ranges, ranges.count, start_offset, end_offset, &chosen[0]
            )
    return selection


def contained(BatchIndex index not None, HiddenRanges ranges not None):
    """Return one byte per batch of ``index``: 1 for transactional data in one of the ``ranges``."""
    cdef IndexHold _held = index.hold()
    result = bytearray(index.count)
    cdef uint8_t[::1] found = result
    cdef Py_ssize_t i
    cdef BatchEntry* e
    for i in range(index.count):
        e = &index.entries[i]
        if e.attributes & (ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL) == ATTRIBUTE_TRANSACTIONAL:
            found[i] = is_hidden(ranges.ranges, ranges.count, e.producer_id, e.base_offset)
    return result


def merged(ranges):
    """Return (producer_id, first_offset, last_offset) tuples, sorted, with overlapping ranges of one producer
    joined."""
    result = []
    current = None
    for producer_id, first_offset, last_offset in sorted(ranges):
        if current is not None and current[0] == producer_id and first_offset <= current[2]:
            current[2] = max(last_offset, current[2])
        else:
            current = [producer_id, first_offset, last_offset]
            result.append(current)
    return result


cdef void choose(
    BatchEntry* entries,
    Py_ssize_t start,
    Py_ssize_t stop,
    Hidden* ranges,
    Py_ssize_t count,
    int64_t start_offset,
    int64_t end_offset,
    uint8_t* chosen,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef BatchEntry* e
    cdef int64_t next_offset = start_offset
    for i in range(start, stop):
        e = &entries[i]
        if e.last_offset < next_offset:
            continue
        # A compressed magic 0 or 1 wrapper (count -1) has the offset of its last record: it may begin
        # below the end.
        if e.base_offset >= end_offset and e.count >= 0:
            continue
        if e.crc_wrong:
            chosen[i] = WHOLE           # decoding will report the damage
            next_offset = e.last_offset + 1
            continue
        if e.attributes & ATTRIBUTE_CONTROL:
            next_offset = e.last_offset + 1
            continue
        if e.attributes & ATTRIBUTE_TRANSACTIONAL and is_hidden(ranges, count, e.producer_id, e.base_offset):
            next_offset = e.last_offset + 1
            continue
        if e.base_offset < next_offset or e.last_offset >= end_offset or e.count < 0:
            chosen[i] = BOUNDED
        else:
            chosen[i] = WHOLE
        next_offset = e.last_offset + 1


cdef bint is_hidden(
    Hidden* ranges, Py_ssize_t count, int64_t producer_id, int64_t offset
) noexcept nogil:
    """Find the last range of a producer that begins at or before the offset, by binary search."""
    cdef Py_ssize_t low = 0, high = count, middle
    while low < high:
        middle = (low + high) // 2
        if ranges[middle].producer_id < producer_id or (
            ranges[middle].producer_id == producer_id and ranges[middle].first_offset <= offset
        ):
            low = middle + 1
        else:
            high = middle
    return low > 0 and ranges[low - 1].producer_id == producer_id and offset <= ranges[low - 1].last_offset
