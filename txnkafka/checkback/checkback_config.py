"""``CheckBackConfig``: the settings of a resolver, with RocketMQ's names and defaults where it has them.

Source: ``BrokerConfig`` of Apache RocketMQ 5.4: ``transactionTimeOut``, ``transactionCheckInterval``,
``transactionCheckMax``; its ``fileReservedTime`` of 72 hours ends all checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from txnkafka.client.client_config import ClientConfig
from txnkafka.config import long, row

POLICIES: Final = ("park", "rollback", "keep")


@dataclass(frozen=True, kw_only=True)
class CheckBackConfig(ClientConfig):
    """Times in milliseconds. ``transaction_timeout`` and ``transaction_check_max`` hold for messages that do
    not have their own."""

    transaction_timeout: int = long("age of an undecided message at its first check", 6_000, 0)
    transaction_check_interval: int = long("time between two checks of a message", 30_000, 1)
    transaction_check_max: int = row("checks of a message, after which the policy decides", 15, 0, 32_767)
    transaction_check_policy: str = row(
        "decision about a message that no check has decided: park (keep a copy in __txn_check_max), "
        "rollback, or keep (leave it undecided until transaction.max.age)", "park", allowed=POLICIES,
    )  # fmt: skip
    transaction_max_age: int = long("age at which an undecided message is parked", 259_200_000, 1)
    decision_retention: int = long("time for which the outcome of a message is known", 86_400_000, 0)
    group_instance_id: str = row(
        "name of this resolver in the group __txn_resolver: one that starts again under the same name takes "
        "its partitions back at once (KIP-345)", "",
    )  # fmt: skip
    half_partitions: int = row("partitions of __txn_half, when it is created", 8, 1)
    half_replication_factor: int = row("replicas of the topics; -1 is the broker's default", -1, -1, 32_767)
