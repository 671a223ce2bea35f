"""Checks after all golden tests that no golden directory was changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.golden.cases import unpacked


def _listing(folder: Path) -> dict[str, tuple[int, int]]:
    found = ((path, path.stat()) for path in folder.rglob("*"))
    return {str(path): (state.st_size, state.st_mtime_ns) for path, state in found}


@pytest.fixture(scope="session", autouse=True)
def _a_reader_never_writes() -> Iterator[None]:
    folder = unpacked()
    before = _listing(folder)
    yield
    assert _listing(folder) == before
