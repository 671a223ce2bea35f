"""The examples of docs/python.md and docs/writing.md run, and print what the pages show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import txnkafka.log
from tests.pages import ROOT, examples
from tests.unit.logdir.logs import batch, marker, write_log
from txnkafka.errors import ProduceError


def test_the_examples_of_reading_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = [
        batch(0),
        batch(2, transactional=True, producer_id=1, producer_epoch=0),
        marker(4, "abort", 1),
        batch(5),
        batch(7, transactional=True, producer_id=2, producer_epoch=0),
    ]
    write_log(tmp_path / "data", "orders-0", {0: data})
    monkeypatch.chdir(tmp_path)
    found = examples("docs/python.md")
    assert len(found) == 10
    names: dict[str, object] = {}
    for example in found:
        assert example.run(names) == example.printed
    assert names["total"] == 4
    assert names["late"]["offset"].to_pylist() == [5, 6]  # type: ignore[index]
    assert names["everything"]["offset"].to_pylist() == names["numbers"]  # type: ignore[index]
    assert names["table"].num_rows == 4  # type: ignore[attr-defined]
    assert names["found"] == [0, 1, 5, 6]
    assert names["left_out"] == []
    assert not any("base_offset=" in example.source for example in found), "such a batch cannot be appended"


def test_the_examples_of_writing_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = examples("docs/writing.md")
    assert len(found) == 8
    names: dict[str, object] = {}
    for example in found:
        assert example.printed
        assert example.run(names) == example.printed


def test_the_page_on_writing_names_everything_public() -> None:
    named = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "writing.md").read_text(encoding="utf-8")))
    errors = {error.__name__ for error in (ProduceError, *ProduceError.__subclasses__())}
    assert named >= {*txnkafka.log.__all__, *errors}
