"""``TransactionConfig``: what a transaction coordinator can be told, with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from txnkafka.coordinator.txn_setting import KAFKAS_LIMITS, Limits

__all__ = ["COMPLETE_RETRY_MS", "TransactionConfig"]

COMPLETE_RETRY_MS: Final = 100
"""After so long a COMPLETE_* is appended again that was refused."""


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """``abort_timed_out_interval_ms`` is ``transaction.abort.timed.out.transaction.cleanup.interval.ms``,
    ``remove_expired_interval_ms`` is ``transaction.remove.expired.transaction.cleanup.interval.ms``.
    A request is parked for at most ``max_parked_ms``, and at most ``max_parked`` for a transactional id; with
    0 each one that would have to wait is refused with CONCURRENT_TRANSACTIONS at once, as by Kafka."""

    limits: Limits = KAFKAS_LIMITS
    abort_timed_out_interval_ms: int = 10_000
    remove_expired_interval_ms: int = 3_600_000
    max_parked_ms: int = 5_000
    max_parked: int = 32
