"""``TransactionConfig``: the settings of a transaction coordinator, with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from txnkafka.coordinator.txn.txn_setting import KAFKAS_LIMITS, Limits

COMPLETE_RETRY_MS: Final = 100
"""A refused append of COMPLETE_* is repeated after this time."""


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
