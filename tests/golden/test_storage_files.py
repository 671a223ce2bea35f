"""Every derived file of every case, row by row as the broker's own dump tool printed it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden.cases import Case, case, cases
from txnkafka._core.scan import scan
from txnkafka.errors import CorruptFileError
from txnkafka.model import ProducerStateEntry
from txnkafka.storage.formats import (
    OffsetIndex,
    TimeIndex,
    file_name,
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_directory,
    parse_partition_metadata,
    parse_producer_snapshot,
    parse_segment_file,
    parse_txn_index,
)

# The dump tool looks entries up in the log and prints none when the first is wrong.
MISLEADING_INDEX = {"clean_bad_index", "clean_lying_index", "clean_torn_tail"}
DAMAGED_TIME_INDEX = {"clean_bad_timeindex"}
DAMAGED_TXN_INDEX = {"clean_bad_txnindex", "clean_torn_txnindex"}
CHECKPOINTS = {
    "recovery-point-offset-checkpoint": parse_offset_checkpoint,
    "replication-offset-checkpoint": parse_offset_checkpoint,
    "log-start-offset-checkpoint": parse_offset_checkpoint,
    "cleaner-offset-checkpoint": parse_offset_checkpoint,
    "leader-epoch-checkpoint": parse_leader_epoch_checkpoint,
    "partition.metadata": parse_partition_metadata,
    "meta.properties": parse_meta_properties,
    ".kafka_cleanshutdown": parse_clean_shutdown,
}
MALFORMED = {
    "clean_bad_recovery_point/logs/recovery-point-offset-checkpoint",
    "clean_bad_leader_epoch/logs/crash-0/leader-epoch-checkpoint",
    "clean_bad_leader_epoch/recovered/crash-0/leader-epoch-checkpoint",
}

Rows = list[list[Any]]
all_cases = pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)


def dumped(case: Case, kind: str) -> Iterator[tuple[Path, int, dict[str, Any]]]:
    """Yield path, base offset and the dump tool's rows of each file of a kind."""
    for partition in case.dumped():
        for name, dump in case.dump(partition).items():
            file = parse_segment_file(name)
            assert file is not None
            if file.kind == kind and dump is not None:
                yield case.answered / str(partition) / name, file.base_offset, dump


def shown(entry: ProducerStateEntry) -> dict[str, int | None]:
    """Return the tool's columns; it prints a last batch only if there is one, and no -1."""
    fields = {
        "producerId": entry.producer_id,
        "producerEpoch": entry.producer_epoch,
        "coordinatorEpoch": entry.coordinator_epoch,
        "lastTimestamp": entry.last_timestamp,
        "currentTxnFirstOffset": entry.current_txn_first_offset if entry.has_open_transaction else None,
    }
    batch = {
        "firstSequence": entry.first_sequence,
        "lastSequence": entry.last_sequence,
        "lastOffset": entry.last_offset,
        "offsetDelta": entry.offset_delta,
        "timestamp": entry.last_timestamp,
    }
    return fields | (batch if entry.last_offset >= 0 else dict.fromkeys(batch))


@all_cases
def test_offset_indexes(case: Case) -> None:
    for path, base_offset, dump in dumped(case, "index"):
        index = OffsetIndex(path.read_bytes(), base_offset)
        log = path.with_suffix(".log").read_bytes()
        batches = scan(log)
        last_offsets = dict(zip(batches.position, batches.last_offset, strict=True))
        problems = index.problems(len(log), last_offsets=last_offsets)
        if case.name in MISLEADING_INDEX and not dump["rows"] and len(index):
            assert problems
        else:
            assert (list(map(list, index)), problems) == (dump["rows"], [])


@all_cases
def test_time_indexes(case: Case) -> None:
    for path, base_offset, dump in dumped(case, "timeindex"):
        index = TimeIndex(path.read_bytes(), base_offset)
        assert list(map(list, index)) == dump["rows"]
        assert bool(index.problems()) == (case.name in DAMAGED_TIME_INDEX)


@all_cases
def test_transaction_indexes(case: Case) -> None:
    found = []
    for path, base_offset, dump in dumped(case, "txnindex"):
        entries, problems = parse_txn_index(path.read_bytes(), base_offset)
        assert list(map(list, entries)) == dump["rows"]
        found += problems
    assert bool(found) == (case.name in DAMAGED_TXN_INDEX)


@all_cases
def test_producer_snapshots(case: Case) -> None:
    for path, _, dump in dumped(case, "snapshot"):
        entries = map(shown, parse_producer_snapshot(path.read_bytes()))
        rows = [[entry[column] for column in dump["columns"]] for entry in entries]
        assert sorted(rows, key=str) == sorted(dump["rows"], key=str)


def test_there_is_something_to_compare() -> None:
    kinds = ("index", "timeindex", "txnindex", "snapshot")
    counts = {kind: sum(1 for each in cases() for _ in dumped(each, kind)) for kind in kinds}
    assert counts == {"index": 631, "timeindex": 625, "txnindex": 447, "snapshot": 638}


@all_cases
def test_checkpoints(case: Case) -> None:
    refused = set()
    for path in case.root.glob("**/*"):
        if path.name in CHECKPOINTS:
            try:
                CHECKPOINTS[path.name](path.read_bytes())
            except CorruptFileError:
                refused.add(str(path.relative_to(case.root.parent)))
    assert refused == {path for path in MALFORMED if path.startswith(f"{case.name}/")}


@all_cases
def test_names(case: Case) -> None:
    for path in case.root.glob("*/**/*.*"):
        file = parse_segment_file(path.name)
        if file is not None:
            assert path.name == file_name(file.base_offset, file.kind) + file.suffix
            assert parse_partition_directory(path.parent.name) is not None


def test_an_unclean_stop_leaves_preallocated_indexes() -> None:
    path = case("crash").logs / "crash-0" / "00000000000000000086.index"
    data = path.read_bytes()
    assert (len(data), list(OffsetIndex(data, 86))) == (256, [(92, 757)])
    assert OffsetIndex(data, 86).problems(911) == []


def test_stray_directories() -> None:
    (path,) = case("clean_other_topic_id").answered.glob("*-stray")
    unique_id = path.name.removeprefix("crash-0.").removesuffix("-stray")
    assert parse_partition_directory(path.name) == (("crash", 0), "stray", unique_id)
