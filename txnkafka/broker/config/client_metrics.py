"""Subscriptions to the metrics of clients (resource type CLIENT_METRICS, KIP-714): their configs.

Subscriptions are stored, and no client is asked for metrics: as in a Kafka without a plugin that takes them.

Source: ``ClientMetricsConfigs``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from txnkafka.config import INT32_MAX, ConfigDef
from txnkafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

_INTERVAL: Final = "interval.ms"
_LEAST_MS, _MOST_MS = 100, 3_600_000
_METRICS: Final = "prefixes of metric names; stored, but clients are never asked for metrics"
_ROWS: Final = (
    ConfigDef("metrics", "list", "", _METRICS),
    ConfigDef(_INTERVAL, "int", "300000", "time between two pushes of a client", (), _LEAST_MS, _MOST_MS),
    ConfigDef("match", "list", "", "patterns that select clients"),
)
SUBSCRIPTION_DEFS: Final = {spec.name: spec for spec in _ROWS}
_MATCHED: Final = (
    "client_instance_id", "client_id", "client_software_name", "client_software_version",
    "client_source_address", "client_source_port",
)  # fmt: skip
_INTEGER: Final = re.compile(r"[+-]?\d{1,10}", re.ASCII)


def subscription_refusal(name: str, configs: Mapping[str, str]) -> tuple[ErrorCode, str] | None:
    """Return why a subscription cannot have these configs; None if it can."""
    if not name:
        return ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"
    for key in configs:
        if key not in SUBSCRIPTION_DEFS:
            return ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {key}"
    for key, text in configs.items():
        if key != _INTERVAL and not all(_elements(text)):
            return ErrorCode.INVALID_CONFIG, f"{key} has an empty element: {text!r}"
    for pattern in _elements(configs.get("match", "")):
        if not _is_match(pattern):
            return ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}"
    return _interval_refusal(configs.get(_INTERVAL, "300000").strip())


def shown_subscription(name: str, text: str) -> str:
    """Return the effective value: without spaces, and without duplicates in a list."""
    if name == _INTERVAL:
        return str(int(text)) if _INTEGER.fullmatch(text.strip()) else text
    return ",".join(dict.fromkeys(_elements(text)))


def _elements(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text.strip() else []


def _interval_refusal(text: str) -> tuple[ErrorCode, str] | None:
    if not _INTEGER.fullmatch(text) or int(text) > INT32_MAX:
        return ErrorCode.INVALID_CONFIG, f"{_INTERVAL} must be a number, not {text!r}"
    if not _LEAST_MS <= int(text) <= _MOST_MS:
        return ErrorCode.INVALID_REQUEST, f"{_INTERVAL} must be {_LEAST_MS} to {_MOST_MS}, not {text}"
    return None


def _is_match(pattern: str) -> bool:
    """Java's patterns are checked as Python's: nothing is matched with them here."""
    name, _, expression = pattern.partition("=")
    if name.strip() not in _MATCHED or not expression or "=" in expression:
        return False
    try:
        re.compile(expression.strip())
    except (re.error, OverflowError, RecursionError):
        return False
    return True
