"""Attributes what is left open to the test that has left it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def nothing_is_left_open() -> Iterator[None]:
    """Collect cycles after each test: the warning of a socket, client or file that was not closed fails this
    test, and not the one that runs when the collector comes."""
    yield
    gc.collect()
