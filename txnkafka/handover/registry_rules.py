"""Effects of the next owner on the registry: features, settings, replicas, voters, credentials. Pure.

Undocumented facts about Apache Kafka 4.4.0 were observed with its broker
(``tests/conformance/test_kafka_starts.py``).

Source: ``QuorumFeatures``, ``ReplicationControlManager``, ``PartitionChangeBuilder``, ``LogConfig.validate``,
``KafkaRaftServer``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from txnkafka.broker.config.broker_config import DYNAMIC, BrokerConfig, check_topic, is_topic_config
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from txnkafka.coordinator.registry.cluster_image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from txnkafka.coordinator.registry.features import UNKNOWN_LEVEL_REMEDY, newer_levels, unknown_levels
from txnkafka.handover.report import Owner, error, warning

if TYPE_CHECKING:
    from txnkafka.handover.registry import Registry
    from txnkafka.logdir import Finding
    from txnkafka.storage.formats.meta_properties import MetaProperties

_IGNORED_BY_KAFKA: Final = (
    "message.format.version", "message.downconversion.enable", "message.timestamp.difference.max.ms"
)  # fmt: skip
_UNENFORCED: Final = {
    "access_control_entry_record": "ACLs",
    "user_scram_credential_record": "SCRAM credentials",
    "client_quota_record": "quotas",
    "delegation_token_record": "delegation tokens",
}


def check_registry(registry: Registry, identity: MetaProperties, to: Owner, where: str) -> Iterator[Finding]:
    """Yield the contents that the next owner rejects or handles differently; ``where`` is the path of the
    metadata log."""
    node_id = 1 if identity.node_id is None else identity.node_id
    yield from check_levels(registry, where)
    yield from _cluster(registry, node_id, where)
    yield from _internal_topics(registry, where)
    if to is Owner.KAFKA:
        yield from _features_of_kafka(registry, where)
        yield from _identity(registry, identity, where)
        yield from _leaders(registry, where)
        yield from _settings_of_kafka(registry, where)
    else:
        yield from _settings_of_ours(registry, where)
        yield from _unenforced(registry, where)


def check_levels(registry: Registry, where: str) -> Iterator[Finding]:
    """Yield the feature levels that no next owner supports."""
    for fault in unknown_levels(registry.features):
        yield error("unknown-feature", where, fault, UNKNOWN_LEVEL_REMEDY)


def _features_of_kafka(registry: Registry, where: str) -> Iterator[Finding]:
    for name, level in newer_levels(registry.features):
        yield warning(
            "needs-kafka-4.4", where, f"{name} {level} is unknown to Apache Kafka 4.3, which does not start",
            "start Apache Kafka 4.4 or later on the directory",
        )  # fmt: skip


def _cluster(registry: Registry, node_id: int, where: str) -> Iterator[Finding]:
    image = registry.image
    nodes = {
        node
        for topic in image.topics.values()
        for part in topic.partitions.values()
        for node in part.replicas
    }
    nodes |= {voter["voter_id"] for voter in registry.voters}
    others = sorted(nodes - {node_id})
    if others:
        yield error(
            "several-nodes", where, f"other nodes have replicas or voters: {_some(others)}",
            "reassign all partitions to one node, and remove the other voters, while the cluster runs",
        )  # fmt: skip
    for record in image.kept.of("register_broker_record"):
        value = record.value or {}
        directories = list(value.get("log_dirs") or ())
        if value.get("broker_id") == node_id and len(directories) > 1:
            yield error(
                "several-directories", where, f"the broker has {len(directories)} directories in log.dirs",
                "move all partitions to one of them with kafka-reassign-partitions, and start with that one",
            )  # fmt: skip


def _internal_topics(registry: Registry, where: str) -> Iterator[Finding]:
    """Yield the internal topics that would lose records: created from directories without a registry, they
    lack their settings."""
    for name in (CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC):
        policy = registry.image.topic_configs(name).get("cleanup.policy", "delete")
        if name in registry.image.topics and policy.strip() != "compact":
            yield error(
                "internal-topic-not-compacted", where,
                f"{name} has cleanup.policy={policy}: records older than its retention time would be "
                "deleted, with their offsets and transactional ids",
                "set cleanup.policy=compact with kafka-configs",
            )  # fmt: skip


def _identity(registry: Registry, identity: MetaProperties, where: str) -> Iterator[Finding]:
    for voter in registry.voters:
        directory_id = voter.get("voter_directory_id")
        if directory_id != identity.directory_id:
            yield error(
                "voter-of-another-directory", where,
                f"the voter is the directory {directory_id}, meta.properties says {identity.directory_id}: "
                "Apache Kafka would wait for a leader for ever",
                "write directory.id of the voter into meta.properties",
            )  # fmt: skip


def _leaders(registry: Registry, where: str) -> Iterator[Finding]:
    has_elr = registry.image.features.get("eligible.leader.replicas.version", 0) > 0
    for topic in registry.image.topics.values():
        for number, part in topic.partitions.items():
            # after a controlled stop: without the feature the ISR stays, with it the others replace the ISR
            is_last_known = has_elr and len(part.last_known_elr) == 1
            if part.leader < 0 and not (part.isr or part.eligible_leader_replicas or is_last_known):
                yield error(
                    "no-leader", where,
                    f"{topic.name}-{number} has no leader, and no known replica can be elected",
                    "start 'txnkafka serve' on the directory once, which elects this node",
                )  # fmt: skip


def _settings_of_kafka(registry: Registry, where: str) -> Iterator[Finding]:
    for (kind, name), configs in sorted(registry.image.configs.items()):
        for setting, text in sorted(configs.items()) if kind == TOPIC_RESOURCE else ():
            fault = _fault_for_kafka(setting, text)
            if fault:
                yield error(
                    "setting-refused", where,
                    f"the topic {name} has {setting}={text}; Apache Kafka does not start with it: {fault}",
                    "change it with kafka-configs, or create the topic again, before the hand-over",
                )  # fmt: skip


def _fault_for_kafka(name: str, text: str) -> str:
    """Return why Apache Kafka does not start with this topic config, or an empty string. At a start, Kafka
    ignores unknown names and checks each value alone."""
    is_ignored = name in _IGNORED_BY_KAFKA or not is_topic_config(name)
    is_right = name == "remote.storage.enable" and text.strip().lower() == "true"
    try:
        if not is_ignored and not is_right:
            check_topic(BrokerConfig(), {name: text})
    except ValueError as fault:
        return str(fault)
    return ""


def _settings_of_ours(registry: Registry, where: str) -> Iterator[Finding]:
    ours = BrokerConfig()
    for (kind, name), configs in sorted(registry.image.configs.items()):
        if kind == TOPIC_RESOURCE:
            for setting, fault in ours.faults(configs).items():
                if not is_topic_config(setting):
                    continue  # it is logged; Apache Kafka also leaves the name out
                yield error(
                    "setting-refused", where, f"the topic {name} would get a default instead: {fault}",
                    "remove the setting with kafka-configs while Apache Kafka runs",
                )  # fmt: skip
            if configs.get("remote.storage.enable", "").strip().lower() == "true":
                yield warning(
                    "tiered-storage", where, f"{name} has segments in tiered storage, which is not read",
                    "read them with Apache Kafka first",
                )  # fmt: skip
        elif kind == BROKER_RESOURCE:
            names = sorted(configs.keys() - DYNAMIC)
            if names:
                yield warning(
                    "setting-without-effect", where,
                    f"settings of the broker are kept, without effect: {_some(names)}",
                    "give the important ones to 'txnkafka serve' with --config",
                )  # fmt: skip
        elif kind == GROUP_RESOURCE:
            names = sorted(each for each in configs if not each.startswith("consumer."))
            if names:
                yield warning(
                    "setting-without-effect", where,
                    f"the group {name}: settings are kept, without effect: {_some(names)}",
                    "share and streams groups are not served",
                )  # fmt: skip


def _unenforced(registry: Registry, where: str) -> Iterator[Finding]:
    for kind, what in _UNENFORCED.items():
        count = sum(1 for _ in registry.image.kept.of(kind))
        if count:
            yield warning(
                "not-enforced", where,
                f"{count} {what} are kept but not enforced: every client may do everything",
                "listen on an address that only trusted clients reach",
            )  # fmt: skip


def _some(names: list[int] | list[str]) -> str:
    shown = ", ".join(map(str, names[:5]))
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")
