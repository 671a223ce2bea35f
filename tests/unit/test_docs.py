"""The examples of docs/python.md run, on a log with committed, aborted and open transactions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.logdir.logs import batch, marker, write_log

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = [
        batch(0),
        batch(2, transactional=True, producer_id=1, producer_epoch=0),
        marker(4, "abort", 1),
        batch(5),
        batch(7, transactional=True, producer_id=2, producer_epoch=0),
    ]
    write_log(tmp_path / "data", "orders-0", {0: data})
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(examples) == 8
    names: dict[str, object] = {}
    for example in examples:
        exec(example, names)
    assert names["total"] == 4
    assert names["table"].num_rows == 4  # type: ignore[attr-defined]
    assert names["found"] == [0, 1, 5, 6]
    assert names["left_out"] == []
