"""A file appears whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from txnkafka.env import write_file


def test_a_file_is_written_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (str(tmp_path / "file"), "file"):
        write_file(path, path.encode())
        assert Path(path).read_bytes() == path.encode()
    assert os.listdir() == ["file"]


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_file(str(tmp_path / "folder"), b"content")
    assert os.listdir(tmp_path) == ["folder"]
