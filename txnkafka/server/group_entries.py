"""The configs of groups, and of subscriptions to the metrics of clients, as rows.

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
    "metrics": "prefixes of the names of metrics; they are kept, and no client is asked for metrics",
    "interval.ms": "time between two pushes of a client",
    "match": "which clients are meant",
}


def group_entries(configs: Configs, own: Mapping[str, str]) -> list[ConfigEntry]:
    """The configs of a group that has set ``own``: all but the internal ones that are not set."""
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
    """Where the broker has the default; settings of groups that are not served have their own."""
    found = levels.synonyms(setting.broker_name) if setting.broker_name is not None else ()
    return found or ((setting.broker_name or name, setting.default, DEFAULT),)


def _doc(name: str) -> str:
    kind = name.partition(".")[0].replace("errors", "share")
    if name == "consumer.assignor.offload.enable":
        return "whether Kafka assigns partitions in another thread; without effect here"
    if kind == "consumer":
        return f"what group.{name} of the broker is for other groups"
    return f"of {kind} groups, which are not served; kept for a broker that serves them"


def subscription_entries(own: Mapping[str, str]) -> list[ConfigEntry]:
    """All configs of a subscription that has set ``own``."""
    entries = []
    for name, default in CLIENT_METRICS_CONFIGS.items():
        value = shown_subscription(name, own.get(name, default))
        source = _OF_SUBSCRIPTION if name in own else DEFAULT
        synonyms = ((name, value, source),) if name in own else ()
        kind = INT if name == "interval.ms" else LIST
        entries.append(ConfigEntry(name, value, source, kind, _DOCS[name], False, synonyms))
    return entries
