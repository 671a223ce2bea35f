"""Producer state compared with DescribeProducers, from headers alone and from every snapshot; and
.txnindex."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.golden.cases import Case, cases
from tests.models.producer_state import ProducerStateManager
from txnkafka._core.producer_table import ProducerTable
from txnkafka._core.scan import scan
from txnkafka.model import CompletedTxn, ProducerStateEntry, TopicPartition
from txnkafka.storage.formats import parse_segment_file, parse_txn_index

# The broker trusted these files, so its state differs from that of the log (DIVERGENCES.md).
MISLED = {"clean_bad_index", "clean_lying_index", "clean_torn_tail", "clean_no_snapshot"}
# Records were deleted here, including batches whose state is only in snapshots.
DELETED = {("deleted", "gone"), ("deleted", "sized"), ("deleted_restarted", "gone")}
DELETED |= {("deleted_restarted", "sized")}
# The cleaner removed batches of producers whose state is only in snapshots.
FORGETFUL = DELETED | {("compacted", "drop"), ("compacted", "soon")}
# Records were deleted; ``.txnindex`` still has the former first offsets.
TRIMMED = DELETED | {(f"kafka_{version}", "trimmed") for version in ("2_8", "3_3", "3_9", "4_4")}
# The cleaner removed all records of aborted transactions; their end markers and entries are still there.
CLEANED = {("kafka_4_4", "compacted")}
# Aborted transactions (producer, first offset, last offset, last stable offset) that only the log or only
# ``.txnindex`` has, because one of the two was damaged, or the cleaner removed the first batches.
BELOW_RECOVERY_POINT = [(3, 5, 14, 15), (3, 35, 36, 31), (1, 38, 39, 40)]
REBUILT = [(4, 51, 54, 43), (2, 50, 63, 43), (1, 52, 70, 43), (1, 73, 74, 43), (4, 59, 79, 43)]
REBUILT += [(3, 43, 80, 64), (3, 81, 85, 64), (3, 86, 87, 64)]
Aborted = tuple[int, int, int, int]
ONLY_ONE_HAS: dict[tuple[str, str], tuple[list[Aborted], list[Aborted]]] = {
    ("clean_bad_log_start", "crash"): ([], [(3, 5, 14, 15)]),  # all its data is below offset 10
    ("clean_lying_txnindex", "crash"): ([], [(2, 23, 28, 29)]),
    ("clean_missing_segment", "crash"): ([], [(2, 50, 63, 43), (1, 52, 70, 43)]),
    ("clean_no_txnindex", "crash"): (BELOW_RECOVERY_POINT + REBUILT, []),
    ("crash_no_txnindex", "crash"): (BELOW_RECOVERY_POINT, []),
    ("compacted", "stuck"): ([(1, 90, 93, 94)], [(1, 87, 93, 94)]),
}
NEVER = 2**62
DAY_MS = 86_400_000

PARTITIONS = [(each, partition) for each in cases() for partition in each.partitions()]
WITH_SNAPSHOTS = [
    (each, partition)
    for each, partition in PARTITIONS
    if each.name not in MISLED
    and "describe_producers" in each.facts(partition)
    and list((each.answered / str(partition)).glob("*.snapshot"))
]


def each_of(found: list[tuple[Case, TopicPartition]]) -> pytest.MarkDecorator:
    ids = [f"{each.name}-{partition}" for each, partition in found]
    return pytest.mark.parametrize(("case", "partition"), found, ids=ids)


partitions = each_of(PARTITIONS)


class Partition:
    """A partition's segments, snapshots and transaction indexes."""

    def __init__(self, folder: Path) -> None:
        names = {parse_segment_file(path.name): path for path in sorted(folder.iterdir())}
        self._files = [(file, path) for file, path in names.items() if file is not None and not file.suffix]
        self.segments = [scan(data) for _, data in self._of_kind("log")]
        self.snapshots = dict(self._of_kind("snapshot"))
        indexes = [parse_txn_index(data, base_offset) for base_offset, data in self._of_kind("txnindex")]
        self.aborted = [tuple(entry) for entries, _ in indexes for entry in entries]

    def _of_kind(self, kind: str) -> list[tuple[int, bytes]]:
        return [(file.base_offset, path.read_bytes()) for file, path in self._files if file.kind == kind]

    def replayed(self, log_start_offset: int) -> tuple[ProducerTable, list[CompletedTxn]]:
        """Replay from headers alone."""
        table, completed = ProducerTable(), list[CompletedTxn]()
        for segment in self.segments:
            table.replay(segment, log_start_offset, completed)
        return table, completed

    def table_from(self, snapshot_offset: int) -> ProducerTable:
        """Load a snapshot and replay the batches after it."""
        table = ProducerTable()
        table.load(self.snapshots[snapshot_offset], now_ms=0, expiration_ms=NEVER)
        for segment in self.segments:
            table.replay(segment, snapshot_offset, [])
        return table


