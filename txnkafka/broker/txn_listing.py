"""The filters of ListTransactions: the coordinator's types, for handlers."""

from __future__ import annotations

from txnkafka.coordinator.txn_listing import Filters

__all__ = ["Filters"]
