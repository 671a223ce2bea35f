"""Settings of Kafka that are no fields of ``BrokerConfig``: defaults of topics, settings without effect on
one node, settings that are set in another way, and settings of features that are not supported.

Source: ``KafkaConfig``, ``ServerTopicConfigSynonyms``.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from txnkafka.config import INT32_MAX, INT64_MAX, LOG_DEFS, ConfigDef

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNITS: Final = {"minutes": 60_000, "hours": 3_600_000}
TOPIC_SYNONYMS: Final = {
    name: (spec.name, _UNITS.get(name.rpartition(".")[2], 1))
    for spec in LOG_DEFS.values()
    for name in spec.broker
}
"""Topic setting and unit of each broker setting that is a default of topics. Of several names for one topic
setting, the first wins, as in Kafka: ms before minutes before hours."""

_MIN_ISR, _UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
_LARGEST: Final = "max.decompressed.message.bytes"
_OF_TOPICS: Final = (
    ConfigDef(
        _MIN_ISR, "int", "1", "replicas that must have a record; a single node has one", (_MIN_ISR,), 1,
        INT32_MAX, is_dynamic=True,
    ),
    ConfigDef(
        _UNCLEAN, "boolean", "false", "let a replica lead that lacks records", (_UNCLEAN,),
        is_dynamic=True,
    ),
    ConfigDef("leader.replication.throttled.replicas", "list", "", "replicas that are sent slowly"),
    ConfigDef("follower.replication.throttled.replicas", "list", "", "replicas that are fetched slowly"),
    ConfigDef(
        "remote.storage.enable", "boolean", "false", "tiered storage, which is not supported",
        allowed=("false",),
    ),
    ConfigDef("remote.log.copy.disable", "boolean", "false", "write nothing more to tiered storage"),
    ConfigDef(
        "remote.log.delete.on.disable", "boolean", "false", "empty tiered storage when it is switched off"
    ),
    ConfigDef(
        "local.retention.ms", "long", "-2", "age of local segments that tiered storage also has",
        ("log.local.retention.ms",), -2, INT64_MAX,
    ),
    ConfigDef(
        "local.retention.bytes", "long", "-2", "size of local segments that tiered storage also has",
        ("log.local.retention.bytes",), -2, INT64_MAX,
    ),
    ConfigDef(
        "remote.copy.lag.ms", "long", "0",
        "age at which tiered storage gets a segment; -1: as late as possible",
        ("log.remote.copy.lag.ms",), -1, INT64_MAX,
    ),
    ConfigDef(
        "remote.copy.lag.bytes", "long", "-1", "bytes after which tiered storage gets a segment",
        ("log.remote.copy.lag.bytes",), -1, INT64_MAX,
    ),
    ConfigDef(  # as long as the largest array of Java
        _LARGEST, "int", "2147483639", "largest record when decompressed", (_LARGEST,), 1, 2_147_483_639
    ),
    ConfigDef(
        "errors.deadletterqueue.group.enable", "boolean", "false", "let share groups write dead letters here"
    ),
    # removed in Apache Kafka 4, and set by older tools
    ConfigDef("message.format.version", "string", None, is_internal=True),
    ConfigDef("message.downconversion.enable", "boolean", None, is_internal=True),
    ConfigDef("message.timestamp.difference.max.ms", "long", None, low=0, high=INT64_MAX, is_internal=True),
)  # fmt: skip
TOPIC_WITHOUT_EFFECT: Final = {spec.name: spec for spec in _OF_TOPICS}
"""Configs of topics that apply to several brokers or to tiered storage only: checked and kept. ``broker`` is
the setting of other brokers."""

_NAMES = """
    add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
    alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
    auto.leader.rebalance.enable background.threads broker.heartbeat.interval.ms broker.id broker.rack
    broker.session.timeout.ms controlled.shutdown.enable controller.listener.names
    controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
    controller.quorum.append.linger.ms controller.quorum.auto.join.enable
    controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms
    controller.quorum.election.timeout.ms controller.quorum.fetch.timeout.ms
    controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.quorum.voters
    controller.quota.window.num controller.quota.window.size.seconds controller.socket.timeout.ms
    default.replication.factor delegation.token.expiry.time.ms
    delete.records.purgatory.purge.interval.requests eligible.leader.replicas.enable
    fetch.purgatory.purge.interval.requests follower.fetch.last.tiered.offset.enable
    group.consumer.assignor.offload.enable group.coordinator.append.linger.ms
    group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes
    group.coordinator.rebalance.protocols group.coordinator.threads initial.broker.registration.timeout.ms
    kafka.metrics.polling.interval.secs kafka.metrics.reporters leader.imbalance.check.interval.seconds
    log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second log.cleaner.threads
    log.dir.failure.timeout.ms log.flush.offset.checkpoint.interval.ms
    log.flush.start.offset.checkpoint.interval.ms log.initial.task.delay.ms max.connection.creation.rate
    max.decompressed.message.bytes metadata.log.dir metadata.log.segment.bytes metadata.log.segment.ms
    metadata.max.idle.interval.ms metric.reporters metrics.num.samples
    metrics.recording.level metrics.sample.window.ms
    min.insync.replicas node.id num.io.threads num.network.threads num.recovery.threads.per.data.dir
    num.replica.alter.log.dirs.threads num.replica.fetchers offsets.commit.timeout.ms
    offsets.load.buffer.size offsets.topic.compression.codec offsets.topic.replication.factor
    process.roles producer.id.expiration.check.interval.ms producer.purgatory.purge.interval.requests
    queued.max.request.bytes queued.max.requests quota.window.num quota.window.size.seconds
    replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.min.bytes
    replica.fetch.response.max.bytes replica.fetch.wait.max.ms
    replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms replica.selector.class
    replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
    replication.quota.window.size.seconds request.timeout.ms server.max.startup.time.ms
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms socket.listen.backlog.size
    socket.receive.buffer.bytes socket.send.buffer.bytes telemetry.max.bytes
    transaction.state.log.load.buffer.size transaction.state.log.min.isr
    transaction.state.log.replication.factor unclean.leader.election.enable
    unclean.leader.election.interval.ms
