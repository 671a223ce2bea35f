"""The log of one partition that is owned: appended to, read, flushed.

For one thread at a time, but for ``LogFlush.run``, which may run beside everything else here.

Invariants. An append that is refused leaves the log as it was: files, epochs, producers; so does one that
fails, but for a new leader epoch. Offsets grow by what is appended and are used once. ``log_start_offset <=
last_stable_offset <= high_watermark <= log_end_offset``, but that the last stable offset may lie below the
log start by a part of a batch, as in Kafka. After the first I/O error nothing is appended and nothing more is
acknowledged; a full disk is no such error.

Source: ``UnifiedLog``, ``LocalLog``; KIP-98, KIP-890.
"""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING, NoReturn

from txnkafka.errors import (
    CorruptRecordError,
    InvalidRecordError,
    KafkaStorageError,
    ProduceError,
    RecordListTooLargeError,
)
from txnkafka.model import NO_OFFSET, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_ID
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL
from txnkafka.storage.formats.checkpoint import format_leader_epoch_checkpoint
from txnkafka.storage.formats.layout import LEADER_EPOCH_CHECKPOINT
from txnkafka.storage.log.append_info import AppendInfo
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.local_log import LocalLog
from txnkafka.storage.log.log_offset_metadata import LogOffsetMetadata
from txnkafka.storage.log.log_validator import AppendOrigin, LogValidator, batch_rules
from txnkafka.storage.log.older_batches import search_older_batches
from txnkafka.storage.log.producer_errors import as_refusal, refusal
from txnkafka.storage.log.producer_history import keep_state, reload_state
from txnkafka.storage.log.roll_rule import should_roll
from txnkafka.storage.log.transactions import transactions_of
from txnkafka.storage.log.verification import NO_GUARD, VerificationState, check_producer
from txnkafka.storage.work import perform

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from txnkafka._core.producer_rules import Checked
    from txnkafka._core.validate import IncomingBatch
    from txnkafka.config import LogConfig
    from txnkafka.env import DataFiles
    from txnkafka.model import TopicPartition
    from txnkafka.storage.log.cut import Cut
    from txnkafka.storage.log.loaded_log import LoadedLog
    from txnkafka.storage.log.segment_deletion import SegmentDeletion
    from txnkafka.storage.log.verification import PendingVerification

__all__ = ["PartitionLog"]

LAST_OFFSET = 2**63 - 2  # the log end behind it is a number of 64 bits, too
_DISK_FULL = frozenset((errno.ENOSPC, errno.EDQUOT))


