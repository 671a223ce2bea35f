"""Configs of groups and of client metrics subscriptions, as rows of DescribeConfigs.

Source: ``ConfigHelper.createGroupConfigEntry``, ``createClientMetricsConfigEntry``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.broker.client_metrics import CLIENT_METRICS_CONFIGS, shown_subscription
from txnkafka.broker.group_configs import GROUP_CONFIGS, GroupSetting, shown_group_config
from txnkafka.broker.group_settings import limits_of_consumer_groups
from txnkafka.server.config_entries import BOOLEAN, DEFAULT, INT, LIST, LONG, STRING, ConfigEntry, Levels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.broker.configs import Configs

__all__ = ["group_entries", "subscription_entries"]

_OF_SUBSCRIPTION, _OF_GROUP = 7, 8  # DescribeConfigsResponse.ConfigSource
_TYPES: Final = {"bool": BOOLEAN, "str": STRING, "int": INT, "long": LONG, "list": LIST}
_DOCS: Final = {
    "metrics": "prefixes of metric names; stored, but clients are never asked for metrics",
    "interval.ms": "time between two pushes of a client",
    "match": "patterns that select clients",
}


def group_entries(configs: Configs, own: Mapping[str, str]) -> list[ConfigEntry]:
    """Return the configs of a group that has set ``own``, without internal configs that are not set."""
    levels, limits, entries = Levels(configs), limits_of_consumer_groups(configs.current), []
    for name, setting in GROUP_CONFIGS.items():
        if setting.is_internal and name not in own:
            continue
        of_broker = _of_broker(levels, name, setting)
        value = str(limits[name][1]) if name in limits else setting.default
        synonyms = of_broker
        if name in own:
            value = shown_group_config(name, own[name])
            synonyms = ((name, value, _OF_GROUP), *of_broker)
        kind = _TYPES[setting.kind]
        entries.append(ConfigEntry(name, value, synonyms[0][2], kind, _doc(name), False, synonyms))
    return entries


def _of_broker(levels: Levels, name: str, setting: GroupSetting) -> tuple[tuple[str, str, int], ...]:
    """Return the synonyms at the broker; configs of unsupported group types have their own default."""
    found = levels.synonyms(setting.broker_name) if setting.broker_name is not None else ()
    return found or ((setting.broker_name or name, setting.default, DEFAULT),)


def _doc(name: str) -> str:
    kind = name.partition(".")[0].replace("errors", "share")
    if name == "consumer.assignor.offload.enable":
        return "whether Kafka assigns partitions in another thread; no effect here"
    if kind == "consumer":
        return f"overrides group.{name} of the broker for this group"
    return f"for {kind} groups, which are not supported; kept for a broker that supports them"


def subscription_entries(own: Mapping[str, str]) -> list[ConfigEntry]:
    """Return all configs of a subscription that has set ``own``."""
    entries = []
    for name, default in CLIENT_METRICS_CONFIGS.items():
        value = shown_subscription(name, own.get(name, default))
        source = _OF_SUBSCRIPTION if name in own else DEFAULT
        synonyms = ((name, value, source),) if name in own else ()
        kind = INT if name == "interval.ms" else LIST
        entries.append(ConfigEntry(name, value, source, kind, _DOCS[name], False, synonyms))
    return entries
