"""A partition log in a data directory and its model: random changes, and comparisons after each."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.models.partition_log import LARGEST_SEQUENCE, Batch, PartitionLogModel, after
from tests.property.partition_log_checks import (
    check_offsets,
    check_positions,
    check_producers,
    check_records,
    check_transaction_indexes,
)
from txnkafka._core.encode import encode_batch, end_txn_marker
from txnkafka.broker.log_manager import LogManager
from txnkafka.config import LogConfig
from txnkafka.errors import KafkaError
from txnkafka.logdir.directory import LogDir
from txnkafka.logdir.verify import verify
from txnkafka.model import TopicPartition
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.log.append_info import AppendInfo
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.testing.disk import Disk
from txnkafka.testing.losses import ALL_KEPT, ALL_LOST, Choice, Losses
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.testing.unsynced import Unsynced

__all__ = ["PartitionLogMachine"]

PARTITION = TopicPartition("t", 0)
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"
OUT_OF_ORDER = 45
START_MS, EXPIRATION_MS = 1_000_000, 60_000
DERIVED = (".index", ".timeindex", ".txnindex", ".snapshot", "-checkpoint", "shutdown")
KEPT = "log-start-offset-checkpoint"  # the only record of deletions


@dataclass
class Sender:
    """A producer's client: what it will send next."""

    producer_id: int
    transaction_version: int = 0
    epoch: int = 0
    sequence: int = 0


class ModelClock:
    def __init__(self, model: PartitionLogModel) -> None:
        self.model = model

    def now_ms(self) -> int:
        return self.model.now_ms


counts, slots = st.integers(1, 3), st.integers(0, 3)


