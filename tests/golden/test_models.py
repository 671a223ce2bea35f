"""The models compared with the real Kafka: every partition, both isolation levels, record by record.

The filter gets what the broker had: its log start, high watermark and last stable offset, and its
``.txnindex`` files. So the model also reproduces what a consumer got where the broker served wrong data. As
in a real fetch, no read crosses a segment.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden.cases import ISOLATION_LEVELS, Case, cases
from tests.models.fetch_filter import (
    AbortedTxn,
    aborted_in,
    collect_aborted,
    fetch,
    last_stable_offset,
    read_txn_index,
    scan_log,
)
from tests.models.record_batch import InvalidBatchError, Record
from txnkafka.model import TopicPartition

# The result of the Java consumer depends on damaged offsets here, and on the order of its fetches.
OFFSETS_DAMAGED = {"crash_flip_last_offset"}
TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}

CASES = [case for case in cases() if not case.refused and case.name not in OFFSETS_DAMAGED]
each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
# Compaction removes the first records of aborted transactions and keeps their index entries.
COMPACTED = {"compacted"}
COMPACTED_TOPICS = {("kafka_4_4", "compacted")}
WHOLE = [case for case in CASES if case.recovered is None and case.name not in COMPACTED]


def segments_of(case: Case, partition: TopicPartition) -> list[Path]:
    return sorted((case.answered / str(partition)).glob("*.log"))


def txn_index_of(segment: Path) -> list[AbortedTxn]:
    path = segment.with_suffix(".txnindex")
    return read_txn_index(path.read_bytes()) if path.exists() else []


def consume(segments: list[Path], start: int, end: int, *, committed: bool) -> Iterator[Record]:
    base_offsets = [int(segment.stem) for segment in segments]
    for i, segment in enumerate(segments):
        upper_bound = min(end, *base_offsets[i + 1 : i + 2], end)
        entries = [entry for each in segments[i:] for entry in txn_index_of(each)]
        fetch_offset = max(start, base_offsets[i])
        aborted = collect_aborted(entries, fetch_offset, upper_bound) if committed else None
        content = segment.read_bytes()
        yield from fetch(content, scan_log(content)[0], fetch_offset, end, aborted)


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def as_answer(record: Record) -> dict[str, Any]:
    answer = record._asdict()
    answer["timestamp_type"] = TIMESTAMP_TYPES[record.timestamp_type]
    answer["key"], answer["value"] = _text(record.key), _text(record.value)
    answer["headers"] = [[key, _text(value)] for key, value in record.headers]
    return answer


@each_case
@pytest.mark.parametrize("isolation_level", ISOLATION_LEVELS)
def test_records_are_the_java_consumers(case: Case, isolation_level: str) -> None:
    committed = isolation_level == "read_committed"
    for partition in case.partitions():
        facts = case.facts(partition)
        end = facts["lso" if committed else "high_watermark"]
        records = consume(segments_of(case, partition), facts["log_start_offset"], end, committed=committed)
        failed = False
        consumed = []
        try:
            consumed.extend(as_answer(record) for record in records)
        except InvalidBatchError:
            failed = True
        assert consumed == case.expected_records(partition, isolation_level), partition
        assert failed == ("error" in facts["consumer"][isolation_level]), partition


@pytest.mark.parametrize("case", WHOLE, ids=[case.name for case in WHOLE])
def test_aborted_transactions_and_lso_follow_from_the_markers(case: Case) -> None:
    for partition in case.partitions():
        facts = case.facts(partition)
        if facts["log_start_offset"] > 0 or partition.topic.startswith("__"):
            continue
        if (case.name, partition.topic) in COMPACTED_TOPICS:
            continue
        segments = segments_of(case, partition)
        headers = [header for segment in segments for header in scan_log(segment.read_bytes())[0]]
        entries = [entry for segment in segments for entry in txn_index_of(segment)]
        listed = [entry[:3] for entry in entries]
        assert [entry[:3] for entry in aborted_in(headers)] == listed, partition
        assert last_stable_offset(headers, facts["high_watermark"]) == facts["lso"], partition
