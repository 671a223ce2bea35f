"""Settings that one client takes over from another."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from txnkafka.client.client_config import ClientConfig

C = TypeVar("C", bound=ClientConfig)


def derived(kind: type[C], config: ClientConfig, **settings: Any) -> C:
    """Return settings of another client; those that all clients have are taken from ``config``."""
    shared = {each.name: getattr(config, each.name) for each in fields(ClientConfig)}
    return kind(**{**shared, **settings})
