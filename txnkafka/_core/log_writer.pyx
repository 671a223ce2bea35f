"""The append of one batch to an open log, as one compiled sequence of steps. ``PartitionLog`` is the rest of
the log, and has the rare steps as methods: refusals, rolls, epochs, markers.

Source: ``UnifiedLog.append``.
"""
from collections import namedtuple

from libc.stdint cimport int32_t, int64_t

from txnkafka._core.batch_header cimport ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL
from txnkafka._core.producer_rules cimport Checked
from txnkafka._core.segment_writer cimport SegmentWriter
from txnkafka._core.validate cimport FROM_CLIENT, IncomingBatch

AppendInfo = namedtuple("AppendInfo", [
    "first_offset", "last_offset", "log_append_time", "log_start_offset", "is_duplicate", "leader_epoch",
    "durable_at",
], module=__name__)
AppendInfo.__doc__ = """The answer to an append. The offsets of a duplicate are those of the batch before.

    ``log_append_time`` is -1 where the producer's timestamps count, ``leader_epoch`` the epoch of the batch
    in the log (-1: not known). The batch is durable once the recovery point has reached ``durable_at``; for a
    duplicate that may already be the case.
    """
cdef object new_tuple = tuple.__new__


def appended(IncomingBatch batch not None, int64_t log_start_offset, int leader_epoch):
    """Return the answer for a batch whose offsets are assigned."""
    return new_tuple(AppendInfo, (
        batch.base_offset, batch.entry.last_offset, batch.log_append_time, log_start_offset, False,
        leader_epoch, batch.entry.last_offset + 1,
    ))


def duplicate(Checked checked not None, int64_t log_start_offset, int leader_epoch):
    """Return the answer for a batch that the log already contains, or will contain before this answer is
    given."""
    return new_tuple(AppendInfo, (
        checked.first_offset, checked.last_offset, checked.timestamp, log_start_offset, True, leader_epoch,
        checked.last_offset + 1,
    ))


cdef class LogEnds:
    """The offsets of a log that appends read and move; ``LogOffsets`` says in which order they are."""

    def on_append(self, int64_t log_end):
        """Move the log end to ``log_end``, after an append. Raises ValueError if that is back."""
        self.move_end(log_end)

    cdef int move_end(self, int64_t log_end) except -1:
        if log_end <= self.log_end:
            raise ValueError(f"the log end cannot move from {self.log_end} back to {log_end}")
        self.log_end = log_end
        return 0


cdef class LogWriter:
    """The state of a log that every append needs. Appends go to ``segments.active``.

    A subclass has ``check_usable``, ``validated``, ``searched``, ``roll``, ``load_transactions``,
    ``not_appended``, ``begin_epoch`` and ``note_transaction``.
    """

    def append(
        self, batch not None, *, int64_t now_ms, int32_t leader_epoch=0, int origin=FROM_CLIENT,
        int transaction_version=-1, guard=0,
    ):
        """Append one batch as the leader. ``batch`` is any buffer of bytes, also a view of a request: it is
        not changed, and its records are copied only to the file.

        ``transaction_version`` comes from a request for markers, ``guard`` from ``verification`` for the
        first batch of a transaction in this log. Raises ProduceError or CorruptRecordError when the batch is
        refused, KafkaStorageError when it could not be written.
        """
        cdef IncomingBatch incoming
        cdef SegmentWriter active
        cdef Checked checked
        fence = self.guarded_by
        if fence.error is not None or fence.is_closed or not fence.owner.is_here:
            self.check_usable()
        incoming = self.rules.accept(batch, origin, now_ms)
        if not incoming.is_accepted or not self.rules.has_room(incoming, self.offsets.log_end):
            self.validated(incoming, origin, now_ms)
        if incoming.entry.producer_id >= 0:
            checked = self.check(incoming, origin, transaction_version, guard)
            if checked.is_duplicate or checked.code:
                return self.not_appended(checked)
        try:
            active = self.segments.active
            if active.rolls_before(incoming, self.offsets.log_end, now_ms):
                self.roll(now_ms)
                active = self.segments.active
            if incoming.entry.attributes & ATTRIBUTE_CONTROL and active.txn_index is None:
                self.load_transactions()
            incoming.place_at(self.offsets.log_end, leader_epoch)
            active.write_batch(incoming)
        except OSError as error:
            if origin == FROM_CLIENT and incoming.entry.producer_id >= 0:
                self.verification.hold(self.producers, incoming, now_ms)
            self.local.write_failed(error)
        self.take(incoming, active.size - incoming.size, leader_epoch, now_ms)
        return appended(incoming, self.offsets.log_start, leader_epoch)

    cdef object check(self, IncomingBatch batch, int origin, int transaction_version, object guard):
        """Check a batch against the state of its producer. The first sequence of a log is 0 (KAFKA-15591)."""
        cdef Checked checked
        cdef bint verified
        pending = None
        lowest_sequence = 0 if self.offsets.log_end == 0 else None
        if self.verification.has_pending:
            pending = self.verification.pending(batch.entry.producer_id)
        verified = not self.config.transaction_partition_verification_enable
        if pending is not None:
            checked = self.producers.decide(
                batch, origin, transaction_version, verified or pending.matches(guard),
                pending.lowest_sequence if lowest_sequence is None else lowest_sequence,
                pending.supports_epoch_bump,
            )
        else:
            checked = self.producers.decide(
                batch, origin, transaction_version, verified, lowest_sequence, False
            )
        if checked.code and checked.search_below != -1:
            return self.searched(batch, origin, transaction_version, guard)
        return checked

    def take_in(self, IncomingBatch batch not None, int64_t position, int32_t leader_epoch, int64_t now_ms):
        """Update log end, epochs and producer for a batch that was written to the active segment at
        ``position``."""
        self.take(batch, position, leader_epoch, now_ms)

    cdef int take(
        self, IncomingBatch batch, int64_t position, int32_t leader_epoch, int64_t now_ms
    ) except -1:
        cdef SegmentWriter active = self.segments.active
        active.modified_ms = now_ms
        self.offsets.move_end(batch.entry.last_offset + 1)
        if self.known_epoch is None or (leader_epoch != self.known_epoch and leader_epoch != -1):
            self.begin_epoch(leader_epoch, batch.base_offset)
        if self.flushing.oldest_ms is None:
            self.flushing.oldest_ms = now_ms
        if batch.entry.producer_id < 0:
            return 0
        if batch.entry.attributes & (ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL):
            self.note_transaction(batch, position)
        else:
            self.producers.take(batch)
            if self.verification.has_pending:
                self.verification.on_append(batch)
        return 0
