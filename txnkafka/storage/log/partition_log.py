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

from txnkafka._core.producer_table import ProducerTable
from txnkafka.env import write_durably
from txnkafka.errors import (
    CorruptRecordError,
    InvalidRecordError,
    KafkaStorageError,
    ProduceError,
    RecordListTooLargeError,
)
from txnkafka.model import NO_OFFSET, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_ID
from txnkafka.storage.formats.checkpoint import format_leader_epoch_checkpoint
from txnkafka.storage.formats.headers import ATTRIBUTE_TRANSACTIONAL
from txnkafka.storage.formats.layout import LEADER_EPOCH_CHECKPOINT
from txnkafka.storage.log.append_info import AppendInfo
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.local_log import LocalLog
from txnkafka.storage.log.log_segment import LogSegment
from txnkafka.storage.log.log_validator import AppendOrigin, LogValidator, batch_rules
from txnkafka.storage.log.older_batches import search_older_batches
from txnkafka.storage.log.producer_errors import as_refusal, refusal
from txnkafka.storage.log.producer_snapshots import ProducerSnapshots
from txnkafka.storage.log.transactions import transactions_of
from txnkafka.storage.log.verification import NO_GUARD, VerificationState, check_producer

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from txnkafka._core.producer_rules import Checked
    from txnkafka._core.validate import IncomingBatch
    from txnkafka.config import LogConfig
    from txnkafka.env import DataFiles
    from txnkafka.model import TopicPartition
    from txnkafka.storage.log.verification import PendingVerification

__all__ = ["PartitionLog"]

LAST_OFFSET = 2**63 - 2  # the log end behind it is a number of 64 bits, too
_DISK_FULL = frozenset((errno.ENOSPC, errno.EDQUOT))


