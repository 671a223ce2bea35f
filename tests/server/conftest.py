"""Attributes unclosed resources to the test that opened them."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def nothing_is_left_open() -> Iterator[None]:
    """Collect cycles after each test, so that the warning of an unclosed socket or file fails the test that
    opened it."""
    yield
    gc.collect()
