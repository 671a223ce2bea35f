"""Error codes for clients of older API versions: the coordinator's table, for handlers."""

from __future__ import annotations

from txnkafka.coordinator.old_clients import error_for

__all__ = ["error_for"]