def described(table: ProducerTable, answered: list[dict[str, Any]], now_ms: int) -> list[dict[str, Any]]:
    """Return the rows of DescribeProducers; the broker expires idle producers only now and then, and may
    still have some."""
    entries = table.entries()
    table.expire(now_ms, DAY_MS)
    known = {each["producer_id"] for each in answered} | {entry.producer_id for entry in table.entries()}
    return [_described(entry) for entry in entries if entry.producer_id in known]


def _described(entry: ProducerStateEntry) -> dict[str, Any]:
    return {
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "last_sequence": entry.last_sequence,
        "last_timestamp": entry.last_timestamp,
        "coordinator_epoch": None if entry.coordinator_epoch == -1 else entry.coordinator_epoch,
        "current_txn_start_offset": entry.current_txn_first_offset if entry.has_open_transaction else None,
    }


def answer(case: Case, partition: TopicPartition) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    facts = case.facts(partition)
    producers = facts.get("describe_producers")
    if producers is None:
        assert partition.topic.startswith(("magic", "upgraded"))  # that broker was not asked
        return facts, []
    return facts, sorted(producers, key=lambda each: each["producer_id"])


@partitions
def test_from_headers_alone(case: Case, partition: TopicPartition) -> None:
    facts, producers = answer(case, partition)
    table, _ = Partition(case.answered / str(partition)).replayed(facts["log_start_offset"])
    unstable = table.first_undecided_offset
    found = described(table, producers, case.recorded_at_ms)
    if (case.name, partition.topic) in FORGETFUL:
        assert {each["producer_id"] for each in found} <= {each["producer_id"] for each in producers}
    elif "describe_producers" in facts:
        assert (found == producers) == (case.name not in MISLED)
    if partition.topic != "sized":
        _assert_last_stable_offset(case, facts, unstable)


def _assert_last_stable_offset(case: Case, facts: dict[str, Any], unstable: int | None) -> None:
    high_watermark = facts["high_watermark"]
    last_stable_offset = high_watermark
    if unstable is not None:
        last_stable_offset = min(max(unstable, facts["log_start_offset"]), high_watermark)
    if case.name == "clean_no_snapshot":  # the broker shows undecided data
        assert last_stable_offset < facts["lso"]
    else:
        assert last_stable_offset == facts["lso"]


def test_most_partitions_have_snapshots() -> None:
    assert (len(PARTITIONS), len(WITH_SNAPSHOTS)) == (226, 203)


@each_of(WITH_SNAPSHOTS)
def test_from_every_snapshot(case: Case, partition: TopicPartition) -> None:
    _, producers = answer(case, partition)
    files = Partition(case.answered / str(partition))
    assert files.snapshots
    for offset in files.snapshots:
        assert described(files.table_from(offset), producers, case.recorded_at_ms) == producers


@partitions
def test_aborted_transactions(case: Case, partition: TopicPartition) -> None:
    """Compared in the order of their end markers, with every field."""
    files = Partition(case.answered / str(partition))
    log_start = case.facts(partition)["log_start_offset"]
    aborted = (each for each in files.replayed(log_start)[1] if each.is_aborted)
    found = [
        (each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset) for each in aborted
    ]
    noted = [entry[1:] for entry in files.aborted]
    if (case.name, partition.topic) in TRIMMED:
        # the same markers, and the same first offsets, as far as the data still exists
        assert [each[::2] for each in found] == [each[::2] for each in noted if each[2] >= log_start]
        assert all(ours[1] >= theirs[1] for ours, theirs in zip(found[::-1], noted[::-1], strict=False))
        return
    if (case.name, partition.topic) in CLEANED:
        assert found == [each for each in noted if each in found] != noted
        return
    only_log, only_noted = ONLY_ONE_HAS.get((case.name, partition.topic), ([], []))
    assert [each for each in found if each not in only_log] == [
        each for each in noted if each not in only_noted
    ]
    assert (set(found) - set(noted), set(noted) - set(found)) == (set(only_log), set(only_noted))


@partitions
def test_a_sound_log_has_no_anomalies(case: Case, partition: TopicPartition) -> None:
    found: list[tuple[str, int]] = []
    table = ProducerTable()
    for segment in Partition(case.answered / str(partition)).segments:
        anomalies: list[tuple[str, int, str]] = []
        table.replay_checked(segment, 0, len(segment), [], anomalies)
        found += [(name, segment[number].base_offset) for name, number, _ in anomalies]
    assert found == ([("sequence_back", 92)] if case.name == "crash_repeated_tail" else [])


@partitions
def test_a_replay_is_that_of_the_model(case: Case, partition: TopicPartition) -> None:
    """The states are also equal after loading a snapshot of the state."""
    log_start_offset = case.facts(partition)["log_start_offset"]
    files, model = Partition(case.answered / str(partition)), ProducerStateManager()
    for segment in files.segments:
        for number in range(len(segment)):
            if segment[number].last_offset >= log_start_offset:
                model.update(segment[number])
    table, completed = files.replayed(log_start_offset)
    assert (table.entries(), completed) == (model.rows(), model.completed)
    assert table.first_unstable_offset == model.first_unstable_offset(0)
    again = ProducerTable()
    again.load(table.snapshot(), now_ms=0, expiration_ms=NEVER)
    assert again.entries() == table.entries()
    assert again.open_transactions() == table.open_transactions()
