"""The result of checking a batch, as Kafka's code and as text; the rules themselves are in the .pxd file."""
cimport cython

from txnkafka._core.producer_table cimport known_at

from txnkafka.error_codes import ErrorCode
from txnkafka.model import ProducerStateEntry

# Kafka's error code of each verdict.
CODES = (
    ErrorCode.NONE,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
)
# The text of each verdict.
_TEXTS = (
    "",
    "",
    "there is no whole batch here",
    "epoch {epoch} is older than epoch {last_epoch}, which came before",
    "the batch is not part of a transaction that its coordinator knows of",
    "sequence {sequence} comes where nothing is known of the producer and 0 is next",
    "sequence {sequence} comes before a smaller one, for which the partition waits",
    "sequence {sequence} comes first in epoch {epoch}, where 0 is next",
    "sequence {sequence} comes after {last_sequence}",
    "sequence {sequence} is that of a batch in a transaction that has ended, {last_sequence} was the last",
    "the batch is not transactional, but a transaction is open from offset {txn_first_offset} on",
    "the control batch is no readable end marker",
    "a marker needs the transaction version of its request",
    "the marker's epoch {epoch} is too old after epoch {last_epoch}",
    "coordinator epoch {coordinator_epoch} is older than {last_coordinator_epoch}, which came before",
)

# Name and text of each anomaly.
_ANOMALIES = (
    ("producer_epoch_back", "producer epoch {epoch} follows {last_epoch}"),
    (
        "non_transactional_in_transaction",
        "plain data while its transaction from offset {txn_first_offset} is open",
    ),
    ("sequence_gap", "base sequence {sequence} where {next_sequence} is next"),
    ("sequence_back", "base sequence {sequence} where {next_sequence} is next"),
    ("marker_epoch_back", "producer epoch {epoch} follows {last_epoch}"),
    ("coordinator_epoch_back", "coordinator epoch {coordinator_epoch} follows {last_coordinator_epoch}"),
    ("unknown_control_type", "the control batch is no readable end marker"),
)


@cython.final
cdef class Checked:
    """The result of ``check`` for a batch: ``code`` is Kafka's error code, 0 when the batch may be written.

    A duplicate has code 0, too: it is not written, and ``first_offset``, ``last_offset`` and ``timestamp``
    are those of the batch in the log. ``text`` is the message of an error. If ``search_below`` is not -1, the
    batch may be a duplicate of one below that offset, which is not in the snapshot.
    """

    def __cinit__(self):
        self.first_offset = self.last_offset = self.timestamp = self.search_below = -1
        self.text = ""

    def __repr__(self):
        if self.is_duplicate:
            return f"Checked(duplicate of {self.first_offset}..{self.last_offset})"
        return f"Checked({self.code}, {self.text!r})"


cdef Checked MAY_BE_WRITTEN = Checked.__new__(Checked)


cdef Checked may_be_written():
    return MAY_BE_WRITTEN


cdef Checked duplicate(const known_batch batch):
    cdef Checked checked = Checked.__new__(Checked)
    checked.is_duplicate = True
    checked.first_offset = batch.last_offset - batch.offset_delta
    checked.last_offset = batch.last_offset
    checked.timestamp = batch.timestamp
    return checked


cdef Checked refusal(Verdict verdict, producer* p, const BatchEntry* e):
    cdef Checked checked = Checked.__new__(Checked)
    checked.code = CODES[<int>verdict]
    text = _TEXTS[<int>verdict]
    if e == NULL:
        checked.text = text
        return checked
    last = ProducerStateEntry(e.producer_id, -1, -1, -1, -1, -1, -1, 0) if p == NULL else state_entry(p)
    checked.text = f"producer {e.producer_id}: " + text.format(
        sequence=e.base_sequence, epoch=e.producer_epoch, coordinator_epoch=e.coordinator_epoch,
        last_sequence=last.last_sequence, last_epoch=last.producer_epoch,
        last_coordinator_epoch=last.coordinator_epoch, txn_first_offset=last.current_txn_first_offset,
    )
    return checked


cdef tuple anomaly(Anomaly found, Py_ssize_t number, const producer* p, const BatchEntry* e):
    """Return name, number of the batch, and text of an anomaly."""
    name, text = _ANOMALIES[<int>found]
    if p != NULL:
        text = text.format(
            sequence=e.base_sequence, epoch=e.producer_epoch, coordinator_epoch=e.coordinator_epoch,
            next_sequence=next_sequence(p, e.producer_epoch), last_epoch=p.epoch,
            last_coordinator_epoch=p.coordinator_epoch, txn_first_offset=p.txn_first_offset,
        )
    return name, number, f"producer {e.producer_id}: {text}"


cdef object state_entry(producer* p):
    cdef known_batch last = known_batch(-1, 0, -1, -1)
    if p.known:
        last = newest_batch(p)
    return ProducerStateEntry(
        p.producer_id, p.epoch, p.coordinator_epoch, p.last_timestamp, p.txn_first_offset,
        last.last_sequence, last.last_offset, last.offset_delta,
    )


cdef int64_t older_may_match(producer* p, const BatchEntry* e) noexcept:
    """Return the offset below which the log may contain a duplicate of a batch, or -1. There may be one if
    the batch has the producer's epoch and a sequence below the known ones, and the producer may have written
    more batches than a snapshot contains, in a transaction that is still open."""
    cdef known_batch oldest
    cdef int64_t first_offset
    if p == NULL or not p.partial or e.producer_epoch != p.epoch or e.base_sequence < 0:
        return -1
    oldest = known_at(p, 0)
    # Sequences wrap; the half circle below the last one is older.
    if ((<int64_t>first_sequence_of(oldest) - last_sequence_of(e) - 1) & INT32_MAX) >= INT32_MAX // 2:
        return -1
    first_offset = oldest.last_offset - oldest.offset_delta
    if e.attributes & ATTRIBUTE_TRANSACTIONAL and not 0 <= p.txn_first_offset < first_offset:
        return -1
    return first_offset
