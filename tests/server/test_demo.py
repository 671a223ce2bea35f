"""A command of the demo that fails, or says nothing, ends the demo."""

from __future__ import annotations

import shutil
import sys

import pytest

from demo.steps import run


def test_a_command_that_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    with pytest.raises(SystemExit, match="txnkafka ls failed, status 0:\nit printed nothing"):
        run("ls", columns=80, is_coloured=False)


def test_a_command_that_fails() -> None:
    with pytest.raises(SystemExit, match=r"txnkafka ls missing failed, status 2:\n.*missing"):
        run("ls", "missing", columns=80, is_coloured=False)
