"""The append target finds what it is there for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fuzz.appending import APPEND
from tests.fuzz.campaign import corpus_of
from tests.fuzz.engine import Limits, fuzz
from txnkafka._core.encode import set_max_timestamp
from txnkafka.storage.log import log_validator
from txnkafka.storage.log.log_validator import LogValidator


def unchecked(*arguments: Any) -> None:
    """A check that is left out."""


def late_check(validator: LogValidator, batch: bytearray, *arguments: Any) -> Any:
    batch[0] ^= 1
    return ORIGINAL(validator, batch, *arguments)


def one_off(batch: bytearray, position: int, **fields: int) -> None:
    fields["max_timestamp"] += 1
    set_max_timestamp(batch, position, **fields)


ORIGINAL: Callable[..., Any] = LogValidator.prepare


@pytest.mark.parametrize(
    ("where", "name", "instead"),
    [
        (LogValidator, "_check_records", unchecked),
        (log_validator, "_check_header", unchecked),
        (LogValidator, "_check_frame", unchecked),
        (LogValidator, "prepare", late_check),
        (log_validator, "set_max_timestamp", one_off),
    ],
)
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, instead: Callable[..., Any]
) -> None:
    monkeypatch.setattr(where, name, instead)
    assert fuzz(APPEND, corpus_of(APPEND), 1, Limits(3000)).failure is not None
