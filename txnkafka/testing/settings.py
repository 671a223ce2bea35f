"""Settings of brokers for tests."""

from __future__ import annotations

from typing import Any, Final

SETTINGS: Final[dict[str, Any]] = {
    "transaction.state.log.num.partitions": 2,
    "offsets.topic.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 0,
}
"""Few partitions of internal topics, so that their creation is fast; groups do not wait for members."""
