"""The examples of docs/notebook.md run, twice, and print what the page shows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.pages import examples


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = examples("docs/notebook.md")
    assert len(found) == 8
    for _ in range(2):
        names: dict[str, object] = {}
        for example in found:
            assert example.run(names) == example.printed
    assert all(example.printed for example in found[1:])
