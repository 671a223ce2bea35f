"""Settings for the next owner: lines of ``server.properties``, or options of ``txnkafka serve``. Pure.

Source: ``KafkaConfig``, ``QuorumConfig``; the number of partitions of an internal topic decides which
partition an id belongs to, and is set here in case the next owner creates that topic again.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Final

from txnkafka.broker.registry.metadata_log import CONTROLLER
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from txnkafka.handover.report import Owner

if TYPE_CHECKING:
    from txnkafka.handover.registry import Registry
    from txnkafka.storage.formats.meta_properties import MetaProperties

_ADDRESS: Final = "127.0.0.1:9092"
_COUNTS: Final = {
    CONSUMER_OFFSETS_TOPIC: "offsets.topic.num.partitions",
    TRANSACTION_STATE_TOPIC: "transaction.state.log.num.partitions",
}


def settings_of(registry: Registry, identity: MetaProperties, to: Owner, path: str) -> list[str]:
    """Return the lines of ``server.properties`` that Apache Kafka needs to accept the directory, or the
    ``txnkafka serve`` command for it."""
    counts = [
        f"{setting}={len(topic.partitions)}"
        for name, setting in _COUNTS.items()
        if (topic := registry.image.topics.get(name)) is not None
    ]
    if to is Owner.TXNKAFKA:
        options = "".join(f" --config {count}" for count in counts)
        return [f"txnkafka serve --data {quote(path)} --listen {_ADDRESS}{options}"]
    node_id = 1 if identity.node_id is None else identity.node_id
    listener, host, port = _controller(registry)
    controller = f"{host}:{port}"
    voters = f"controller.quorum.voters={node_id}@{controller}"
    return [
        "process.roles=broker,controller",
        f"node.id={node_id}",
        f"controller.quorum.bootstrap.servers={controller}" if registry.voters else voters,
        f"controller.listener.names={listener}",
        f"listeners=PLAINTEXT://{_ADDRESS},{listener}://{controller}",
        *([] if listener == CONTROLLER[0] else [_protocols(listener)]),
        f"log.dirs={path}",
        "offsets.topic.replication.factor=1",
        "transaction.state.log.replication.factor=1",
        "transaction.state.log.min.isr=1",
        *counts,
    ]


def _controller(registry: Registry) -> tuple[str, str, int]:
    for voter in registry.voters:
        for endpoint in voter.get("endpoints", ()):
            return endpoint["name"], endpoint["host"], endpoint["port"]
    return CONTROLLER


def _protocols(listener: str) -> str:
    return f"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,{listener}:PLAINTEXT"
