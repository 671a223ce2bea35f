"""Runs that have found bugs of the engine, with the faults that found them; each of the bugs is in the bug bank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.test_simulation import ORDINARY
from txnkafka.testing.simulation.simulation import simulate

STORMY = replace(ORDINARY, sync_us=5_000, think_us=500, fault_every=60)
FOUND: dict[str, dict[str, Any]] = {
    "page cache": {"durability": "page_cache", "segment_bytes": 700},
    "deleted topic": {"faults": ("topic deletion",), "think_us": 5_000},
    "clock put back": {"faults": ("clock back",), "think_us": 60_000, "producers": 1, "plain_producers": 0},
    "crash in a crash": {"faults": ("power cut",), "cut_recovery": 0.5, "duplicate": 0.05},
    "next transaction": {"faults": ("power cut", "clock ahead"), "start_epoch": 32_764},
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_not_found_again(name: str) -> None:
    for seed in range(1, 9):
        report = simulate(seed, 1_200, replace(STORMY, **FOUND[name]))
        assert report.findings == [], f"seed {seed}: {report.findings}"
