"""Names of topics and groups, the partition of a half, and the settings of a resolver."""

from __future__ import annotations

import pytest

from txnkafka.checkback.checkback_config import CheckBackConfig
from txnkafka.checkback.half_topics import check_group, half_partition, owner_id
from txnkafka.client.client_config import read_config


def test_names() -> None:
    assert (check_group("orders"), owner_id(3)) == ("__txn_check-orders", "__txn_half-3")


def test_the_partition_of_a_half_is_that_of_its_id_as_a_key() -> None:
    """As in Java: ``toPositive(murmur2(id)) % partitions``."""
    assert [half_partition(name, 8) for name in ("", "a", "order-17", "ü")] == [
        half_partition(name, 8_000) % 8 for name in ("", "a", "order-17", "ü")
    ]
    assert half_partition("foobar", (1 << 31) - 1) == -790332482 & 0x7FFFFFFF


def test_the_defaults_are_rocketmqs() -> None:
    config = CheckBackConfig()
    times = config.transaction_timeout, config.transaction_check_interval, config.transaction_check_max
    assert times == (6_000, 30_000, 15)
    assert (config.transaction_check_policy, config.transaction_max_age) == ("park", 72 * 3_600_000)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"transaction.check.policy": "drop"}, "must be one of park, rollback, keep"),
        ({"transaction.check.interval": 0}, "must be 1 to"),
        ({"half.partitions": 0}, "must be 1 to"),
    ],
)
def test_wrong_settings(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_config(CheckBackConfig, settings)
