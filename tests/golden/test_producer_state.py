"""Producer state against DescribeProducers, from headers alone and from every snapshot, and .txnindex."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.golden.cases import Case, cases
from txnkafka._core.producer_table import ProducerTable
from txnkafka._core.scan import BatchHeader, BatchIndex, scan
from txnkafka.model import TopicPartition
from txnkafka.storage import (
    CompletedTxn,
    ProducerState,
    ProducerStateEntry,
    parse_producer_snapshot,
    parse_segment_file,
    parse_txn_index,
)

# The broker believed these, and had another state than the log gives (DIVERGENCES.md).
MISLED = {"clean_bad_index", "clean_lying_index", "clean_torn_tail", "clean_no_snapshot"}
# Deletion or compaction took batches that only snapshots remember.
FORGETFUL = {"deleted", "deleted_restarted", "compacted"}
# Not rewritten by the broker when batches went or when somebody damaged them.
OTHER_TXN_INDEX = FORGETFUL | {"kafka_2_8", "kafka_3_3", "kafka_3_9", "clean_bad_log_start"}
OTHER_TXN_INDEX |= {"clean_lying_txnindex", "clean_missing_segment", "clean_no_txnindex", "crash_no_txnindex"}
NEVER = 2**62

partitions = pytest.mark.parametrize(
    ("case", "partition"),
    [(each, partition) for each in cases() for partition in each.partitions()],
    ids=lambda value: value.name if isinstance(value, Case) else str(value),
)


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

    def state(self, log_start_offset: int) -> ProducerState:
        state = ProducerState()
        for segment in self.segments:
            state.replay(segment, log_start_offset)
        return state

    def state_from(self, snapshot_offset: int) -> ProducerState:
        state = ProducerState()
        state.load(parse_producer_snapshot(self.snapshots[snapshot_offset]))
        for segment in self.segments:
            state.replay(segment, snapshot_offset)
        return state


def described(state: ProducerState, answered: list[dict[str, Any]], now_ms: int) -> list[dict[str, Any]]:
    """As DescribeProducers; the broker looks for idle producers now and then, and may still know some."""
    known = {each["producer_id"] for each in answered}
    known |= {each.producer_id for each in state.producers(now_ms)}
    return [_described(each) for each in state.entries() if each.producer_id in known]


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
    state = Partition(case.answered / str(partition)).state(facts["log_start_offset"])
    found = described(state, producers, case.recorded_at_ms)
    if case.name in FORGETFUL:
        assert {each["producer_id"] for each in found} <= {each["producer_id"] for each in producers}
    elif "describe_producers" in facts:
        assert (found == producers) == (case.name not in MISLED)
    if (case.name, partition.topic) not in {("deleted", "sized"), ("deleted_restarted", "sized")}:
        _assert_last_stable_offset(case, facts, state)


def _assert_last_stable_offset(case: Case, facts: dict[str, Any], state: ProducerState) -> None:
    unstable = state.first_unstable_offset(facts["log_start_offset"])
    high_watermark = facts["high_watermark"]
    last_stable_offset = high_watermark if unstable is None else min(unstable, high_watermark)
    if case.name == "clean_no_snapshot":  # the broker shows what is undecided
        assert last_stable_offset < facts["lso"]
    else:
        assert last_stable_offset == facts["lso"]


@partitions
def test_from_every_snapshot(case: Case, partition: TopicPartition) -> None:
    facts, producers = answer(case, partition)
    files = Partition(case.answered / str(partition))
    for offset in files.snapshots if "describe_producers" in facts and case.name not in MISLED else ():
        assert described(files.state_from(offset), producers, case.recorded_at_ms) == producers


@partitions
def test_aborted_transactions(case: Case, partition: TopicPartition) -> None:
    files = Partition(case.answered / str(partition))
    completed = files.state(case.facts(partition)["log_start_offset"]).completed_transactions
    found = {
        (0, each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset)
        for each in completed
        if each.is_aborted
    }
    if case.name not in OTHER_TXN_INDEX:
        assert found == set(files.aborted)


@partitions
def test_a_sound_log_has_no_anomalies(case: Case, partition: TopicPartition) -> None:
    found: list[tuple[str, int]] = []

    def on_anomaly(code: str, header: BatchHeader, text: str) -> None:
        found.append((code, header.base_offset))

    state = ProducerState(on_anomaly)
    segments: list[BatchIndex] = Partition(case.answered / str(partition)).segments
    for segment in segments:
        state.replay(segment)
    assert found == ([("sequence_back", 92)] if case.name == "crash_repeated_tail" else [])


def table_rows(table: ProducerTable) -> tuple[list[Any], list[tuple[int, int]]]:
    transactions = table.open_transactions()
    return table.entries(), [(each.producer_id, each.current_txn_first_offset) for each in transactions]


def state_rows(state: ProducerState) -> tuple[list[Any], list[tuple[int, int]]]:
    transactions = state.open_transactions
    return state.entries(), [(each.producer_id, each.first_offset) for each in transactions]


@partitions
def test_the_compiled_table_gives_the_same(case: Case, partition: TopicPartition) -> None:
    log_start_offset = case.facts(partition)["log_start_offset"]
    files = Partition(case.answered / str(partition))
    for start, snapshot in [(log_start_offset, None), *files.snapshots.items()]:
        state = files.state(start) if snapshot is None else files.state_from(start)
        table, completed = ProducerTable(), list[CompletedTxn]()
        if snapshot is not None:
            table.load(snapshot, now_ms=0, expiration_ms=NEVER)
        for segment in files.segments:
            table.replay(segment, start, completed)
        assert table_rows(table) == state_rows(state)
        assert completed == state.completed_transactions
        assert table.first_unstable_offset == state.first_unstable_offset(0, high_watermark=0)
        again = ProducerTable()
        again.load(table.snapshot(), now_ms=0, expiration_ms=NEVER)
        assert table_rows(again) == table_rows(table)
