"""Kafka's names of broker settings beside those of ``BrokerConfig``: what topics have by another name, what
has no effect on a broker of one node, what is set in another way, what there is not.

Source: ``KafkaConfig``, ``ServerTopicConfigSynonyms``.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DYNAMIC", "DYNAMIC_WITHOUT_EFFECT", "TOPIC_SYNONYMS", "WITHOUT_EFFECT", "refusal"]

_MINUTE, _HOUR = 60_000, 3_600_000
# Of several for one setting of a topic, the first wins, as in Kafka: ms before minutes before hours.
TOPIC_SYNONYMS: Final = {
    "log.segment.bytes": ("segment.bytes", 1),
    "log.roll.ms": ("segment.ms", 1),
    "log.roll.hours": ("segment.ms", _HOUR),
    "log.roll.jitter.ms": ("segment.jitter.ms", 1),
    "log.roll.jitter.hours": ("segment.jitter.ms", _HOUR),
    "log.index.size.max.bytes": ("segment.index.bytes", 1),
    "log.index.interval.bytes": ("index.interval.bytes", 1),
    "log.flush.interval.messages": ("flush.messages", 1),
    "log.flush.interval.ms": ("flush.ms", 1),
    "log.retention.ms": ("retention.ms", 1),
    "log.retention.minutes": ("retention.ms", _MINUTE),
    "log.retention.hours": ("retention.ms", _HOUR),
    "log.retention.bytes": ("retention.bytes", 1),
    "log.segment.delete.delay.ms": ("file.delete.delay.ms", 1),
    "log.cleanup.policy": ("cleanup.policy", 0),
    "log.cleaner.delete.retention.ms": ("delete.retention.ms", 1),
    "log.cleaner.min.compaction.lag.ms": ("min.compaction.lag.ms", 1),
    "log.cleaner.max.compaction.lag.ms": ("max.compaction.lag.ms", 1),
    "log.cleaner.min.cleanable.ratio": ("min.cleanable.dirty.ratio", 0),
    "compression.type": ("compression.type", 0),
    "compression.gzip.level": ("compression.gzip.level", 1),
    "compression.lz4.level": ("compression.lz4.level", 1),
    "compression.zstd.level": ("compression.zstd.level", 1),
    "log.preallocate": ("preallocate", 0),
    "log.message.timestamp.type": ("message.timestamp.type", 0),
    "log.message.timestamp.before.max.ms": ("message.timestamp.before.max.ms", 1),
    "log.message.timestamp.after.max.ms": ("message.timestamp.after.max.ms", 1),
    "transaction.partition.verification.enable": ("transaction.partition.verification.enable", 0),
    "producer.id.expiration.ms": ("producer.id.expiration.ms", 1),
}
"""Settings of the broker that topics have by another name, and by what a value is multiplied; 0 for text."""

_NAMES = """
    background.threads broker.heartbeat.interval.ms broker.id broker.rack broker.session.timeout.ms
    controlled.shutdown.enable controller.listener.names controller.quorum.append.linger.ms
    controller.quorum.bootstrap.servers controller.quorum.election.timeout.ms
    controller.quorum.fetch.timeout.ms controller.quorum.voters controller.socket.timeout.ms
    default.replication.factor delegation.token.expiry.time.ms eligible.leader.replicas.enable
    fetch.purgatory.purge.interval.requests group.consumer.assignor.offload.enable
    group.coordinator.append.linger.ms
    group.coordinator.rebalance.protocols group.coordinator.threads
    initial.broker.registration.timeout.ms
     leader.imbalance.check.interval.seconds auto.leader.rebalance.enable
    log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second log.cleaner.threads
    log.flush.offset.checkpoint.interval.ms log.flush.scheduler.interval.ms
    log.flush.start.offset.checkpoint.interval.ms log.initial.task.delay.ms
    max.connection.creation.rate metadata.log.dir
    metadata.log.segment.bytes metadata.log.segment.ms metadata.max.idle.interval.ms
    metric.reporters metrics.num.samples
    metrics.recording.level metrics.sample.window.ms min.insync.replicas node.id num.io.threads
    num.network.threads num.recovery.threads.per.data.dir
    num.replica.alter.log.dirs.threads num.replica.fetchers
    offsets.commit.timeout.ms offsets.load.buffer.size
    offsets.topic.compression.codec offsets.topic.replication.factor process.roles
    producer.id.expiration.check.interval.ms producer.purgatory.purge.interval.requests queued.max.requests
    quota.window.num quota.window.size.seconds replica.fetch.backoff.ms replica.fetch.max.bytes
    replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
    replica.lag.time.max.ms replica.socket.receive.buffer.bytes replica.socket.timeout.ms request.timeout.ms
    server.max.startup.time.ms socket.listen.backlog.size socket.receive.buffer.bytes
    socket.send.buffer.bytes transaction.state.log.load.buffer.size transaction.state.log.min.isr
    transaction.state.log.replication.factor unclean.leader.election.enable
"""
WITHOUT_EFFECT: Final = frozenset(_NAMES.split())
"""Settings that are accepted and change nothing: there is one node, one directory and one thread."""

DYNAMIC: Final = frozenset(
    {
        *TOPIC_SYNONYMS,
        "group.consumer.assignment.interval.ms",
        "message.max.bytes",
        "max.connections",
        "max.connections.per.ip",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
    }
) - {"log.roll.hours", "log.roll.jitter.hours", "log.retention.minutes", "log.retention.hours"}
"""Settings that can be changed while the broker runs (``DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS``)."""

DYNAMIC_WITHOUT_EFFECT: Final = frozenset({"min.insync.replicas", "unclean.leader.election.enable"})
"""Those that mean something on several brokers only: kept for them, as topics have them, too."""

_ELSEWHERE: Final = {
    "listeners": "--listen",
    "log.dir": "--data",
    "log.dirs": "--data",
}
_NOT_HERE: Final = {
    "advertised.listeners": "clients get the address of the listener",
    "authorizer.class.name": "there are no ACLs",
    "transaction.two.phase.commit.enable": "two-phase commit is not supported",
    "unstable.api.versions.enable": "unstable versions are not supported",
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


def refusal(name: str, settings: Iterable[str]) -> str:
    """Why a name is refused that is neither of the ``settings`` nor of those here."""
    if name in _ELSEWHERE:
        return f"{name} is set by {_ELSEWHERE[name]}"
    if name in _NOT_HERE:
        return f"{name} cannot be set: {_NOT_HERE[name]}"
    if name.startswith(_WITHOUT_SECURITY):
        return f"{name} cannot be set: connections are neither encrypted nor authenticated"
    close = get_close_matches(name, [*settings, *TOPIC_SYNONYMS, *WITHOUT_EFFECT], n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"a broker has no setting {name}{hint}"
