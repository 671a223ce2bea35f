"""Chooses the golden tests of ``make test``; checks after all that no golden directory was changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import sample_matrices
from tests.golden.cases import unpacked

MOST = 15
"""``make test`` takes about so many cases of a test."""
ALL_DIRECTORIES = {
    "tests/golden/test_cases.py::test_a_case_is_complete",
    "tests/golden/test_damage.py::test_offsets",
    "tests/golden/test_library.py::test_offsets",
}
"""Together these read every golden directory; ``make test`` takes all of their cases."""


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    golden = [item for item in items if item.nodeid.startswith("tests/golden/")]
    sample_matrices(golden, most=MOST, whole=ALL_DIRECTORIES)


def _listing(folder: Path) -> dict[str, tuple[int, int]]:
    found = ((path, path.stat()) for path in folder.rglob("*"))
    return {str(path): (state.st_size, state.st_mtime_ns) for path, state in found}


@pytest.fixture(scope="session", autouse=True)
def _a_reader_never_writes() -> Iterator[None]:
    folder = unpacked()
    before = _listing(folder)
    yield
    assert _listing(folder) == before