class PartitionLogMachine(RuleBasedStateMachine):
    """Four senders and one log."""

    directory: LogManager
    log: PartitionLog

    @initialize(
        segment_bytes=st.sampled_from([400, 700, 2000]),
        retention_bytes=st.sampled_from([-1, 1500]),
        preallocate=st.booleans(),
    )
    def begin(self, segment_bytes: int, retention_bytes: int, preallocate: bool) -> None:
        self.model = PartitionLogModel(EXPIRATION_MS, START_MS)
        self.config = LogConfig(
            segment_bytes=segment_bytes, index_interval_bytes=150, retention_bytes=retention_bytes,
            retention_ms=20_000, segment_ms=10_000, preallocate=preallocate, file_delete_delay_ms=5_000,
            producer_id_expiration_ms=EXPIRATION_MS,
        )  # fmt: skip
        self.written = self.coordinator_epoch = self.leader_epoch = self.next_producer_id = 0
        self.lowest_stable = 0
        self.reloaded_at = 0  # data below is known from files only
        self.senders = [self._sender() for _ in range(4)]
        self.files = MemoryFiles(ModelClock(self.model))
        self.directory = self._open()
        self.log = self.directory.create(PARTITION, TOPIC_ID, now_ms=START_MS)

    def _sender(self, **fields: int) -> Sender:
        self.next_producer_id += 1
        return Sender(self.next_producer_id, **fields)

    def _open(self) -> LogManager:
        directory = LogManager(
            DataDirectory(self.files, "/data", lambda topic: self.config, now_ms=self.model.now_ms)
        )
        assert directory.data.refused == {}
        return directory

    # Appending

    @rule(batches=st.lists(st.tuples(slots, counts, st.booleans()), min_size=1, max_size=6))
    def append(self, batches: list[tuple[int, int, bool]]) -> None:
        for slot, count, transactional in batches:
            sender = self.senders[slot]
            self._send(sender, self._data(sender, sender.sequence, count, transactional))

    @rule(batches=st.lists(st.tuples(slots, counts), min_size=1, max_size=6), commit=st.booleans())
    def run_transactions(self, batches: list[tuple[int, int]], commit: bool) -> None:
        """Run transactions of several producers at once, which end in the order of their slots."""
        self.append([(slot, count, True) for slot, count in batches])
        for slot in sorted({slot for slot, _ in batches}):
            self.end_transaction(slot, commit, 0)
            commit = not commit

    @rule(count=counts)
    def append_plain(self, count: int) -> None:
        self._append(Batch(self._values(count), self.model.now_ms), 0)

    @rule(slot=slots, count=counts, distance=st.integers(-3, 3), transactional=st.booleans())
    def append_elsewhere(self, slot: int, count: int, distance: int, transactional: bool) -> None:
        """Send a sequence that is usually not the next one."""
        sender = self.senders[slot]
        sequence = (sender.sequence + distance) % (LARGEST_SEQUENCE + 1)
        self._send(sender, self._data(sender, sequence, count, transactional))

    @rule(slot=slots, distance=st.integers(1, 6))
    def append_again(self, slot: int, distance: int) -> None:
        sender = self.senders[slot]
        sent = [b for b in self.model.batches if b.producer_id == sender.producer_id and b.commit is None]
        if len(sent) >= distance:
            self._send(sender, sent[-distance])

    def _may_be_forgotten(self, batch: Batch) -> bool:
        """Return whether the batch is in a deleted segment, and only that segment would identify it."""
        sent = [b for b in self.model.batches if b.producer_id == batch.producer_id and b.commit is None]
        loaded = [each for each in sent if each.base_offset < self.reloaded_at]
        return batch.base_offset < self.log.segments[0].base_offset and batch in loaded[:-1]

    def _is_loaded(self, batch: Batch) -> bool:
        """Return whether a snapshot may have the batch: its timestamp there is that of a marker behind it."""
        own = [each for each in self.model.batches if each.producer_id == batch.producer_id]
        loaded = [each for each in own if each.base_offset < self.reloaded_at]
        data = [each for each in loaded if each.commit is None]
        return bool(data) and data[-1] == batch and loaded[-1].commit is not None

    @rule(slot=slots, transactional=st.booleans())
    def append_with_old_epoch(self, slot: int, transactional: bool) -> None:
        sender = self.senders[slot]
        batch = self._data(sender, sender.sequence, 1, transactional)
        if sender.epoch > 0:
            self._append(batch._replace(epoch=sender.epoch - 1), sender.transaction_version)

    @rule(slot=slots)
    def begin_epoch(self, slot: int) -> None:
        self.senders[slot].epoch += 1
        self.senders[slot].sequence = 0

    @rule(
        slot=slots,
        sequence=st.sampled_from([0, 0, 7, LARGEST_SEQUENCE - 2, LARGEST_SEQUENCE]),
        version=st.sampled_from([0, 2]),
    )
    def change_producer(self, slot: int, sequence: int, version: int) -> None:
        if version == 2:
            sequence = 0
        self.senders[slot] = self._sender(transaction_version=version, sequence=sequence)

    @rule(slot=slots, commit=st.booleans(), older=st.sampled_from([0, 0, 0, 0, 1]))
    def end_transaction(self, slot: int, commit: bool, older: int) -> None:
        sender = self.senders[slot]
        epoch = sender.epoch + (sender.transaction_version == 2)
        self.coordinator_epoch += older == 0
        marker = Batch(
            (b"",), self.model.now_ms, sender.producer_id, epoch, transactional=True, commit=commit,
            coordinator_epoch=self.coordinator_epoch - 2 * older,
        )  # fmt: skip
        if marker.coordinator_epoch < 0:
            return
        done = self._append(marker, sender.transaction_version)
        if done is not None and sender.transaction_version == 2:
            sender.epoch, sender.sequence = epoch, 0

    @rule()
    def begin_leader_epoch(self) -> None:
        self.leader_epoch += 2

    def _values(self, count: int) -> tuple[bytes, ...]:
        self.written += count
        return tuple(b"value %d" % number for number in range(self.written - count, self.written))

    def _data(self, sender: Sender, sequence: int, count: int, transactional: bool) -> Batch:
        return Batch(
            self._values(count), self.model.now_ms, sender.producer_id, sender.epoch, sequence, transactional
        )

    def _send(self, sender: Sender, batch: Batch) -> None:
        done = self._append(batch, sender.transaction_version)
        if done is not None and not done.is_duplicate:
            sender.sequence = after(batch.last_sequence, 1)

    def _append(self, batch: Batch, version: int) -> AppendInfo | None:
        """Append the batch to both. Returns None when both refuse."""
        batch = batch._replace(leader_epoch=self.leader_epoch)
        expected = self.model.judge(batch, version)
        try:
            found: AppendInfo | int = self._append_to_log(batch, version)
        except KafkaError as error:
            found = error.code
        self.log.verification.clear()
        if isinstance(found, int):
            if isinstance(expected, Batch) and self._may_be_forgotten(expected):
                expected = OUT_OF_ORDER
            assert found == expected, f"refused with {found}, by the model with {expected}"
            return None
        if isinstance(expected, Batch):
            epoch = expected.leader_epoch
            is_kept = expected.base_offset >= self.log.segments[0].base_offset
            is_exact = is_kept and not self._is_loaded(expected)  # a snapshot has another timestamp
            timestamp = expected.timestamp if is_exact else found.log_append_time
            wanted = expected.base_offset, expected.last_offset, timestamp, self.model.log_start
        else:
            assert expected == 0, f"appended, the model refuses with {expected}"
            epoch = batch.leader_epoch
            appended = self.model.append(batch)
            wanted = appended.base_offset, appended.last_offset, -1, self.model.log_start
        assert found[:5] == (*wanted, isinstance(expected, Batch))
        assert found.durable_at == found.last_offset + 1
        assert found.leader_epoch in (epoch, -1 if found.is_duplicate else epoch)
        return found

    def _append_to_log(self, batch: Batch, version: int) -> AppendInfo:
        if batch.commit is not None:
            content = end_txn_marker(
                base_offset=0, timestamp=batch.timestamp, producer_id=batch.producer_id,
                producer_epoch=batch.epoch, coordinator_epoch=batch.coordinator_epoch, commit=batch.commit,
            )  # fmt: skip
            return self.log.append(
                content, now_ms=self.model.now_ms, leader_epoch=self.leader_epoch,
                origin=AppendOrigin.COORDINATOR, transaction_version=version,
            )  # fmt: skip
        guard = 0
        if batch.transactional:
            guard = self.log.verification.maybe_start(
                self.log.producers, batch.producer_id, batch.epoch, batch.sequence,
                supports_epoch_bump=version == 2, now_ms=self.model.now_ms,
            )  # fmt: skip
        records = [(b"key", value, batch.timestamp, []) for value in batch.values]
        content = encode_batch(
            records, producer_id=batch.producer_id, producer_epoch=batch.epoch,
            base_sequence=batch.sequence, transactional=batch.transactional,
        )  # fmt: skip
        return self.log.append(content, now_ms=self.model.now_ms, leader_epoch=self.leader_epoch, guard=guard)

    # Retention and truncation

    @rule()
    def flush(self) -> None:
        self.directory.flush()
        self.model.flush()

    @rule()
    def roll(self) -> None:
        self.log.roll(self.model.now_ms)

    @rule(back=st.integers(1, 12))
    def truncate(self, back: int) -> None:
        """Truncate; an offset inside a batch removes the whole batch."""
        offset, first = max(self.model.log_end - back, 0), self.log.segments[0].base_offset
        end = max(self.model.end_below(offset) or 0, first)
        if offset < first or (end < self.model.log_start <= offset):
            return  # deleted data is not truncated
        self.directory.truncate(PARTITION, offset, now_ms=self.model.now_ms)
        if offset < self.model.log_end:
            self.model.truncate(end)
            self._reloaded()

    @rule(back=st.integers(0, 12))
    def delete_records(self, back: int) -> None:
        offset = max(self.model.high_watermark - back, 0)
        start = self.directory.delete_records(PARTITION, offset)
        self.model.log_start = max(self.model.log_start, offset)
        assert start == self.model.log_start

    @rule(ms=st.sampled_from([10, 3_000, 12_000, 30_000]))
    def time_passes(self, ms: int) -> None:
        self.model.now_ms += ms
        bases = [segment.base_offset for segment in self.log.segments]
        sizes = [segment.size for segment in self.log.segments]
        count = self.model.deleted(bases, sizes, self.config.retention_bytes, self.config.retention_ms)
        named = sum(segment.is_named for segment in self.log.segments)
        if named < len(bases):
            count = min(count, named - 1)
        self.directory.maintain(self.model.now_ms)
        bases.append(self.model.log_end)
        assert self.log.segments[0].base_offset == bases[count]
        self.model.log_start = max(self.model.log_start, bases[count])
        self._replace_expired()

    def _replace_expired(self) -> None:
        """When an expired producer is dropped depends on when the log was opened; its sender is replaced."""
        entries, _ = self.model.replay(self.model.log_end)
        for slot, sender in enumerate(self.senders):
            if sender.producer_id in entries and sender.producer_id not in self.model.producers():
                self.senders[slot] = self._sender(transaction_version=sender.transaction_version)

    # Restarts

    @rule(deleted=st.lists(st.integers(0, 30), max_size=3), emptied=st.booleans())
    def restart(self, deleted: list[int], emptied: bool) -> None:
        self.directory.close()
        self._check_files()
        self.model.flush()
        self._start(self.files.disk(), deleted, emptied)

    @rule(deleted=st.lists(st.integers(0, 30), max_size=3), emptied=st.booleans())
    def crash(self, deleted: list[int], emptied: bool) -> None:
        """Kill the process; its writes are kept, except for segments without their final names."""
        self._start(self.files.disk(), deleted, emptied)

    @rule(names=st.sampled_from([ALL_LOST, ALL_KEPT]))
    def lose_power(self, names: Choice) -> None:
        """Cut the power: only synced contents are kept, which may be more than was acknowledged."""
        unsynced = Unsynced(self.files.base)
        for change in self.files.journal:
            unsynced.make(change)
        disk, _ = Losses(unsynced).disk(ALL_LOST, names)
        self._start(disk, [], False)

    def _start(self, disk: Disk, deleted: list[int], emptied: bool) -> None:
        self.files = MemoryFiles(ModelClock(self.model), disk)
        for number in deleted:
            self._lose_derived_file(number, emptied)
        self.directory = self._open()
        self.log = self.directory.logs[PARTITION]
        end = self.log.log_end_offset
        assert self.model.durable <= end <= self.model.log_end
        self.model.truncate(end)
        self.model.flush()
        self._reloaded()

    def _lose_derived_file(self, number: int, emptied: bool) -> None:
        """Remove or empty a derived file, except snapshots that cannot be rebuilt because their segments are
        deleted."""
        names = [
            f"{directory}/{entry.name}"
            for directory in ("/data", f"/data/{PARTITION}")
            for entry in self.files.list(directory)
            if entry.name.endswith(DERIVED) and entry.name != KEPT
        ]
        logs = [entry.name for entry in self.files.list(f"/data/{PARTITION}") if entry.name.endswith(".log")]
        first = min(logs).removesuffix(".log")
        if int(first) > 0:
            names = [name for name in names if not name.endswith(f"{first}.snapshot")]
        if not names:
            return
        name = names[number % len(names)]
        newest = max((each for each in names if each.endswith(".snapshot")), default="")
        if emptied and (name == newest or not name.endswith(".snapshot")):  # the others are not read
            self.files.open_to_write(name).truncate(0)
        else:
            self.files.remove(name)

    def _reloaded(self) -> None:
        self.reloaded_at = self.model.log_end
        self.lowest_stable = 0
        self.log.producers.expire(self.model.now_ms, EXPIRATION_MS)
        self._replace_expired()
        for sender in self.senders:
            entry = self.model.producers().get(sender.producer_id)
            if entry is not None:
                sender.epoch = max(sender.epoch, entry.epoch)
                sender.sequence = after(entry.batches[-1].last_sequence, 1) if entry.batches else 0

    def _check_files(self) -> None:
        report = verify(LogDir("/data", file_system=self.files), level="records")
        found = [str(each) for each in report.findings if each.severity != "note"]
        assert found == [], found

    # After each step

    @invariant()
    def agree(self) -> None:
        check_offsets(self.log, self.model)
        check_positions(self.log)
        check_producers(self.log, self.model)
        check_transaction_indexes(self.log, self.model)
        check_records(self.log, self.model)
        assert self.log.last_stable_offset >= self.lowest_stable
        self.lowest_stable = self.log.last_stable_offset
