"""``Configs``: the current settings of a broker.

The registry's settings of all brokers override the settings of the start, and its settings of this broker
override both. A topic's own settings override all three.

Source: ``DynamicBrokerConfig`` (KIP-226).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from txnkafka.broker.config.broker_config import DYNAMIC
from txnkafka.coordinator.registry.cluster_image import BROKER_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txnkafka.broker.config.broker_config import BrokerConfig
    from txnkafka.config import LogConfig
    from txnkafka.coordinator.registry.cluster_image import ClusterImage

LOG = logging.getLogger("txnkafka.broker")


class Configs:
    """``static`` are the settings of the start, ``current`` those that count since the last ``refresh``."""

    def __init__(self, static: BrokerConfig, image: ClusterImage, node_id: int) -> None:
        self.static = static
        self._image = image
        self._name = str(node_id)
        self._told: set[tuple[str, str]] = set()  # faults of topics that were logged
        self.current = static
        self.refresh()

    @property
    def of_cluster(self) -> Mapping[str, str]:
        """The registry's settings of all brokers."""
        return self._image.configs.get((BROKER_RESOURCE, ""), {})

    @property
    def of_node(self) -> Mapping[str, str]:
        """The registry's settings of this broker."""
        return self._image.configs.get((BROKER_RESOURCE, self._name), {})

    def of_topic(self, topic: str) -> LogConfig:
        """Return the settings of a topic's logs. Ignore unknown names, as in Kafka, and values that are not
        understood: otherwise one topic would keep the whole broker from starting."""
        own = self._image.topic_configs(topic)
        faults = self.current.faults(own)
        for fault in faults.values():
            if (topic, fault) not in self._told:  # else once for each partition
                self._told.add((topic, fault))
                LOG.error("a setting of the topic %s does not count: %s", topic, fault)
        return self.current.log_config({name: text for name, text in own.items() if name not in faults})

    def refresh(self) -> None:
        """Apply the registry after a load or change. Ignore values that are not understood; another broker
        may have written them."""
        self.current = _over(_over(self.static, self.of_cluster), self.of_node)
        for name, text in (*self.of_cluster.items(), *self.of_node.items()):
            if name not in DYNAMIC:
                LOG.warning("the setting %s=%s of the metadata log has no effect", name, text)

    def check(self, new: Mapping[str, str], named: Iterable[str], *, is_of_node: bool) -> None:
        """Raise ValueError if the ``named`` settings of a new level are invalid together with the level's
        other settings and the levels below."""
        base = _over(self.static, self.of_cluster) if is_of_node else self.static
        base = _over(base, {name: text for name, text in new.items() if name not in named})
        base.changed({name: new[name] for name in named})


def _over(config: BrokerConfig, level: Mapping[str, str]) -> BrokerConfig:
    """Return the settings overridden by a level, all at once: some are valid only together."""
    wanted = {name: _limited(config, name, text) for name, text in level.items() if name in DYNAMIC}
    try:
        return config.changed(wanted)
    except ValueError:
        pass
    for name, text in wanted.items():
        try:
            config = config.changed({name: text})
        except ValueError as error:
            LOG.error("a setting of the metadata log does not count: %s", error)
    return config


def _limited(config: BrokerConfig, name: str, text: str) -> str:
    """Return a setting of the registry as it counts: one that was set within other limits counts as the
    limit."""
    limits = config.group_limits.get(name.removeprefix("group."))
    if limits is None or not text.strip().isdecimal():
        return text
    return str(min(max(int(text), limits[0]), limits[2]))
