"""Prints the result of each program at the end of a run."""

from __future__ import annotations

import pytest

from tests.programs.test_programs import FOUND


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in FOUND:
        terminalreporter.write_line(line)
