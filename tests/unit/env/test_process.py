"""Whose files are changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from txnkafka.env import is_of_another_user


@pytest.mark.parametrize(("user", "owner", "answer"), [(0, 1234, True), (0, 0, False), (1234, 99, False)])
def test_only_root_changes_files_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, owner: int, answer: bool
) -> None:
    status = os.stat(tmp_path)
    owned = os.stat_result([*status[:4], owner, *status[5:10]])
    monkeypatch.setattr(os, "stat", lambda path: owned)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert is_of_another_user(str(tmp_path)) is answer
