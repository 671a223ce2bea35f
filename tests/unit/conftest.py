"""Unit tests start no process and bind no socket; such tests are in tests/server.

A single test in a file of unit tests may have the marker ``process``; ``make quick`` leaves it out. A test
that takes more than half a second has the marker ``slow``.
"""

from __future__ import annotations

import os
import socket
import subprocess
from typing import Any

import pytest

from tests.conftest import sample_matrices

MOST = 25
"""``make quick`` and ``make test`` take about so many cases of a test."""


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    sample_matrices([item for item in items if item.nodeid.startswith("tests/unit/")], most=MOST)


class OutsideOfUnitTestsError(Exception):
    """A unit test started a process or bound a socket."""


@pytest.fixture(autouse=True)
def _stay_inside(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test fail that starts a process or binds a socket."""
    if request.node.get_closest_marker("process"):
        return

    def refuse(*_: Any, **__: Any) -> Any:
        raise OutsideOfUnitTestsError("move this test to tests/server: it starts a process or binds a socket")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr(os, "fork", refuse)
    monkeypatch.setattr(socket.socket, "bind", refuse)
