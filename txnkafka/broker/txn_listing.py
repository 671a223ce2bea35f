"""What ListTransactions filters by: the coordinator's own words, for handlers."""

from __future__ import annotations

from txnkafka.coordinator.txn_listing import Filters

__all__ = ["Filters"]
