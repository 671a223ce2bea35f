"""Says what each suite found."""

from __future__ import annotations

import pytest

from tests.client_suites.test_client_suites import COUNTS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in COUNTS:
        terminalreporter.write_line(line)
