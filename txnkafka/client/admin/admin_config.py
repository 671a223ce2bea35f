"""The settings of ``Admin``."""

from __future__ import annotations

from dataclasses import dataclass

from txnkafka.client.client_config import ClientConfig
from txnkafka.config import row


@dataclass(frozen=True, kw_only=True)
class AdminConfig(ClientConfig):
    """Times in milliseconds. Source: ``AdminClientConfig``."""

    default_api_timeout_ms: int = row("longest time of a call, with all its retries", 60_000, 0)
