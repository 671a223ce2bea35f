"""The examples of docs/notebook.md run, and print what the page shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.models.builder import Batch, PlainRecord
from tests.pages import examples
from tests.unit.logdir.logs import marker, write_log

CITIES = ("Berlin", "Rome", "Madrid")
MIDNIGHT = 1_769_817_600_000  # 2026-01-31 in UTC


def orders(base_offset: int, first: int, count: int, **fields: object) -> bytes:
    records = [
        PlainRecord(
            b"order-%d" % i,
            json.dumps({"city": CITIES[i % 3], "amount": i}, separators=(",", ":")).encode(),
            MIDNIGHT + 60_000 * i,
        )
        for i in range(first, first + count)
    ]
    return Batch(records=records, base_offset=base_offset, **fields).encode()  # type: ignore[arg-type]


def partition() -> list[bytes]:
    """150 committed records, and 15 that were aborted, with a marker between them."""
    transactional = {"transactional": True, "producer_id": 1, "producer_epoch": 0}
    middle = [orders(130, 0, 15, **transactional), marker(145, "abort", 1)]
    return [orders(0, 0, 130), *middle, orders(146, 130, 20)]


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        write_log(tmp_path / "data", f"orders-{number}", {0: partition()})
    monkeypatch.chdir(tmp_path)
    found = examples("docs/notebook.md")
    assert len(found) == 7
    names: dict[str, object] = {}
    for example in found:
        assert example.printed
        assert example.run(names) == example.printed