"""
_OF_OTHER_GROUPS = """
    group.share.assignment.interval.ms group.share.assignor.offload.enable group.share.assignors
    group.share.delivery.count.limit group.share.heartbeat.interval.ms
    group.share.initialize.retry.interval.ms group.share.max.assignment.interval.ms
    group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms
    group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms
    group.share.max.session.timeout.ms group.share.max.share.sessions group.share.max.size
    group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
    group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
    group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms
    group.share.partition.max.record.locks group.share.persister.class.name
    group.share.record.lock.duration.ms group.share.session.timeout.ms
    group.streams.assignment.interval.ms group.streams.assignor.offload.enable
    errors.deadletterqueue.auto.create.topics.enable errors.deadletterqueue.topic.name.prefix
    group.share.dlq.manager.class.name group.streams.acceptable.recovery.lag group.streams.assignors
    group.streams.max.warmup.replicas group.streams.min.task.offset.interval.ms
    group.streams.num.warmup.replicas group.streams.rack.aware.assignment.tags
    group.streams.task.offset.interval.ms group.streams.topology.description.plugin.class
    group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms
    group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms
    group.streams.max.session.timeout.ms group.streams.max.size group.streams.max.standby.replicas
    group.streams.min.assignment.interval.ms group.streams.min.heartbeat.interval.ms
    group.streams.min.session.timeout.ms group.streams.num.standby.replicas
    group.streams.session.timeout.ms share.coordinator.append.linger.ms
    share.coordinator.cached.buffer.max.bytes share.coordinator.cold.partition.snapshot.interval.ms
    share.coordinator.load.buffer.size share.coordinator.snapshot.update.records.per.snapshot
    share.coordinator.state.topic.compression.codec share.coordinator.state.topic.min.isr
    share.coordinator.state.topic.num.partitions share.coordinator.state.topic.prune.interval.ms
    share.coordinator.state.topic.replication.factor share.coordinator.state.topic.segment.bytes
    share.coordinator.threads share.coordinator.write.timeout.ms
    share.fetch.purgatory.purge.interval.requests
"""
WITHOUT_EFFECT: Final = frozenset((_NAMES + _OF_OTHER_GROUPS).split())
"""Settings that are accepted without effect: the broker has one node, one directory and one thread, and no
share or streams groups."""


def contradiction(name: str, text: str) -> str:
    """Return the reason to refuse a setting of ``WITHOUT_EFFECT`` that is of another cluster than one node;
    an empty text for any other."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if name == "process.roles" and sorted(words) != ["broker", "controller"]:
        return f"{name} cannot be {text!r}: this node is broker,controller"
    if name == "controller.quorum.voters" and len(words) > 1:
        return f"{name} cannot have {len(words)} voters: this node is the only one"
    return ""


_ELSEWHERE: Final = {
    "advertised.listeners": "'txnkafka serve'",
    "listeners": "--listen",
    "log.dir": "--data",
    "log.dirs": "--data",
}
_NO_SECURITY: Final = "encryption and authentication are not supported"
_NO_CLASSES: Final = "classes of Java are not loaded"
_NOT_HERE: Final = {
    "alter.config.policy.class.name": _NO_CLASSES,
    "authorizer.class.name": "ACLs are not supported",
    "client.quota.callback.class": "quotas are not supported",
    "config.providers": "values are taken as they are, and nothing is looked up elsewhere",
    "connection.failed.authentication.delay.ms": _NO_SECURITY,
    "connections.max.reauth.ms": _NO_SECURITY,
    "cordoned.log.dirs": "a broker has one directory",
    "create.topic.policy.class.name": _NO_CLASSES,
    "early.start.listeners": "all listeners are opened at once",
    "max.connections.per.ip.overrides": "max.connections.per.ip is for all addresses",
    "max.request.partition.size.limit": "it is 2000",
    "principal.builder.class": _NO_SECURITY,
    "unstable.feature.versions.enable": "unstable versions are not supported",
}
_WITHOUT_SECURITY: Final = (
    "sasl.",
    "ssl.",
    "security.",
    "listener.",
    "inter.broker.",
    "password.",
    "delegation.",
)
_OF_TIERED_STORAGE: Final = ("remote.", "log.local.retention.", "log.remote.")
_OF_ZOOKEEPER: Final = "zookeeper."


def refusal(name: str, settings: Iterable[str]) -> str:
    """Return the refusal of a name that is missing in ``settings`` and in ``WITHOUT_EFFECT``."""
    if name in _ELSEWHERE:
        return f"{name} is set by {_ELSEWHERE[name]}"
    if name in _NOT_HERE:
        return f"{name} cannot be set: {_NOT_HERE[name]}"
    if name.startswith(_WITHOUT_SECURITY):
        return f"{name} cannot be set: {_NO_SECURITY}"
    if name.startswith(_OF_TIERED_STORAGE):
        return f"{name} cannot be set: tiered storage is not supported"
    if name.startswith(_OF_ZOOKEEPER):
        return f"{name} cannot be set: the controller is this node, and not ZooKeeper"
    close = get_close_matches(name, [*settings, *WITHOUT_EFFECT], n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"a broker has no setting {name}{hint}"
