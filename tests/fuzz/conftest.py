"""What all fuzzing shares: with a sanitizer loaded it must see, and the counts are printed at the end."""

from __future__ import annotations

import pytest

from tests.fuzz.guard import compiled_modules, protection_gap, sanitizer_is_loaded

LINES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LINES] = []


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> list[str]:
    """Lines for the end of the run."""
    return request.config.stash[LINES]


@pytest.fixture(scope="session", autouse=True)
def _a_loaded_sanitizer_sees_every_byte_too_far() -> None:
    if sanitizer_is_loaded():
        gap = protection_gap(*compiled_modules())
        if gap is not None:
            pytest.exit(f"this run would prove nothing: {gap}", returncode=1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash[LINES]:
        terminalreporter.section("fuzzing" + ("" if sanitizer_is_loaded() else ", without sanitizers"))
        for line in config.stash[LINES]:
            terminalreporter.write_line(line)
