"""The append target finds what it is there for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fuzz.appending import APPEND
from tests.fuzz.campaign import corpus_of
from tests.fuzz.engine import Limits, fuzz
from txnkafka._core.encode import set_max_timestamp
from txnkafka.storage import append
from txnkafka.storage.append import Preparer


def unchecked(*arguments: Any) -> None:
    """A check that is left out."""


def late_check(preparer: Preparer, batch: bytearray, *arguments: Any) -> Any:
    batch[0] ^= 1
    return ORIGINAL(preparer, batch, *arguments)


def one_off(batch: bytearray, position: int, **fields: int) -> None:
    fields["max_timestamp"] += 1
    set_max_timestamp(batch, position, **fields)


ORIGINAL: Callable[..., Any] = Preparer.prepare


@pytest.mark.parametrize(
    ("where", "name", "instead"),
    [
        (Preparer, "_check_records", unchecked),
        (append, "_check_header", unchecked),
        (Preparer, "_check_frame", unchecked),
        (Preparer, "prepare", late_check),
        (append, "set_max_timestamp", one_off),
    ],
)
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, instead: Callable[..., Any]
) -> None:
    monkeypatch.setattr(where, name, instead)
    assert fuzz(APPEND, corpus_of(APPEND), 1, Limits(3000)).failure is not None
