"""The error codes that clients of older API versions understand: the coordinator's table, for handlers."""

from __future__ import annotations

from txnkafka.coordinator.old_clients import error_for

__all__ = ["error_for"]