class PartitionLog(LocalLog):
    """The log in ``directory``, made of what ``storage.recovery.log_loader`` has ``loaded`` there.

    ``recovery_point`` is where the durable part ends. ``fenced`` is the error after which nothing is taken.
    """

    def __init__(
        self,
        files: DataFiles,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        loaded: LoadedLog,
        *,
        validator: LogValidator | None = None,  # shared by logs of one thread; it has buffers
    ) -> None:
        super().__init__(files, directory, topic_partition, config, loaded)
        self._move(loaded.log_start_offset, loaded.log_end_offset, loaded.log_end_offset)
        self.loaded_ms = loaded.loaded_ms
        self.epochs = loaded.epochs
        self._epoch_file_is_current = loaded.epoch_file_is_current  # else the next append replaces it
        self.producers = loaded.producers
        self.verification = VerificationState()
        self._validator = LogValidator() if validator is None else validator
        self._rules = batch_rules(config)

    def update_config(self, config: LogConfig) -> None:
        """Let the next append, roll and lookup go by other settings (``LocalLog.updateConfig``)."""
        self.config, self._rules = config, batch_rules(config)
        for segment in self.segments:
            segment.config = config

    # Appending

    def append(
        self,
        batch: Buffer,
        *,
        now_ms: int,
        leader_epoch: int = 0,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction_version: int = -1,
        guard: int = NO_GUARD,
    ) -> AppendInfo:
        """Append one batch as the leader. ``batch`` is any buffer of bytes, a view of a request too: it is
        not changed, and behind its header not copied but to the file.

        ``transaction_version`` is that of a request for markers, ``guard`` what ``verification`` gave for a
        transaction's first batch here. Raises ProduceError or CorruptRecordError when the batch is refused,
        KafkaStorageError when it could not be written.
        """
        self.check_usable()
        incoming = self.validate(batch, origin, now_ms, self.log_end_offset)
        if incoming.producer_id > NO_PRODUCER_ID:
            checked = self.check(incoming, origin, transaction_version, guard)
            if checked.is_duplicate:
                epoch = self.epochs.epoch_of(checked.first_offset)
                return AppendInfo.of_duplicate(checked, self.log_start_offset, epoch)
            if checked.code:
                raise refusal(checked, self.topic_partition)
        try:
            self.make_room(incoming, now_ms)
            incoming.place(self.log_end_offset, leader_epoch)
            self.active.append(incoming)
        except OSError as error:
            self.failed(error)
        self.take_in(incoming, self.active.size - incoming.size, leader_epoch, now_ms)
        return AppendInfo.of_batch(incoming, self.log_start_offset, leader_epoch)

    def validate(self, batch: Buffer, origin: AppendOrigin, now_ms: int, end_offset: int) -> IncomingBatch:
        """The batch as it will be in the log from ``end_offset`` on; errors say which log that is."""
        try:
            incoming = self._validator.validate(batch, self.config, self._rules, origin, now_ms)
        except CorruptRecordError as error:
            raise as_refusal(error, self.topic_partition) from None
        except ProduceError as error:
            refused = type(error)(f"{self.topic_partition}: {error}")
            refused.record_errors = error.record_errors
            raise refused from error
        if incoming.last_offset_delta > LAST_OFFSET - end_offset:
            raise InvalidRecordError(
                f"{self.topic_partition} has no offsets left for the batch: it ends at "
                f"{end_offset}, the last offset there can be is {LAST_OFFSET}"
            )
        if incoming.size > self.config.segment_bytes:
            raise RecordListTooLargeError(
                f"{self.topic_partition}: the batch has {incoming.size} bytes, segment.bytes is "
                f"{self.config.segment_bytes}"
            )
        return incoming

    def check(
        self, batch: IncomingBatch, origin: AppendOrigin, transaction_version: int, guard: int
    ) -> Checked:
        """What the producers' state has to say to the batch, older batches included where they decide."""
        pending = self.verification.pending(batch.producer_id)
        verified = self.is_verified(pending, guard)
        checked = check_producer(
            self.producers, batch, origin, transaction_version, pending, verified=verified
        )
        if checked.code and checked.search_below != NO_OFFSET:
            search_older_batches(self, self.producers, batch.producer_id, checked.search_below)
            checked = check_producer(
                self.producers, batch, origin, transaction_version, pending, verified=verified
            )
        return checked

    def is_verified(self, pending: PendingVerification | None, guard: int) -> bool:
        """Whether a transactional batch that comes with this guard may begin a transaction."""
        if not self.config.transaction_partition_verification_enable:
            return True
        return pending is not None and pending.matches(guard)

    def make_room(self, batch: IncomingBatch, now_ms: int) -> None:
        """Do what must be done before the batch is written: roll, load what a marker adds to. Raises
        OSError."""
        if should_roll(self.active, batch, self.log_end_offset, now_ms):
            self.roll(now_ms)
        if batch.is_control:
            transactions_of(self, self.active)  # from a log that does not have the marker yet

    def take_in(self, batch: IncomingBatch, position: int, leader_epoch: int, now_ms: int) -> None:
        """The batch was written to the active segment at ``position``: move the log end behind it, and its
        producer on."""
        self.active.modified_ms = now_ms
        self.log_end_offset = batch.last_offset + 1
        known = leader_epoch in (self.epochs.latest, NO_PARTITION_LEADER_EPOCH)
        if not (known and self._epoch_file_is_current):
            self.epochs.assign(leader_epoch, batch.base_offset)
            self.set_epochs(self.epochs)
        if self._oldest_unflushed_ms is None:
            self._oldest_unflushed_ms = now_ms
        if batch.producer_id > NO_PRODUCER_ID:
            if batch.attributes & (ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL):
                self._note_transaction(batch, position)
            else:
                self.producers.append(batch)

    def _note_transaction(self, batch: IncomingBatch, position: int) -> None:
        """Take a batch of a transaction, or its end, into the state of its producer."""
        if batch.attributes & ATTRIBUTE_TRANSACTIONAL:
            self.verification.on_append(
                batch.producer_id, batch.producer_epoch, is_control=batch.is_control
            )
        open_before = self.producers.open_count
        completed = self.producers.append(batch)
        if completed is not None:
            self.positions.on_completed(completed)
            if completed.is_aborted:
                transactions_of(self, self.active).add([completed])
        elif self.producers.open_count > open_before:
            self.positions.on_transaction(
                LogOffsetMetadata(batch.base_offset, self.active.base_offset, position)
            )

    def set_epochs(self, epochs: LeaderEpochs) -> None:
        """Let these be the epochs. The next flush writes the file: until then recovery takes the epochs of
        what is not durable from the batches."""
        self.epochs, self._epoch_file_is_current = epochs, True
        self._unsaved[LEADER_EPOCH_CHECKPOINT] = format_leader_epoch_checkpoint(epochs.entries)

    def roll(self, now_ms: int) -> None:
        """Close the active segment and begin another one at the log end, which counts once the closed one is
        durable. Nothing here waits for the disk. Raises OSError; then the log is what it was."""
        self.owner.check(self.directory)
        active, base_offset = self.active, self.log_end_offset
        if active.size == 0 and active.base_offset == base_offset:
            return  # KAFKA-6388: there is nothing to close
        active.seal()
        if self.config.preallocate:
            active.trim()
        active.save()
        self.snapshots.write(base_offset, self.producers.snapshot())
        fresh = self._begun_segment(base_offset, now_ms)
        self._rolled.append(active)
        self.segments.append(fresh)
        self.positions.on_roll(base_offset)
        self.has_unsynced_names = True

    # Cutting

    def apply(self, cut: Cut, now_ms: int) -> None:
        """Cut the log, durably; producers and transactions are then what they were when it ended there.
        Raises OSError and KafkaError, after which the log may be half cut, and has to be fenced."""
        if cut.log_end_offset < self.log_end_offset:
            self._sync_segments()
            self._cut_end(cut, now_ms)
        elif cut.first:
            perform(self.begin_deletion(cut, now_ms))
        else:
            self.begin_at(cut)

    def begin_at(self, cut: Cut) -> None:
        """Let the log begin where ``cut`` says, its segments stay."""
        if cut.epochs.entries != self.epochs.entries:
            self.set_epochs(cut.epochs)
        self._move(cut.log_start_offset, self.high_watermark, self.log_end_offset)

    def begin_deletion(self, cut: Cut, now_ms: int) -> SegmentDeletion:
        """Take the first segments, not all, out of service: the log begins behind them. Returns the work that
        deletes their files. Raises CorruptRecordError and OSError; then nothing has changed."""
        base_offset = self.segments[cut.first].base_offset
        keep_state(self, base_offset)
        self.begin_at(cut)
        return self._without_oldest(cut.first, self.snapshots.take_unsynced(base_offset), now_ms)

    def _cut_end(self, cut: Cut, now_ms: int) -> None:
        end = cut.log_end_offset
        # what is cut must not come back after a crash as if it had been acknowledged
        self.lower_recovery_point(end)
        self.positions.clear()
        if cut.last:
            transactions_of(self, self.segments[cut.last - 1])
        self._drop_from(cut, now_ms)
        self._move(cut.log_start_offset, min(self.high_watermark, end), end)
        self.begin_at(cut)
        self.snapshots.remove_above(end)
        self.loaded_ms = now_ms
        reload_state(self, self.producers, self.high_watermark, self.config.producer_id_expiration_ms)
        self._sync_cut()

    # Offsets

    def _move(self, log_start_offset: int, high_watermark: int, log_end_offset: int) -> None:
        """Set the offsets; an append alone moves the log end up without it. Raises ValueError when they are
        not in order."""
        if not 0 <= log_start_offset <= high_watermark <= log_end_offset:
            raise ValueError(
                f"{self.topic_partition}: log start {log_start_offset}, high watermark {high_watermark} and "
                f"log end {log_end_offset} are not in order"
            )
        self.log_start_offset, self.high_watermark = log_start_offset, high_watermark
        self.log_end_offset = log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """Where the oldest undecided transaction begins, or the high watermark."""
        first = self.producers.first_unstable_offset
        if first is None or first >= self.high_watermark:
            return self.high_watermark
        if first < self.log_start_offset:
            first = self.positions.log_start(self.log_start_offset).offset
        return min(first, self.high_watermark)

    @property
    def high_watermark_metadata(self) -> LogOffsetMetadata:
        """The high watermark and its position. Raises CorruptRecordError and OSError where it has to be
        looked up."""
        return self.positions.high_watermark(self.high_watermark)

    @property
    def last_stable_offset_metadata(self) -> LogOffsetMetadata:
        """The last stable offset and its position. Raises CorruptRecordError and OSError where it has to be
        looked up."""
        first, end = self.producers.first_unstable_offset, self.high_watermark
        if first is not None and first < end:
            begins_below = first < self.log_start_offset
            stable = (
                self.positions.log_start(self.log_start_offset)
                if begins_below
                else self.positions.first_unstable(first)
            )
            if stable.offset < end:
                return stable
        return self.positions.high_watermark(end)

    def on_durable(self, end_offset: int) -> None:
        self.advance_high_watermark(end_offset)

    def advance_high_watermark(self, offset: int) -> None:
        """Readers may see what is below ``offset``."""
        offset = min(offset, self.log_end_offset)
        if offset > self.high_watermark:
            self._move(self.log_start_offset, offset, self.log_end_offset)
            self.positions.on_high_watermark(offset)
            self.producers.on_high_watermark(offset)

    # Failing

    def failed(self, error: OSError) -> NoReturn:
        """A write failed. When the disk is full and what was written of it can be taken back, the log goes
        on; else it is fenced."""
        if error.errno in _DISK_FULL and self.fenced is None:
            with contextlib.suppress(OSError):
                self.active.trim()
                raise KafkaStorageError(
                    f"the disk of {self.directory} is full: nothing was appended to {self.topic_partition}"
                ) from error
        self.fence(error)
        self.check_usable()
        raise AssertionError("a fenced log is not usable")

    # Closing

    def close(self) -> None:
        """Make everything durable, what follows from the log included, and give the files back. Raises
        KafkaStorageError, and the files are given back all the same."""
        try:
            self.check_usable()
            if self.needs_flush or self._unsaved:
                self.flush()
            self._save()
        except OSError as error:
            self.fence(error)
            self.check_usable()
        finally:
            self.close_files()

    def _save(self) -> None:
        """Make durable what follows from the log, whose batches are. Raises OSError."""
        self.active.seal()
        for segment in self.segments:
            segment.save()
        if self.config.preallocate:
            self.active.trim()
        if self.snapshots.newest(self.log_end_offset) != self.log_end_offset:
            self.snapshots.write(self.log_end_offset, self.producers.snapshot())
        # of ten thousand partitions most have nothing new, and then nothing is synced
        changed = [each for each in self.segments if each.unsynced_files or each.has_unsynced_bytes]
        names = bool(changed or self.snapshots.unsynced)
        for segment in changed:
            segment.sync()
        self.snapshots.sync()
        if names:
            self.files.sync_directory(self.directory)
