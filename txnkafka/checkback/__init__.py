"""Transactional messages that are checked back, as in RocketMQ, on a Kafka log.

Each public name loads its module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from txnkafka.checkback.checkback_config import CheckBackConfig

_MODULES = {
    "CheckBackConfig": "checkback_config",
}

__all__ = ["CheckBackConfig"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
