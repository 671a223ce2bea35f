"""The open log of one partition: appends, reads, flushes, cuts.

Only one thread at a time may use it, except that ``LogFlush.run`` may run in parallel to all methods.

Invariants. A refused append changes nothing: no file, epoch or producer; neither does a failed one, except
for a new leader epoch. Offsets are consecutive and never used twice. ``log_start_offset <= last_stable_offset
<= high_watermark <= log_end_offset``, except that the last stable offset may be below the log start by a part
of a batch, as in Kafka. After the first I/O error, no append or acknowledgement follows; a full disk does not
count as an I/O error.

Source: ``UnifiedLog``, ``LocalLog``; KIP-98, KIP-890.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from txnkafka._core.log_writer import AppendInfo, LogWriter, duplicate
from txnkafka.errors import FlushUnderWayError, KafkaStorageError
from txnkafka.model import NO_PARTITION_LEADER_EPOCH
from txnkafka.storage.formats.checkpoint import format_leader_epoch_checkpoint
from txnkafka.storage.formats.layout import LEADER_EPOCH_CHECKPOINT
from txnkafka.storage.log.append_check import check, validate
from txnkafka.storage.log.durable_calls import DurableCall, DurableCalls
from txnkafka.storage.log.fence import Fence
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.local_log import LocalLog
from txnkafka.storage.log.log_flush import LogFlush, flush_now
from txnkafka.storage.log.log_offset_metadata import LogOffsetMetadata
from txnkafka.storage.log.log_offsets import LogOffsets
from txnkafka.storage.log.log_resources import LogResources
from txnkafka.storage.log.log_validator import batch_rules
from txnkafka.storage.log.producer_errors import refusal
from txnkafka.storage.log.producer_history import keep_state, reload_state
from txnkafka.storage.log.repair_step import RepairStep
from txnkafka.storage.log.transactions import transactions_of
from txnkafka.storage.log.verification import VerificationState
from txnkafka.storage.work import perform

if TYPE_CHECKING:
    from txnkafka._core.producer_rules import Checked
    from txnkafka._core.validate import IncomingBatch
    from txnkafka.config import LogConfig
    from txnkafka.env import DataFiles
    from txnkafka.errors import KafkaError
    from txnkafka.model import TopicPartition
    from txnkafka.storage.log.cut import Cut
    from txnkafka.storage.log.flush_state import FlushState
    from txnkafka.storage.log.loaded_log import LoadedLog
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.log_segments import LogSegments
    from txnkafka.storage.log.log_validator import AppendOrigin
    from txnkafka.storage.log.segment_deletion import SegmentDeletion

LOG = logging.getLogger("txnkafka.storage")


class PartitionLog(LogWriter):
    """The log in ``directory``, ``loaded`` by ``storage.recovery.log_loader``.

    ``segments`` are ascending; appends go to ``active``. All data below ``recovery_point`` is durable.
    ``fenced`` is the error that stopped appends. Only the process that opened the log may change it; a forked
    child may read its state in memory. ``LogWriter`` has ``append``."""

    config: LogConfig
    guarded_by: Fence
    flushing: FlushState
    local: LocalLog
    offsets: LogOffsets
    segments: LogSegments
    verification: VerificationState

    def __init__(
        self,
        files: DataFiles,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        loaded: LoadedLog,
        *,
        resources: LogResources | None = None,
    ) -> None:
        self.files = files
        self.directory = directory
        self.topic_partition = topic_partition
        self.config = config
        self.rules = batch_rules(config)
        self.resources = LogResources() if resources is None else resources
        self.guarded_by = Fence(topic_partition, directory)
        self.repairs = list(loaded.repairs)  # faults found and repaired
        self.snapshots = loaded.snapshots
        self.local = LocalLog(
            files, directory, loaded,
            fence=self.guarded_by, open_files=self.resources.open_files, on_repair=self.note,
        )  # fmt: skip
        self.segments = self.local.segments
        self.flushing = self.local.flushing
        self.loaded_ms = loaded.loaded_ms
        self.epochs = loaded.epochs
        if loaded.epoch_file_is_current:  # else the next append replaces it
            self._know_epoch()
        self.producers = loaded.producers
        self.offsets = LogOffsets(
            self.segments,
            loaded.producers,
            log_start=loaded.log_start_offset,
            log_end=loaded.log_end_offset,
        )
        self.verification = VerificationState()
        self.waiting = DurableCalls()

    def __repr__(self) -> str:
        return f"PartitionLog('{self.topic_partition}', {self.log_start_offset} to {self.log_end_offset})"

    @property
    def active(self) -> LogSegment:
        """The segment that receives appends."""
        return self.segments.active

    def update_config(self, config: LogConfig) -> None:
        """Change the settings for later appends, rolls and lookups (``LocalLog.updateConfig``)."""
        self.config, self.rules = config, batch_rules(config)
        for segment in self.segments:
            segment.config = config

    # Appending: the rare steps of ``append``

    def validated(self, batch: IncomingBatch, origin: AppendOrigin, now_ms: int) -> None:
        """Validate a batch that is not accepted yet, and change it to its stored form. Raises ProduceError or
        CorruptRecordError."""
        validate(self, batch, origin, now_ms, self.log_end_offset)

    def searched(
        self, batch: IncomingBatch, origin: AppendOrigin, transaction_version: int, guard: int
    ) -> Checked:
        """Check again a batch that may duplicate a batch found only in the log. Raises CorruptRecordError and
        KafkaStorageError."""
        return check(self, batch, origin, transaction_version, guard)

    def not_appended(self, checked: Checked) -> AppendInfo:
        """Return the answer for a duplicate. Raises ProduceError for any other refused batch."""
        if not checked.is_duplicate:
            raise refusal(checked, self.topic_partition)
        epoch = self.epochs.epoch_of(checked.first_offset)
        return duplicate(checked, self.log_start_offset, epoch)

    def make_room(self, batch: IncomingBatch, now_ms: int) -> None:
        """Prepare the write of a batch: roll if necessary, load the aborted transactions for a marker. Raises
        OSError."""
        if self.active.should_roll(batch, self.log_end_offset, now_ms):
            self.roll(now_ms)
        if batch.is_control:
            self.load_transactions()

    def load_transactions(self) -> None:
        """Load the aborted transactions of the active segment, before the marker is in the log. Raises
        OSError."""
        transactions_of(self, self.active)

    def begin_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """Record that the batch at ``start_offset`` was appended in an epoch that may be new."""
        self.epochs.assign(leader_epoch, start_offset)
        self.set_epochs(self.epochs, needed_from=start_offset)

    def note_transaction(self, batch: IncomingBatch, position: int) -> None:
        """Update the state of a producer for a transactional batch or a marker."""
        if self.verification.has_pending:
            self.verification.on_append(batch)
        producers = self.producers
        open_before = producers.open_count
        completed = producers.append(batch)
        if completed is not None:
            self.offsets.positions.on_completed(completed)
            if completed.is_aborted:
                transactions_of(self, self.active).add([completed])
        elif producers.open_count > open_before:
            self.offsets.positions.on_transaction(
                LogOffsetMetadata(batch.base_offset, self.active.base_offset, position)
            )

    def set_epochs(self, epochs: LeaderEpochs, *, needed_from: int | None = None) -> None:
        """Replace the epochs; epochs from the offset ``needed_from`` on are new. The next flush with enough
        disk space writes the file: until then, recovery takes the new epochs from the batches."""
        self.epochs = epochs
        self._know_epoch()
        content = format_leader_epoch_checkpoint(epochs.entries)
        self.flushing.write_later(LEADER_EPOCH_CHECKPOINT, content, needed_from=needed_from)

    def _know_epoch(self) -> None:
        latest = self.epochs.latest
        self.known_epoch = NO_PARTITION_LEADER_EPOCH if latest is None else latest

    def roll(self, now_ms: int) -> None:
        """Close the active segment and create one at the log end, which recovery ignores until the closed
        segment is durable. Does not wait for the disk. Raises OSError; then the log is unchanged."""
        self.guarded_by.check_owner()
        active, base_offset = self.active, self.log_end_offset
        if active.size == 0 and active.base_offset == base_offset:
            return  # KAFKA-6388: no segment to close
        self.local.seal()
        self.snapshots.write(base_offset, self.producers.snapshot())
        self.local.roll(base_offset, self.config, now_ms)
        self.offsets.positions.on_roll(base_offset)

    # Flushing

    @property
    def recovery_point(self) -> int:
        """The offset below which all data is durable."""
        return self.flushing.recovery_point

    @property
    def has_unsynced_names(self) -> bool:
        """True if a file was created or renamed since the last flush began."""
        return self.flushing.has_unsynced_names

    @property
    def needs_flush(self) -> bool:
        """True if the log has appends or names that are not durable."""
        return self.recovery_point < self.log_end_offset or self.has_unsynced_names

    @property
    def is_flushing(self) -> bool:
        """True between ``begin_flush`` and ``finish_flush``."""
        return self.flushing.is_flushing

    def when_durable(self, offset: int, call: DurableCall) -> bool:
        """Call once all data below ``offset`` is durable; see ``DurableCalls``. False: the call was made."""
        error = self.guarded_by.error
        if error is not None:
            self.waiting.fail(error)
        elif self.flushing.recovery_point < offset:
            self.waiting.append((offset, call))
            return True
        call(error)
        return False

    def begin_flush(self) -> LogFlush:
        """Begin a flush of all appends up to the first segment without its final name, which is renamed when
        this flush is finished. ``finish_flush`` must follow before the next flush, which otherwise raises
        FlushUnderWayError. If a file cannot be opened, the log is fenced."""
        self.guarded_by.check_owner()
        if self.flushing.is_flushing:
            raise FlushUnderWayError(
                f"a flush of {self.topic_partition} is under way: finish it before the next one"
            )
        if self.guarded_by.error is None:
            try:
                flush, end = self.flushing.begin(self.offsets.log_end)
            except OSError as error:
                self.fence(error)
            else:
                self.offsets.positions.on_flush(end)
                return flush
        return self.flushing.begin_nothing()

    def finish_flush(self, flush: LogFlush, error: OSError | None) -> None:
        """End the flush: the data that it covers is durable and becomes visible. An error fences the log."""
        self.flushing.finish()
        if self.guarded_by.is_closed:  # during the flush: its files may have moved, and no caller waits
            self.local.close_files()
        elif error is not None:
            self.fence(error)
        elif self.guarded_by.error is None:
            self.flushing.write_again(flush)
            end_offset = min(flush.end_offset, self.offsets.log_end)
            self.offsets.advance_high_watermark(end_offset)
            try:
                self.flushing.on_durable(end_offset)
            except OSError as failed:
                self.fence(failed)
            self.waiting.release(self.flushing.recovery_point)
        else:
            self.waiting.fail(self.guarded_by.error)

    def flush(self) -> None:
        """Flush all appends now. Raises KafkaStorageError, and FlushUnderWayError during another flush."""
        flush_now(self)

    # Cutting

    def apply(self, cut: Cut, now_ms: int) -> None:
        """Apply a cut, durably; producers and transactions get their state at the new log end. Raises OSError
        and KafkaError; then the cut may be incomplete, and the log must be fenced."""
        if cut.log_end_offset < self.log_end_offset:
            self.flushing.sync_segments()
            self._cut_end(cut, now_ms)
        elif cut.first:
            perform(self.begin_deletion(cut, now_ms))
        else:
            self.begin_at(cut)

    def begin_at(self, cut: Cut) -> None:
        """Set log start and epochs as in ``cut``; all segments stay."""
        if cut.epochs.entries != self.epochs.entries:
            self.set_epochs(cut.epochs)  # none is new: every start cuts them at the log start
        self.offsets.move(cut.log_start_offset, self.high_watermark, self.log_end_offset)

    def begin_deletion(self, cut: Cut, now_ms: int) -> SegmentDeletion:
        """Remove the first segments (not all) from the log, and move the log start after them. Returns the
        work that deletes their files. Raises CorruptRecordError and OSError; then nothing has changed."""
        keep_state(self, self.segments[cut.first].base_offset)
        self.begin_at(cut)
        return self.local.deletion(cut.first, now_ms + self.config.file_delete_delay_ms)

    def _cut_end(self, cut: Cut, now_ms: int) -> None:
        end = cut.log_end_offset
        # after a crash, truncated batches must not count as acknowledged
        self.flushing.lower_recovery_point(end)
        self.offsets.positions.clear()
        if cut.last:
            transactions_of(self, self.segments[cut.last - 1])
        self.local.drop_from(cut, self.config, now_ms)
        self.offsets.move(cut.log_start_offset, min(self.high_watermark, end), end)
        self.begin_at(cut)
        self.snapshots.remove_above(end)
        self.loaded_ms = now_ms
        reload_state(self, self.producers, self.high_watermark, self.config.producer_id_expiration_ms)
        self.flushing.sync_cut(end)
        lost = KafkaStorageError(f"{self.topic_partition} was truncated at offset {end}")
        self.waiting.fail(lost, above=end)

    # Offsets

    @property
    def log_start_offset(self) -> int:
        """The first offset that readers may request."""
        return self.offsets.log_start

    @property
    def high_watermark(self) -> int:
        """The offset below which batches are durable and visible to readers."""
        return self.offsets.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest undecided transaction, or the high watermark."""
        return self.offsets.last_stable

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self.offsets.log_end

    @property
    def log_end_metadata(self) -> LogOffsetMetadata:
        """The log end and its position."""
        active = self.segments.active
        return LogOffsetMetadata(self.offsets.log_end, active.base_offset, active.size)

    # Failing

    def note(self, what: str, action: str = "", why: str = "") -> None:
        """Log and record a repair; see ``RepairStep``."""
        done = RepairStep(what, action, why)
        LOG.warning("%s: %s", self.topic_partition, done)
        self.repairs.append(done)

    @property
    def fenced(self) -> OSError | None:
        """The error that stopped appends; None while the log accepts them."""
        return self.guarded_by.error

    def fence(self, error: OSError | KafkaError) -> None:
        """Stop all further appends and acknowledgements."""
        self.guarded_by.put_up(error)
        self.waiting.fail(self.fenced or error)

    def check_usable(self) -> None:
        """Raise KafkaStorageError if the log is fenced, LogDirError if another process owns it."""
        self.guarded_by.check()

    # Closing

    def close(self) -> None:
        """Flush the log, save indexes and a snapshot, and close the files for good; a second call does
        nothing. Closes the files even if it raises KafkaStorageError."""
        if self.guarded_by.is_closed:
            return
        try:
            self.check_usable()
            if self.needs_flush or self.flushing.has_contents:
                self.flush()
            self.flushing.check_contents()
            self.local.save()
            if self.snapshots.newest(self.log_end_offset) != self.log_end_offset:
                self.snapshots.write(self.log_end_offset, self.producers.snapshot())
            self.flushing.sync_derived()
        except OSError as error:
            self.fence(error)
            self.check_usable()
        finally:
            self.release()

    def release(self) -> None:
        """Close the files for good, after any running flush: the log was deleted or abandoned."""
        self.guarded_by.is_closed = True
        if not self.is_flushing:  # else another file might get the descriptor that a thread is syncing
            self.local.close_files()
