"""Runs that have found bugs of the engine, with the faults that found them; the bugs are in the bug bank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import sampled
from tests.simulation.test_simulation import ORDINARY
from txnkafka.testing.simulation.simulation import simulate

SLOW_DISK = {"sync_us": 5_000, "think_us": 500, "fault_every": 60}
LATE = {"hold": 0.01, "duplicate": 0.05, "longest_hold_us": 200_000}
FOUND: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "page cache": (
        (3, 4),
        {"faults": ("clock back",), "durability": "page_cache", "segment_bytes": 700, "think_us": 500},
    ),
    "deleted topic": ((1, 3), {"faults": ("topic deletion",), **SLOW_DISK}),
    "clock put back": (
        (4, 5), {"faults": ("clock back",), "fault_every": 60, "think_us": 60_000, "producers": 1},
    ),
    "crash in a crash": (
        (12, 17), {"faults": ("power cut",), "cut_recovery": 0.5, "segment_bytes": 700, **SLOW_DISK, **LATE},
    ),
    "sequences of purged batches": (
        (0, 14, 18),
        {"purge": 0.9, "lose_answer": 0.08, "think_us": 500, "producers": 4, "transaction_timeout_ms": 3_000},
    ),
    "next transaction": (
        (15,), {"faults": ("power cut", "clock ahead"), "start_epoch": 32_764, **SLOW_DISK},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(FOUND, every=3))
def test_what_was_found_is_not_found_again(name: str) -> None:
    seeds, swarm = FOUND[name]
    for seed in seeds:
        report = simulate(seed, 2_500 if name == "page cache" else 1_500, replace(ORDINARY, **swarm))
        assert report.findings == [], f"seed {seed}: {report.findings}"
