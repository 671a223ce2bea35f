"""Appends several batches to one log in one call, with one gathered write per segment.

Every batch is validated and checked as if the earlier batches of the call were in the log, and gets the
answer of a single append: a refused batch does not affect the others. Until the write, only the tail of the
active segment changes, which a failed write restores. The new producer states of waiting batches are kept in
a separate table, as in Kafka's ``ProducerAppendInfo``.

After a crash, the log contains a prefix of the batches, the last possibly torn, as after single appends.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from txnkafka._core.producer_table import ProducerTable
from txnkafka.errors import CorruptRecordError, KafkaError, KafkaStorageError, ProduceError
from txnkafka.model import NO_OFFSET, NO_PRODUCER_ID
from txnkafka.storage.log.append_check import check, is_verified, validate
from txnkafka.storage.log.append_info import AppendInfo, appended, duplicate
from txnkafka.storage.log.producer_errors import refusal
from txnkafka.storage.log.segment_tail import SegmentTail
from txnkafka.storage.log.verification import check_producer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka._core.producer_rules import Checked
    from txnkafka._core.validate import IncomingBatch
    from txnkafka.env import Bytes
    from txnkafka.storage.log.append_info import AppendRequest
    from txnkafka.storage.log.partition_log import PartitionLog


def append_all(
    log: PartitionLog, requests: Iterable[AppendRequest], *, now_ms: int, leader_epoch: int = 0
) -> list[AppendInfo | KafkaError]:
    """Append batches as the leader; return one answer per batch, in the order of the requests.

    An answer is an AppendInfo, or the error that ``PartitionLog.append`` would raise. When a write fails, all
    batches answered since the previous write get its KafkaStorageError, also refused ones and duplicates:
    their answers may depend on batches that are not in the log. The callers' buffers must not change until
    this function returns."""
    waiting = _WaitingBatches(log, now_ms, leader_epoch)
    try:
        for request in requests:
            waiting.append(request)
        waiting.write()
    except BaseException:
        waiting.give_up()
        raise
    return waiting.answers


class _WaitingBatches:
    """The batches with offsets and answers that are not written yet."""

    def __init__(self, log: PartitionLog, now_ms: int, leader_epoch: int) -> None:
        self.answers: list[AppendInfo | KafkaError] = []
        self._log = log
        self._now_ms = now_ms
        self._leader_epoch = leader_epoch
        self._begin()

    def _begin(self) -> None:
        self._undecided = len(self.answers)  # the first answer that the next write decides
        self._batches: list[IncomingBatch] = []
        self._parts: list[Bytes] = []
        self._tail: SegmentTail | None = None
        self._end_offset = self._log.log_end_offset
        self._producers = ProducerTable()  # the state after the waiting batches, of their producers only
        self._verified: set[int] = set()  # producers whose verification ends with a waiting batch

    def append(self, request: AppendRequest) -> None:
        """Decide on the next batch. Write the waiting batches first if the decision needs them."""
        try:
            self.answers.append(self._decide(request))
        except (CorruptRecordError, KafkaStorageError, ProduceError) as error:
            self.answers.append(error)

    def _decide(self, request: AppendRequest) -> AppendInfo:
        log = self._log
        log.check_usable()
        batch = log.rules.read(request.batch, request.origin, self._now_ms)
        validate(log, batch, request.origin, self._now_ms, self._end_offset)
        if batch.producer_id > NO_PRODUCER_ID:
            checked = self._check(batch, request)
            if checked is None:
                self.write()
                return self._decide(request)
            if checked.is_duplicate:
                waits = checked.first_offset >= log.log_end_offset
                epoch = self._leader_epoch if waits else log.epochs.epoch_of(checked.first_offset)
                return duplicate(checked, log.log_start_offset, epoch)
            if checked.code:
                raise refusal(checked, log.topic_partition)
        if self._batches and self._must_be_last(batch):
            self.write()
            return self._decide(request)
        self._add(batch)
        return appended(batch, log.log_start_offset, self._leader_epoch)

    def _check(self, batch: IncomingBatch, request: AppendRequest) -> Checked | None:
        """Check the batch against the state of its producer. Returns None if older batches must be searched
        in the log, after writing the waiting batches."""
        log, producer_id = self._log, batch.producer_id
        if not self._batches:
            return check(log, batch, request.origin, request.transaction_version, request.guard)
        waits = self._producers.is_active(producer_id)
        pending = None if producer_id in self._verified else log.verification.pending(producer_id)
        checked = check_producer(
            self._producers if waits else log.producers,
            batch,
            request.origin,
            request.transaction_version,
            pending,
            verified=is_verified(log, pending, request.guard),
            log_end_offset=self._end_offset,
        )
        return None if checked.code and checked.search_below != NO_OFFSET else checked

    def _must_be_last(self, batch: IncomingBatch) -> bool:
        """Return True if the waiting batches must be written before this one is handled."""
        log = self._log
        return log.active.should_roll(batch, self._end_offset, self._now_ms) or (
            batch.is_control and log.active.txn_index is None  # the index is loaded from the file
        )

    def _add(self, batch: IncomingBatch) -> None:
        log = self._log
        if not self._batches:
            try:
                log.make_room(batch, self._now_ms)
            except OSError as error:
                self._hold(batch)
                log.local.write_failed(error)
            self._tail = SegmentTail.of(log.active)
        batch.place(self._end_offset, self._leader_epoch)
        self._note_producer(batch)
        self._batches.append(batch)
        self._parts += batch.parts()
        self._end_offset = batch.last_offset + 1
        log.active.note(log.active.size, batch.size, batch.last_offset, batch.max_timestamp)
        log.active.size += batch.size

    def _note_producer(self, batch: IncomingBatch) -> None:
        log, producer_id = self._log, batch.producer_id
        if producer_id <= NO_PRODUCER_ID:
            return
        self._producers.adopt(log.producers, producer_id)
        self._producers.append(batch)
        if log.verification.ends_with(batch):
            self._verified.add(producer_id)

    def _hold(self, batch: IncomingBatch) -> None:
        if batch.producer_id > NO_PRODUCER_ID and not batch.is_control:
            self._log.verification.hold(self._log.producers, batch, self._now_ms)

    def write(self) -> None:
        """Write the waiting batches. A failure replaces all answers given since the last write."""
        log = self._log
        if self._tail is not None:
            try:
                log.producers.reserve(len(self._batches))
                log.active.write(self._tail.size, self._parts)
            except OSError as error:
                self.give_up()
                for batch in self._batches:
                    self._hold(batch)
                try:
                    log.local.write_failed(error)
                except KafkaStorageError as failure:
                    self.answers[self._undecided :] = [failure] * (len(self.answers) - self._undecided)
                self._begin()
                return
            position, self._tail = self._tail.size, None
            self._take_in(position)
        self._begin()

    def _take_in(self, position: int) -> None:
        """Update the log's state for the waiting batches, which were written to the active segment at
        ``position``."""
        try:
            for batch in self._batches:
                self._log.take_in(batch, position, self._leader_epoch, self._now_ms)
                position += batch.size
        except BaseException:  # also a signal: some of the written batches are not in the log's state
            self._log.fence(OSError(errno.EIO, "appending several batches was interrupted"))
            raise

    def give_up(self) -> None:
        """Restore the tail of the active segment as it was before the waiting batches."""
        if self._tail is not None:
            self._tail.restore(self._log.active)
            self._tail = None
