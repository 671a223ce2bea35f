"""Checks the files of a stopped directory, independently of the clients: offsets, sequences, markers, derived
files, and the records for read_committed readers.

``lenient`` partitions have lost records by retention or compaction, or producers by expiry: checks that need
all records are skipped there.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from txnkafka.testing.simulation.log_files import (
    Batch,
    Decision,
    Producer,
    aborted_of,
    batches_of,
    decisions_of,
    offsets_of,
    segments_of,
    snapshot_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Set

_SEQUENCES: Final = 2**31
_LARGEST_EPOCH: Final = 32767
_PREPARE_COMMIT, _ONGOING, _PREPARE_ABORT = 2, 1, 3
STATE_TOPIC: Final = "__transaction_state"
OFFSETS_TOPIC: Final = "__consumer_offsets"


@dataclass(slots=True)
class _State:
    """The state of a producer after the batches so far."""

    epoch: int
    last_sequence: int = -1
    last_offset: int = -1
    coordinator_epoch: int = -1
    first_offset: int = -1  # of the open transaction
    data_epoch: int = -1  # epoch of the open transaction's batches


@dataclass(slots=True)
class _Replay:
    """Replays a partition batch by batch; ``problems`` are the faults, ``aborted`` the expected entries of a
    transaction index. Unless ``is_sequenced`` (in a coordinator's partition), all sequences begin with 0."""

    name: str
    is_lenient: bool
    is_sequenced: bool = True
    keeps_transactions: bool = False
    problems: list[str] = field(default_factory=list)
    producers: dict[int, _State] = field(default_factory=dict)
    aborted: list[tuple[int, int, int, int]] = field(default_factory=list)
    commits: set[tuple[int, int]] = field(default_factory=set)
    next_offset: int = 0
    leader_epoch: int = 0

    @property
    def _checks_sequences(self) -> bool:
        """Return True if no batch that determines the next sequence can be missing."""
        return not self.is_lenient or not self.is_sequenced

    def say(self, text: str) -> None:
        """Record a problem."""
        self.problems.append(f"{self.name}: {text}")

    def take(self, batch: Batch) -> None:
        """Replay the next batch."""
        if batch.base_offset < self.next_offset or batch.last_offset < batch.base_offset:
            self.say(f"offsets {batch.base_offset} to {batch.last_offset} follow {self.next_offset - 1}")
        elif not self.is_lenient and batch.base_offset != self.next_offset:
            self.say(f"offset {batch.base_offset} follows {self.next_offset - 1}")
        self.next_offset = batch.last_offset + 1
        if batch.leader_epoch < self.leader_epoch:
            self.say(f"leader epoch {batch.leader_epoch} at {batch.base_offset} after {self.leader_epoch}")
        self.leader_epoch = batch.leader_epoch
        if batch.producer_id < 0:
            return
        state = self.producers.get(batch.producer_id)
        if state is None:
            state = self.producers[batch.producer_id] = _State(batch.producer_epoch)
        elif batch.producer_epoch < state.epoch:
            self.say(f"producer {batch.producer_id} has epoch {batch.producer_epoch} at {batch.base_offset} "
                     f"after {state.epoch}")  # fmt: skip
        if batch.committed is None:
            self._take_data(state, batch)
        else:
            self._take_marker(state, batch)

    def _take_data(self, state: _State, batch: Batch) -> None:
        if batch.producer_epoch != state.epoch:
            state.epoch, state.last_sequence = batch.producer_epoch, -1
            if batch.base_sequence != 0 and self._checks_sequences:
                self.say(f"producer {batch.producer_id} epoch {batch.producer_epoch} begins with sequence "
                         f"{batch.base_sequence} at {batch.base_offset}")  # fmt: skip
        elif state.last_sequence >= 0 and self._checks_sequences:
            expected = (state.last_sequence + 1) % _SEQUENCES if self.is_sequenced else 0
            if batch.base_sequence != expected:
                self.say(f"producer {batch.producer_id} has sequence {batch.base_sequence} at "
                         f"{batch.base_offset}, not {expected}")  # fmt: skip
        count = batch.last_offset - batch.base_offset
        state.last_sequence = (batch.base_sequence + count) % _SEQUENCES
        state.last_offset = batch.last_offset
        if batch.is_transactional and (batch.records or not self.is_lenient):
            if state.first_offset < 0:
                state.first_offset = batch.base_offset
            elif state.data_epoch != batch.producer_epoch:
                self.say(f"the transaction of producer {batch.producer_id} since {state.first_offset} has "
                         f"epochs {state.data_epoch} and {batch.producer_epoch}")  # fmt: skip
            state.data_epoch = batch.producer_epoch

    def _take_marker(self, state: _State, batch: Batch) -> None:
        if batch.coordinator_epoch < state.coordinator_epoch:
            self.say(f"a marker of producer {batch.producer_id} at {batch.base_offset} has coordinator epoch "
                     f"{batch.coordinator_epoch} after {state.coordinator_epoch}")  # fmt: skip
        if state.first_offset >= 0:
            later = batch.producer_epoch - state.data_epoch
            is_kept = self.keeps_transactions and later > 1
            if later not in (0, 1) and not self.is_lenient and not is_kept:
                self.say(f"the marker at {batch.base_offset} has epoch {batch.producer_epoch}, its "
                         f"transaction {state.data_epoch}")  # fmt: skip
            if batch.committed:
                self.commits.add((batch.producer_id, batch.producer_epoch))
        if batch.producer_epoch != state.epoch:
            state.epoch, state.last_sequence, state.last_offset = batch.producer_epoch, -1, -1
        first, state.first_offset = state.first_offset, -1
        state.coordinator_epoch = batch.coordinator_epoch
        if first >= 0 and not batch.committed:
            others = [each.first_offset for each in self.producers.values() if each.first_offset >= 0]
            stable = min(others, default=batch.last_offset + 1)
            self.aborted.append((batch.producer_id, first, batch.last_offset, stable))

    def rows(self) -> set[Producer]:
        """Return the producers in the form of a snapshot."""
        return {
            Producer(
                producer_id, state.epoch, state.last_sequence, state.last_offset, state.coordinator_epoch,
                state.first_offset,
            )
            for producer_id, state in self.producers.items()
        }  # fmt: skip


def check_directory(
    directory: Mapping[str, Mapping[str, bytes]], lenient: Set[str], *, keeps_transactions: bool = False
) -> list[str]:
    """Return the problems of the partitions of a directory, which maps directory names to files by name.
    ``lenient`` has the topics of lenient partitions. With ``keeps_transactions`` a marker may have a later
    epoch than the one after its transaction's, since a producer was restarted in between (KIP-939)."""
    problems: list[str] = []
    commits: set[tuple[int, int]] = set()
    for name, files in sorted(directory.items()):
        topic = name.rpartition("-")[0]
        replay = _Replay(
            name, is_lenient=topic in lenient, is_sequenced=topic != OFFSETS_TOPIC,
            keeps_transactions=keeps_transactions,
        )  # fmt: skip
        _check_partition(replay, files)
        problems += replay.problems
        commits |= replay.commits
    if STATE_TOPIC not in lenient:
        decided = {
            (decision.producer_id, decision.producer_epoch)
            for decision in _decisions(directory) if decision.state == _PREPARE_COMMIT
        }  # fmt: skip
        for producer_id, epoch in sorted(commits - decided):
            problems.append(f"producer {producer_id} epoch {epoch} has a COMMIT marker, and no PrepareCommit")
    for transactional_id, (producer_id, epoch, state) in sorted(last_decisions(directory).items()):
        if state in (_ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT):
            problems.append(f"{transactional_id} is in state {state} of producer {producer_id} epoch {epoch}")
    return problems


def _check_partition(replay: _Replay, files: Mapping[str, bytes]) -> None:
    indexes = dict(segments_of(files, ".txnindex"))
    snapshots = dict(segments_of(files, ".snapshot"))
    for base_offset, data in segments_of(files, ".log"):
        if base_offset < replay.next_offset:
            replay.say(f"the segment {base_offset} follows offset {replay.next_offset - 1}")
        _check_snapshot(replay, snapshots.get(base_offset), base_offset)
        replay.aborted = []
        if replay.is_lenient or not replay.next_offset:
            replay.next_offset = base_offset
        try:
            for batch in batches_of(data):
                replay.take(batch)
        except (ValueError, IndexError, struct.error) as error:
            replay.say(f"segment {base_offset}: {error}")
        found = aborted_of(indexes.get(base_offset, b""))
        if not replay.is_lenient and found != replay.aborted:
            replay.say(f"the transaction index {base_offset} has {found}, not {replay.aborted}")
    _check_snapshot(replay, snapshots.get(replay.next_offset), replay.next_offset)
    for producer_id, state in replay.producers.items():
        if state.first_offset >= 0:
            replay.say(f"the transaction of producer {producer_id} is open since {state.first_offset}")


def _check_snapshot(replay: _Replay, data: bytes | None, offset: int) -> None:
    if data is not None and not replay.is_lenient:
        found = set(snapshot_of(data))
        if found != replay.rows():
            wrong = sorted(found ^ replay.rows())
            replay.say(f"the snapshot {offset} and the log before it differ: {wrong}")


def _decisions(directory: Mapping[str, Mapping[str, bytes]]) -> Iterator[Decision]:
    for name, files in sorted(directory.items()):
        if name.rpartition("-")[0] == STATE_TOPIC:
            for _, data in segments_of(files, ".log"):
                for batch in batches_of(data):
                    yield from decisions_of(batch)


def last_decisions(directory: Mapping[str, Mapping[str, bytes]]) -> dict[str, tuple[int, int, int]]:
    """Return the producer id, epoch and state in each transactional id's last record."""
    found: dict[str, tuple[int, int, int]] = {}
    for decision in _decisions(directory):
        if decision.state < 0:
            found.pop(decision.transactional_id, None)
        else:
            found[decision.transactional_id] = decision[1:]
    return found


def committed_records(files: Mapping[str, bytes]) -> list[tuple[int, bytes | None]]:
    """Return the offsets and values of a partition for a read_committed reader."""
    return [(offset, value) for offset, _, value in committed_rows(files)]


def committed_rows(files: Mapping[str, bytes]) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """Yield the offsets, keys and values of a partition for a read_committed reader."""
    batches: list[Batch] = [each for _, data in segments_of(files, ".log") for each in batches_of(data)]
    aborted: set[int] = set()  # base offsets
    ends: dict[int, bool] = {}  # producer id → outcome of its next marker, going backwards
    for batch in reversed(batches):
        if batch.committed is not None:
            ends[batch.producer_id] = batch.committed
        elif batch.is_transactional and not ends.get(batch.producer_id, False):
            aborted.add(batch.base_offset)
    for batch in batches:
        if batch.committed is None and batch.base_offset not in aborted:
            yield from batch.records


def committed_offsets(directory: Mapping[str, Mapping[str, bytes]]) -> dict[tuple[str, str, int], int]:
    """Return the committed offsets by group, topic and partition. A commit in a transaction counts from its
    record on, but only if a COMMIT marker follows; a tombstone removes earlier commits."""
    found: dict[tuple[str, str, int], tuple[int, int]] = {}  # → (place in the log, offset)
    for name, files in sorted(directory.items()):
        if name.rpartition("-")[0] == OFFSETS_TOPIC:
            pending: dict[int, dict[tuple[str, str, int], tuple[int, int]]] = {}
            for batch in (each for _, data in segments_of(files, ".log") for each in batches_of(data)):
                ended = pending.pop(batch.producer_id, {}) if batch.committed is not None else {}
                for key, row in ended.items() if batch.committed else ():
                    found[key] = max(row, found.get(key, row))
                target = pending.setdefault(batch.producer_id, {}) if batch.is_transactional else found
                for key, place, offset in offsets_of(batch):
                    if offset is None:
                        for each in (found, *pending.values()):
                            each.pop(key, None)
                    else:
                        target[key] = place, offset
    return {key: offset for key, (_, offset) in found.items()}
