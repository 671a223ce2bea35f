"""Subscriptions to the metrics of clients (resource type CLIENT_METRICS, KIP-714): what they may be.

They are kept, and no client is asked for metrics: as in a Kafka that has no plugin to take them.

Source: ``ClientMetricsConfigs``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from txnkafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CLIENT_METRICS_CONFIGS", "shown_subscription", "subscription_refusal"]

INTERVAL: Final = "interval.ms"
CLIENT_METRICS_CONFIGS: Final = {"metrics": "", INTERVAL: "300000", "match": ""}
"""With their defaults; all but the interval are lists."""
_INTERVALS_MS: Final = (100, 3_600_000)
_MATCHED: Final = (
    "client_instance_id", "client_id", "client_software_name", "client_software_version",
    "client_source_address", "client_source_port",
)  # fmt: skip
_INTEGER: Final = re.compile(r"[+-]?\d{1,10}", re.ASCII)


def subscription_refusal(name: str, configs: Mapping[str, str]) -> tuple[ErrorCode, str] | None:
    """Why a subscription cannot have these configs; None when it can."""
    if not name:
        return ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"
    for key in configs:
        if key not in CLIENT_METRICS_CONFIGS:
            return ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {key}"
    for key, text in configs.items():
        if key != INTERVAL and not all(_elements(text)):
            return ErrorCode.INVALID_CONFIG, f"{key} has an empty element: {text!r}"
    for pattern in _elements(configs.get("match", "")):
        if not _is_match(pattern):
            return ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}"
    return _interval_refusal(configs.get(INTERVAL, CLIENT_METRICS_CONFIGS[INTERVAL]).strip())


def shown_subscription(name: str, text: str) -> str:
    """A value as it is understood: without spaces, and without what a list has twice."""
    if name == INTERVAL:
        return str(int(text)) if _INTEGER.fullmatch(text.strip()) else text
    return ",".join(dict.fromkeys(_elements(text)))


def _elements(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text.strip() else []


def _interval_refusal(text: str) -> tuple[ErrorCode, str] | None:
    if not _INTEGER.fullmatch(text) or int(text) >= 1 << 31:
        return ErrorCode.INVALID_CONFIG, f"{INTERVAL} must be a number, not {text!r}"
    least, most = _INTERVALS_MS
    if not least <= int(text) <= most:
        return ErrorCode.INVALID_REQUEST, f"{INTERVAL} must be {least} to {most}, not {text}"
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
