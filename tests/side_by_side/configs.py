"""What administrators change: the configs of topics and of the broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.side_by_side.messages import Request
from tests.side_by_side.records import create, versions

__all__ = [
    "APPEND", "BROKER", "DELETE", "GROUP", "LOGGER", "METRICS", "NODE", "SCRIPTS", "SET", "SUBTRACT", "TOPIC",
    "alter", "alter_all", "describe", "replace",
]  # fmt: skip

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
NODE: Final = "1"
Change = tuple[int, str, str | None]


def alter(version: int, kind: int, name: str, *changes: Change, **options: Any) -> Request:
    """IncrementalAlterConfigs of one resource."""
    return alter_all(version, [(kind, name, changes)], **options)


def alter_all(version: int, resources: list[tuple[int, str, Any]], **options: Any) -> Request:
    """IncrementalAlterConfigs of several resources."""
    rows = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [{"name": key, "config_operation": op, "value": value} for op, key, value in changes],
        }
        for kind, name, changes in resources
    ]
    return Request("IncrementalAlterConfigs", version, {"resources": rows, **options})


def replace(version: int, kind: int, name: str, configs: dict[str, str | None], **options: Any) -> Request:
    """AlterConfigs of one resource."""
    rows = [{"name": key, "value": value} for key, value in configs.items()]
    resource = {"resource_type": kind, "resource_name": name, "configs": rows}
    return Request("AlterConfigs", version, {"resources": [resource], **options})


def describe(kind: int, name: str, *keys: str, **options: Any) -> Request:
    """The configs of a resource, or those of ``keys``."""
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}
    return Request("DescribeConfigs", 4, {"resources": [resource], "include_synonyms": True, **options})


def _of_topics() -> Iterator[Request]:
    for version in versions("IncrementalAlterConfigs"):
        name = f"~c{version}"
        yield create(7, [{"name": name, "configs": [{"name": "retention.ms", "value": "5000"}]}])
        yield alter(version, TOPIC, name, (SET, "retention.ms", "7000"), validate_only=True)
        yield alter(version, TOPIC, name, (SET, "retention.ms", "6000"), (SET, "flush.ms", "9"))
        yield describe(TOPIC, name)
        yield alter(version, TOPIC, name, (APPEND, "cleanup.policy", "compact"))
        yield describe(TOPIC, name, "cleanup.policy", "retention.ms")
        yield alter(version, TOPIC, name, (APPEND, "cleanup.policy", "compact"))
        yield alter(version, TOPIC, name, (SUBTRACT, "cleanup.policy", "delete,nonsense"))
        yield describe(TOPIC, name, "cleanup.policy")
        yield alter(version, TOPIC, name, (SUBTRACT, "cleanup.policy", "compact"))
        yield describe(TOPIC, name, "cleanup.policy")
        yield alter(version, TOPIC, name, (DELETE, "cleanup.policy", None), (DELETE, "retention.ms", None))
        yield describe(TOPIC, name)
        yield alter(version, TOPIC, name, (DELETE, "cleanup.policy", ""), (DELETE, "no.such", None))
        for change in (
            (APPEND, "retention.ms", "1"), (SUBTRACT, "retention.ms", "1"), (APPEND, "no.such", "1"),
            (APPEND, "cleanup.policy", "nonsense"), (APPEND, "cleanup.policy", None),
            (SET, "cleanup.policy", None), (SET, "no.such", "1"), (SET, "", "1"),
            (SET, "segment.ms", "0"), (SET, "segment.ms", "many"), (SET, "min.compaction.lag.ms", "-1"),
            (SET, "producer.id.expiration.ms", "1"), (SET, "log.retention.ms", "1"),
            (SET, "transaction.partition.verification.enable", "false"),
            (SET, "min.insync.replicas", "0"), (SET, "min.insync.replicas", "1"),
            (SET, "min.insync.replicas", "2147483648"), (SET, "local.retention.ms", "9223372036854775808"),
            (SET, "cleanup.policy", "compact,compact"), (SET, "cleanup.policy", "delete, delete"),
            (SET, "unclean.leader.election.enable", "true"), (SET, "remote.storage.enable", "true"),
        ):  # fmt: skip
            yield alter(version, TOPIC, name, change)
        yield describe(TOPIC, name)
        lags = (SET, "min.compaction.lag.ms", "9"), (SET, "max.compaction.lag.ms", "8")
        yield alter(version, TOPIC, name, *lags)
        yield alter(version, TOPIC, name, (SET, "flush.ms", "1"), (SET, "flush.ms", "2"))
        yield alter(version, TOPIC, name, (SET, "flush.ms", "1"), (SET, "flush.messages", "0"))
        yield alter(version, TOPIC, name)
        yield alter(version, TOPIC, name, (9, "flush.ms", "1"))
        for missing in ("~missing", "a b", "", "__cluster_metadata"):
            yield alter(version, TOPIC, missing, (SET, "flush.ms", "1"))
            yield alter(version, TOPIC, missing, (SET, "no.such", "1"))
        one = (TOPIC, name, [(SET, "flush.ms", "3")])
        yield alter_all(version, [one, one])
        yield alter_all(version, [one, (TOPIC, "~missing", one[2]), (BROKER, NODE, [])])
        yield alter_all(version, [])
        yield describe(TOPIC, name, "flush.ms", "flush.messages", "min.compaction.lag.ms")
        for kind, other in ((LOGGER, "2"), (0, name), (3, name), (99, name)):
            yield alter(version, kind, other, (SET, "flush.ms", "1"))


def _of_topics_at_once() -> Iterator[Request]:
    for version in versions("AlterConfigs"):
        name = f"~a{version}"
        yield create(7, [{"name": name, "configs": [{"name": "retention.ms", "value": "5000"}]}])
        yield replace(version, TOPIC, name, {"flush.ms": "7"}, validate_only=True)
        yield describe(TOPIC, name, "flush.ms", "retention.ms")
        yield replace(version, TOPIC, name, {"flush.ms": "7", "cleanup.policy": "compact"})
        yield describe(TOPIC, name)
        yield replace(version, TOPIC, name, {"flush.ms": "7"})
        yield describe(TOPIC, name, "flush.ms", "cleanup.policy")
        for bad in ({"no.such": "1"}, {"flush.ms": "-1"}, {"flush.ms": None}, {"flush.ms": "x"}):
            yield replace(version, TOPIC, name, bad)
        for missing in ("~missing", "a b", ""):
            yield replace(version, TOPIC, missing, {"flush.ms": "1"})
        yield replace(version, TOPIC, name, {})
        yield describe(TOPIC, name, "flush.ms")
        for kind in (LOGGER, 0, 99):
            yield replace(version, kind, name, {"flush.ms": "1"})


_KEYS: Final = (
    "log.retention.ms", "log.retention.minutes", "log.retention.hours", "log.segment.bytes", "log.roll.ms",
    "log.roll.hours", "log.flush.interval.ms", "log.cleanup.policy", "message.max.bytes",
    "log.cleaner.backoff.ms", "log.cleaner.dedupe.buffer.size", "log.cleaner.delete.retention.ms",
    "min.insync.replicas", "max.connections", "compression.type", "num.partitions",
    "producer.id.expiration.ms", "log.message.timestamp.type", "log.preallocate",
    "unclean.leader.election.enable", "advertised.listeners",
)  # fmt: skip
_OF_TOPICS: Final = ("retention.ms", "segment.bytes", "flush.ms", "cleanup.policy", "max.message.bytes")
_DAY: Final = "86400000"


def _of_the_broker() -> Iterator[Request]:
    for where in (NODE, ""):
        yield describe(BROKER, where, *_KEYS)
        yield describe(BROKER, where)
    for version in versions("IncrementalAlterConfigs"):
        for where in (NODE, ""):
            yield alter(version, BROKER, where, (SET, "log.retention.ms", _DAY), validate_only=True)
            yield alter(
                version, BROKER, where, (SET, "log.retention.ms", _DAY), (SET, "log.roll.ms", "3600000"),
                (SET, "message.max.bytes", "2000000"), (SET, "log.cleaner.backoff.ms", "14000"),
            )  # fmt: skip
            yield alter(version, BROKER, where, (APPEND, "log.cleanup.policy", "compact"))
            yield describe(BROKER, where, *_KEYS)
            yield describe(BROKER, "", *_KEYS)
            yield describe(TOPIC, "~t", *_OF_TOPICS)
        yield alter(version, BROKER, NODE, (SET, "log.retention.ms", "3600000"))
        yield describe(BROKER, NODE, *_KEYS)
        yield describe(TOPIC, "~t", *_OF_TOPICS)
        yield alter(version, TOPIC, "~t", (SET, "retention.ms", "11"))
        yield describe(TOPIC, "~t", *_OF_TOPICS)
        yield alter(version, TOPIC, "~t", (DELETE, "retention.ms", None))
        left = [key for key in _KEYS if key != "min.insync.replicas"]
        for where in (NODE, ""):
            yield alter(version, BROKER, where, *[(DELETE, key, None) for key in left])
            yield describe(BROKER, where, *_KEYS)


def _refused_by_the_broker() -> Iterator[Request]:
    for version in versions("IncrementalAlterConfigs"):
        for change in (
            (SET, "num.partitions", "3"), (SET, "log.retention.hours", "3"), (SET, "node.id", "7"),
            (SET, "log.retention.ms", "many"), (SET, "log.cleaner.threads", "0"),
            (SET, "log.retention.ms", None), (APPEND, "log.retention.ms", "1"), (APPEND, "no.such", "1"),
            (SET, "log.cleanup.policy", "nonsense"),
            (SET, "min.insync.replicas", "2147483648"), (SET, "log.cleaner.backoff.ms", "-1"),
            (SET, "log.cleaner.min.compaction.lag.ms", "-1"), (SET, "message.max.bytes", "-1"),
            (SET, "min.insync.replicas", "0"), (SET, "compression.type", "nonsense"),
            (SET, "log.flush.interval.messages", "0"), (DELETE, "no.such", None),
            (SET, "max.connections.per.ip", "0"), (SET, "log.retention.ms", "0"),
            (SET, "log.segment.bytes", "14"), (SET, "log.cleaner.dedupe.buffer.size", "1048576"),
        ):  # fmt: skip
            for where in (NODE, ""):
                yield alter(version, BROKER, where, change)
        yield alter(version, BROKER, NODE, (SET, "min.insync.replicas", "1"))
        yield alter(version, BROKER, NODE, (DELETE, "min.insync.replicas", None))
        yield alter(version, BROKER, "", (DELETE, "min.insync.replicas", None))
        yield alter(version, BROKER, "", (SET, "min.insync.replicas", "1"))
        yield alter(version, BROKER, NODE, (SET, "no.such", "1"), validate_only=True)
        yield alter(version, BROKER, NODE, (SET, "num.io.threads", "8"), validate_only=True)
        yield alter(version, BROKER, NODE, (SET, "log.retention.ms", "-5"), validate_only=True)
        yield alter(version, BROKER, NODE, (9, "log.retention.ms", "1"))
        for other in ("2", "x", "-1"):
            yield alter(version, BROKER, other, (SET, "log.retention.ms", "1"))


def _of_the_broker_at_once() -> Iterator[Request]:
    for version in versions("AlterConfigs"):
        yield replace(version, BROKER, NODE, {"log.retention.ms": "99999999"})
        yield describe(BROKER, NODE, "log.retention.ms")
        yield replace(version, BROKER, NODE, {"log.retention.bytes": "-1"}, validate_only=True)
        yield replace(version, BROKER, NODE, {})
        yield describe(BROKER, NODE, "log.retention.ms")
        yield replace(version, BROKER, "", {"log.retention.ms": "99999999"})
        yield replace(version, BROKER, "", {"log.retention.ms": "77777777", "min.insync.replicas": "1"})
        yield describe(BROKER, "", "log.retention.ms")
        yield replace(version, BROKER, "", {"min.insync.replicas": "1"})
        for bad in ({"num.partitions": "2"}, {"log.retention.ms": None}, {"log.retention.ms": "x"}):
            yield replace(version, BROKER, NODE, bad)
        yield replace(version, BROKER, "2", {})


SCRIPTS: Final = {
    "configs of topics are changed": _of_topics,
    "configs of topics are replaced": _of_topics_at_once,
    "configs of the broker are changed": _of_the_broker,
    "configs of the broker are refused": _refused_by_the_broker,
    "configs of the broker are replaced": _of_the_broker_at_once,
}
"""Requests of one conversation each; what they change of the broker they change back."""
