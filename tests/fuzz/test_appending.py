"""The append target finds what it is there for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import isdatadescriptor
from typing import Any

import pytest
from typing_extensions import Buffer

from tests.fuzz import appending
from tests.fuzz.appending import APPEND
from tests.fuzz.campaign import corpus_of
from tests.fuzz.engine import Limits, fuzz
from txnkafka._core.validate import BatchRules, IncomingBatch, read_batch
from txnkafka.config import LogConfig
from txnkafka.storage.log.log_validator import LogValidator, batch_rules


class Unread(BatchRules):
    """Rules that accept nothing while they read it, so that each check is called by its name."""

    def read(self, batch: Buffer, origin: int, now_ms: int) -> IncomingBatch:
        return read_batch(batch)


class Unchecked(Unread):
    """Checks that are left out."""

    def frame_fault(self, batch: IncomingBatch, origin: int) -> int:
        return 0


class UncheckedContent(Unread):
    def content_fault(self, batch: IncomingBatch, origin: int, now_ms: int) -> int:
        return 0


def rules(kind: type[BatchRules]) -> Callable[[LogConfig], BatchRules]:
    def made(config: LogConfig) -> BatchRules:
        fields = [name for name, value in vars(BatchRules).items() if isdatadescriptor(value)]
        known = batch_rules(config)
        return kind(**{field: getattr(known, field) for field in fields})

    return made


def late_check(validator: LogValidator, batch: bytearray, *arguments: Any) -> Any:
    batch[0] ^= 1
    return ORIGINAL(validator, batch, *arguments)


def one_off(validator: LogValidator, *arguments: Any) -> Any:
    config, clock = arguments[1], arguments[-1]
    incoming = ORIGINAL(validator, *arguments)
    incoming.stamp(batch_rules(replace(config, message_timestamp_type="LogAppendTime")), clock + 1)
    return incoming


ORIGINAL: Callable[..., Any] = LogValidator.validate


@pytest.mark.parametrize(
    ("where", "name", "instead"),
    [
        (appending, "batch_rules", rules(UncheckedContent)),
        (appending, "batch_rules", rules(Unchecked)),
        (LogValidator, "validate", late_check),
        (LogValidator, "validate", one_off),
    ],
)
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, instead: Callable[..., Any]
) -> None:
    monkeypatch.setattr(where, name, instead)
    assert fuzz(APPEND, corpus_of(APPEND), 1, Limits(3000)).failure is not None
