"""``stats`` of every golden directory, compared with counts from a plain walk over batches and
transactions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.golden.cases import Case
from tests.golden.test_cli_cat import UNBROKEN
from txnkafka import LogDir
from txnkafka.logdir import PartitionView
from txnkafka.logdir.stats import GROUPINGS, Stats
from txnkafka.record import CompressionType

CONTROL = 0x20


def key_of(view: PartitionView, producer_id: int, by: str) -> tuple[Any, ...]:
    return {"topic": (view.topic,), "partition": (view.topic, view.partition), "producer": (producer_id,)}[by]


def counted_plainly(view: PartitionView, by: str) -> Counter[tuple[Any, ...]]:
    """Count the values of each group, by (group, field)."""
    found: Counter[tuple[Any, ...]] = Counter()
    for segment in view.segments:
        for header in segment.scan():
            if header.last_offset < view.log_start_offset:
                continue
            key = key_of(view, header.producer_id, by)
            if header.attributes & CONTROL:
                found[key, "control_batches"] += 1
                continue
            found[key, "batches"] += 1
            found[key, "bytes"] += header.size
            found[key, "records"] += max(header.count, 0)
            found[key, "codec", CompressionType(header.attributes & 7).label] += header.size
            found[key, "magic", str(header.magic)] += 1
    for each in view.transactions():
        key = key_of(view, each.producer_id, by)
        found[key, f"{each.outcome}_transactions"] += 1
        found[key, f"{each.outcome}_records"] += each.records
        if each.outcome in ("committed", "aborted"):
            found[key, "transaction_bytes"] += each.bytes
    return found


def shown(row: dict[str, Any], by: str) -> Counter[tuple[Any, ...]]:
    """Return a row in the same form."""
    names = {"topic": ["topic"], "partition": ["topic", "partition"], "producer": ["producer_id"]}[by]
    key = tuple(row[name] for name in names)
    outcomes = [name for name in row if name.endswith(("_transactions", "_records")) and "rate" not in name]
    plain = ["batches", "bytes", "records", "control_batches"]
    outcomes = [name for name in outcomes if not isinstance(row[name], dict)]
    found = Counter({(key, name): row[name] for name in plain + outcomes})
    found.update({(key, "codec", codec): share["bytes"] for codec, share in row["codecs"].items()})
    found.update({(key, "magic", magic): count for magic, count in row["magics"].items()})
    ended = row["committed_transactions"] + row["aborted_transactions"]
    if ended:
        found[key, "transaction_bytes"] = round(row["transaction_bytes"]["mean"] * ended)
    return found


@pytest.mark.parametrize("by", GROUPINGS)
@pytest.mark.parametrize(("case", "directory"), UNBROKEN)
def test_every_directory(case: Case, directory: Path, by: str) -> None:
    stats = Stats(by)
    expected: Counter[tuple[Any, ...]] = Counter()
    for view in LogDir(str(directory)).partitions():
        assert stats.add(view) == []
        expected += counted_plainly(view, by)
        view.close()
    found: Counter[tuple[Any, ...]] = Counter()
    for row in stats.rows():
        found += shown(row, by)
    for key in set(found) | set(expected):
        close = 0.05 * 1000 if "transaction_bytes" in key else 0  # a mean is printed with one decimal
        assert abs(found[key] - expected[key]) <= close, key