class PartitionLog(LocalLog):
    """The log in ``directory``, as ``storage.recovery.log_loader`` opens it.

    ``recovery_point`` is where the durable part ends. ``fenced`` is the error after which nothing is taken.
    """

    def __init__(
        self,
        files: DataFiles,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        validator: LogValidator | None = None,  # shared by logs of one thread; it has buffers
    ) -> None:
        super().__init__(files, directory, topic_partition, config)
        self.log_start_offset = 0
        self.high_watermark = 0
        self.loaded_ms = 0
        self.epochs = LeaderEpochs()
        self.has_kept_epochs = True  # else their file has more, which must go before the next append
        self.producers = ProducerTable()
        self.snapshots = ProducerSnapshots(files, directory)
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
                return self.duplicate_info(checked)
            if checked.code:
                raise refusal(checked, self.topic_partition)
        try:
            self.make_room(incoming, leader_epoch, now_ms)
            incoming.place(self.log_end_offset, leader_epoch)
            self.active.append(incoming)
        except OSError as error:
            self.failed(error)
        self.take_in(incoming, now_ms)
        return self.append_info(incoming, leader_epoch)

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
            search_older_batches(self, batch.producer_id, checked.search_below)
            checked = check_producer(
                self.producers, batch, origin, transaction_version, pending, verified=verified
            )
        return checked

    def is_verified(self, pending: PendingVerification | None, guard: int) -> bool:
        """Whether a transactional batch that comes with this guard may begin a transaction."""
        if not self.config.transaction_partition_verification_enable:
            return True
        return pending is not None and pending.matches(guard)

    def make_room(self, batch: IncomingBatch, leader_epoch: int, now_ms: int) -> None:
        """Do what must be done before the batch is written: roll, note the epoch. Raises OSError."""
        if self.should_roll(batch, self.log_end_offset, now_ms):
            self.roll(now_ms)
        self._note_epoch(leader_epoch, self.log_end_offset)
        if batch.is_control:
            transactions_of(self, self.active)  # from a log that does not have the marker yet

    def take_in(self, batch: IncomingBatch, now_ms: int) -> None:
        """The batch was written: move the log end behind it, and its producer on."""
        self.active.modified_ms = now_ms
        self.log_end_offset = batch.last_offset + 1
        if self._oldest_unflushed_ms is None:
            self._oldest_unflushed_ms = now_ms
        if batch.producer_id > NO_PRODUCER_ID:
            if batch.attributes & ATTRIBUTE_TRANSACTIONAL:
                self.verification.on_append(
                    batch.producer_id, batch.producer_epoch, is_control=batch.is_control
                )
            completed = self.producers.append(batch)
            if completed is not None and completed.is_aborted:
                transactions_of(self, self.active).add([completed])

    def append_info(self, batch: IncomingBatch, leader_epoch: int) -> AppendInfo:
        """The answer for a batch that has its place."""
        last_offset = batch.last_offset
        return AppendInfo(
            batch.base_offset, last_offset, batch.log_append_time, self.log_start_offset, False,
            leader_epoch, last_offset + 1,
        )  # fmt: skip

    def duplicate_info(self, checked: Checked) -> AppendInfo:
        """The answer for a batch that the log has already."""
        return AppendInfo(
            checked.first_offset, checked.last_offset, checked.timestamp, self.log_start_offset, True,
            self.epochs.epoch_of(checked.first_offset), checked.last_offset + 1,
        )  # fmt: skip
    def should_roll(self, batch: IncomingBatch, end_offset: int, now_ms: int) -> bool:
        """``LogSegment.shouldRoll``: size, age by the records' clock, full indexes, offsets too far. The
        batch would begin at ``end_offset``."""
        active, config = self.segments[-1], self.config
        size = active.size
        if size > config.segment_bytes - batch.size:
            return True
        if not active.fits(end_offset + batch.last_offset_delta):
            return True
        if size == 0:
            return False
        first = active.rolling_timestamp
        if first is None:
            first = active.first_timestamp()
        # by the clock of the records where they have one (LogSegment.timeWaitedForRoll)
        waited = now_ms - active.created_ms if first is None or first < 0 else batch.max_timestamp - first
        return waited > config.roll_ms - active.roll_jitter_ms or active.indexes_are_full()

    def _note_epoch(self, leader_epoch: int, offset: int) -> None:
        if leader_epoch == NO_PARTITION_LEADER_EPOCH:
            return
        if leader_epoch == self.epochs.latest and self.has_kept_epochs:
            return
        changed = LeaderEpochs(self.epochs.entries)
        changed.assign(leader_epoch, offset)
        self.keep_epochs(changed)

    def keep_epochs(self, epochs: LeaderEpochs) -> None:
        """Let these be the epochs, in the file too. Raises OSError; then the next append writes the file."""
        self.owner.check(self.directory)
        path = self.files.join(self.directory, LEADER_EPOCH_CHECKPOINT)
        self.has_kept_epochs = False  # after an error nobody knows which epochs the file has
        write_durably(self.files, path, format_leader_epoch_checkpoint(epochs.entries))
        self.epochs, self.has_kept_epochs = epochs, True

    def roll(self, now_ms: int) -> None:
        """Close the active segment and begin another one at the log end. Raises OSError; then the log is
        what it was, or fenced."""
        self.owner.check(self.directory)
        active, base_offset = self.active, self.log_end_offset
        if active.size == 0 and active.base_offset == base_offset:
            return  # KAFKA-6388: there is nothing to close
        active.seal()
        self._sync_before_roll()
        self.has_unsynced_names = True
        active.save(self.unsynced_files)
        self.snapshots.write(base_offset, self.producers.snapshot())
        if self.recovery_point == base_offset:
            self._sync_saved()
        fresh = self._begun_segment(base_offset, now_ms)
        active.unload()
        self._rolled.append(active)
        self.segments.append(fresh)

    def _sync_before_roll(self) -> None:
        """A segment is durable, its bytes and its name, before the next one has a name: after a power cut
        only the last one may end early. Otherwise what was lost in the middle would look like what compaction
        leaves."""
        if self.config.preallocate:
            self.active.trim()
        try:
            if self.active.has_unsynced_bytes or self._flushing:
                self.active.sync()
            if self.has_unsynced_names or self._flushing:
                self.files.sync_directory(self.directory)
        except OSError as error:
            self.fence(error)  # a full disk, too: nobody knows what is there
            raise

    def _sync_saved(self) -> None:
        """Make durable what follows from a segment that ends at the recovery point: after a crash recovery
        checks no segment below it, and believes its files."""
        try:
            for file in self.unsynced_files:
                file.sync()
            self.snapshots.sync()
            self.files.sync_directory(self.directory)
        except OSError as error:
            self.fence(error)
            raise
        self.unsynced_files = []

    def _begun_segment(self, base_offset: int, now_ms: int) -> LogSegment:
        """A new segment with its file. Raises OSError; then there is no file, or the log is fenced: an empty
        segment would end the log below batches that are appended to the segment before."""
        fresh = LogSegment(self.files, self.directory, base_offset, self.config, created_ms=now_ms)
        fresh.on_repair = self.note
        try:
            fresh.remove_leftovers()
            fresh.create("log")
            if self.config.preallocate:
                fresh.preallocate()
        except OSError:
            self._undo(fresh)
            raise
        return fresh

    def _undo(self, fresh: LogSegment) -> None:
        """Remove the file of a segment that could not be begun, durably."""
        try:
            if self.files.exists(fresh.path("log")):
                fresh.remove()
                self.files.sync_directory(self.directory)
        except OSError as error:
            self.fence(error)

    # Offsets

    @property
    def last_stable_offset(self) -> int:
        """Where the oldest undecided transaction begins, or the high watermark."""
        first = self.producers.first_unstable_offset
        if first is None or first >= self.high_watermark:
            return self.high_watermark
        if first < self.log_start_offset:
            first = self._base_of(self.log_start_offset)
        return min(first, self.high_watermark)

    def _base_of(self, offset: int) -> int:
        """The base offset of the batch that holds ``offset``; the offset itself where there is none."""
        place = self.find(self.segment_of(offset), offset)
        return offset if place is None else min(place[2], offset)

    def on_durable(self, end_offset: int) -> None:
        self.advance_high_watermark(end_offset)

    def advance_high_watermark(self, offset: int) -> None:
        """Readers may see what is below ``offset``."""
        offset = min(offset, self.log_end_offset)
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.producers.on_high_watermark(offset)

    # Failing

    def failed(self, error: OSError) -> NoReturn:
        """A write failed. When the disk is full and what was written of it can be taken back, the log goes
        on; else it is fenced."""
        if error.errno in _DISK_FULL and self.fenced is None:
            with contextlib.suppress(OSError):
                self.active.take_back()
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
            self._save()
            self.flush()
        except OSError as error:
            self.fence(error)
            self.check_usable()
        finally:
            self.close_files()

    def _save(self) -> None:
        self.active.seal()
        for segment in self.segments:
            segment.save(self.unsynced_files)
        if self.config.preallocate:
            self.active.trim()
        if self.snapshots.newest(self.log_end_offset) != self.log_end_offset:
            self.snapshots.write(self.log_end_offset, self.producers.snapshot())
        # of ten thousand partitions most have nothing new, and then nothing is synced
        self.has_unsynced_names |= bool(self.unsynced_files or self.snapshots.unsynced)
        self.snapshots.sync()


