"""What administrators change: the configs of topics and of the broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.side_by_side.messages import Request
from tests.side_by_side.records import create, versions

__all__ = ["SCRIPTS"]

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
NODE: Final = "1"
Change = tuple[int, str, str | None]


def _change(version: int, kind: int, name: str, *changes: Change, **options: Any) -> Request:
    return _change_all(version, [(kind, name, changes)], **options)


def _change_all(version: int, resources: list[tuple[int, str, Any]], **options: Any) -> Request:
    rows = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [
                {"name": key, "config_operation": op, "value": value} for op, key, value in changes
            ],
        }
        for kind, name, changes in resources
    ]
    return Request("IncrementalAlterConfigs", version, {"resources": rows, **options})


def _replace(version: int, kind: int, name: str, configs: dict[str, str | None], **options: Any) -> Request:
    rows = [{"name": key, "value": value} for key, value in configs.items()]
    resource = {"resource_type": kind, "resource_name": name, "configs": rows}
    return Request("AlterConfigs", version, {"resources": [resource], **options})


def _describe(kind: int, name: str, *keys: str) -> Request:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}
    return Request("DescribeConfigs", 4, {"resources": [resource], "include_synonyms": True})


def _of_topics() -> Iterator[Request]:
    for version in versions("IncrementalAlterConfigs"):
        name = f"~c{version}"
        yield create(7, [{"name": name, "configs": [{"name": "retention.ms", "value": "5000"}]}])
        yield _change(version, TOPIC, name, (SET, "retention.ms", "7000"), validate_only=True)
        yield _change(version, TOPIC, name, (SET, "retention.ms", "6000"), (SET, "flush.ms", "9"))
        yield _describe(TOPIC, name)
        yield _change(version, TOPIC, name, (APPEND, "cleanup.policy", "compact"))
        yield _describe(TOPIC, name, "cleanup.policy", "retention.ms")
        yield _change(version, TOPIC, name, (APPEND, "cleanup.policy", "compact"))
        yield _change(version, TOPIC, name, (SUBTRACT, "cleanup.policy", "delete,nonsense"))
        yield _describe(TOPIC, name, "cleanup.policy")
        yield _change(version, TOPIC, name, (SUBTRACT, "cleanup.policy", "compact"))
        yield _describe(TOPIC, name, "cleanup.policy")
        yield _change(version, TOPIC, name, (DELETE, "cleanup.policy", None), (DELETE, "retention.ms", None))
        yield _describe(TOPIC, name)
        yield _change(version, TOPIC, name, (DELETE, "cleanup.policy", ""), (DELETE, "no.such", None))
        for change in (
            (APPEND, "retention.ms", "1"), (SUBTRACT, "retention.ms", "1"), (APPEND, "no.such", "1"),
            (APPEND, "cleanup.policy", "nonsense"), (APPEND, "cleanup.policy", None),
            (SET, "cleanup.policy", None), (SET, "no.such", "1"), (SET, "", "1"),
            (SET, "segment.ms", "0"), (SET, "segment.ms", "many"), (SET, "min.compaction.lag.ms", "-1"),
            (SET, "producer.id.expiration.ms", "1"), (SET, "log.retention.ms", "1"),
            (SET, "transaction.partition.verification.enable", "false"),
            (SET, "min.insync.replicas", "0"), (SET, "min.insync.replicas", "1"),
            (SET, "unclean.leader.election.enable", "true"), (SET, "remote.storage.enable", "true"),
        ):  # fmt: skip
            yield _change(version, TOPIC, name, change)
        yield _describe(TOPIC, name)
        lags = (SET, "min.compaction.lag.ms", "9"), (SET, "max.compaction.lag.ms", "8")
        yield _change(version, TOPIC, name, *lags)
        yield _change(version, TOPIC, name, (SET, "flush.ms", "1"), (SET, "flush.ms", "2"))
        yield _change(version, TOPIC, name, (SET, "flush.ms", "1"), (SET, "flush.messages", "0"))
        yield _change(version, TOPIC, name)
        yield _change(version, TOPIC, name, (9, "flush.ms", "1"))
        for missing in ("~missing", "a b", "", "__cluster_metadata"):
            yield _change(version, TOPIC, missing, (SET, "flush.ms", "1"))
            yield _change(version, TOPIC, missing, (SET, "no.such", "1"))
        one = (TOPIC, name, [(SET, "flush.ms", "3")])
        yield _change_all(version, [one, one])
        yield _change_all(version, [one, (TOPIC, "~missing", one[2]), (BROKER, NODE, [])])
        yield _change_all(version, [])
        yield _describe(TOPIC, name, "flush.ms", "flush.messages", "min.compaction.lag.ms")
        for kind, other in ((LOGGER, "2"), (0, name), (3, name), (99, name)):
            yield _change(version, kind, other, (SET, "flush.ms", "1"))


def _of_topics_at_once() -> Iterator[Request]:
    for version in versions("AlterConfigs"):
        name = f"~a{version}"
        yield create(7, [{"name": name, "configs": [{"name": "retention.ms", "value": "5000"}]}])
        yield _replace(version, TOPIC, name, {"flush.ms": "7"}, validate_only=True)
        yield _describe(TOPIC, name, "flush.ms", "retention.ms")
        yield _replace(version, TOPIC, name, {"flush.ms": "7", "cleanup.policy": "compact"})
        yield _describe(TOPIC, name)
        yield _replace(version, TOPIC, name, {"flush.ms": "7"})
        yield _describe(TOPIC, name, "flush.ms", "cleanup.policy")
        for bad in ({"no.such": "1"}, {"flush.ms": "-1"}, {"flush.ms": None}, {"flush.ms": "x"}):
            yield _replace(version, TOPIC, name, bad)
        for missing in ("~missing", "a b", ""):
            yield _replace(version, TOPIC, missing, {"flush.ms": "1"})
        yield _replace(version, TOPIC, name, {})
        yield _describe(TOPIC, name, "flush.ms")
        for kind in (LOGGER, 0, 99):
            yield _replace(version, kind, name, {"flush.ms": "1"})


_KEYS: Final = (
    "log.retention.ms", "log.retention.minutes", "log.retention.hours", "log.segment.bytes", "log.roll.ms",
    "log.roll.hours", "log.flush.interval.ms", "log.cleanup.policy", "message.max.bytes",
    "log.cleaner.backoff.ms", "log.cleaner.dedupe.buffer.size", "log.cleaner.delete.retention.ms",
    "min.insync.replicas", "max.connections", "compression.type", "num.partitions",
    "producer.id.expiration.ms", "log.message.timestamp.type", "log.preallocate",
    "unclean.leader.election.enable",
)  # fmt: skip
_OF_TOPICS: Final = ("retention.ms", "segment.bytes", "flush.ms", "cleanup.policy", "max.message.bytes")
_DAY: Final = "86400000"


def _of_the_broker() -> Iterator[Request]:
    for where in (NODE, ""):
        yield _describe(BROKER, where, *_KEYS)
        yield _describe(BROKER, where)
    for version in versions("IncrementalAlterConfigs"):
        for where in (NODE, ""):
            yield _change(version, BROKER, where, (SET, "log.retention.ms", _DAY), validate_only=True)
            yield _change(
                version, BROKER, where, (SET, "log.retention.ms", _DAY), (SET, "log.roll.ms", "3600000"),
                (SET, "message.max.bytes", "2000000"), (SET, "log.cleaner.backoff.ms", "14000"),
            )  # fmt: skip
            yield _change(version, BROKER, where, (APPEND, "log.cleanup.policy", "compact"))
            yield _describe(BROKER, where, *_KEYS)
            yield _describe(BROKER, "", *_KEYS)
            yield _describe(TOPIC, "~t", *_OF_TOPICS)
        yield _change(version, BROKER, NODE, (SET, "log.retention.ms", "3600000"))
        yield _describe(BROKER, NODE, *_KEYS)
        yield _describe(TOPIC, "~t", *_OF_TOPICS)
        yield _change(version, TOPIC, "~t", (SET, "retention.ms", "11"))
        yield _describe(TOPIC, "~t", *_OF_TOPICS)
        yield _change(version, TOPIC, "~t", (DELETE, "retention.ms", None))
        left = [key for key in _KEYS if key != "min.insync.replicas"]
        for where in (NODE, ""):
            yield _change(version, BROKER, where, *[(DELETE, key, None) for key in left])
            yield _describe(BROKER, where, *_KEYS)


def _refused_by_the_broker() -> Iterator[Request]:
    for version in versions("IncrementalAlterConfigs"):
        for change in (
            (SET, "num.partitions", "3"), (SET, "log.retention.hours", "3"), (SET, "node.id", "7"),
            (SET, "log.retention.ms", "many"), (SET, "log.cleaner.threads", "0"),
            (SET, "log.retention.ms", None), (APPEND, "log.retention.ms", "1"), (APPEND, "no.such", "1"),
            (SET, "log.cleanup.policy", "nonsense"), (SET, "log.cleaner.backoff.ms", "-1"),
            (SET, "log.cleaner.min.compaction.lag.ms", "-1"), (SET, "message.max.bytes", "-1"),
            (SET, "min.insync.replicas", "0"), (SET, "compression.type", "nonsense"),
            (SET, "log.flush.interval.messages", "0"), (DELETE, "no.such", None),
        ):  # fmt: skip
            for where in (NODE, ""):
                yield _change(version, BROKER, where, change)
        yield _change(version, BROKER, NODE, (SET, "min.insync.replicas", "1"))
        yield _change(version, BROKER, NODE, (DELETE, "min.insync.replicas", None))
        yield _change(version, BROKER, "", (DELETE, "min.insync.replicas", None))
        yield _change(version, BROKER, "", (SET, "min.insync.replicas", "1"))
        yield _change(version, BROKER, NODE, (SET, "no.such", "1"), validate_only=True)
        yield _change(version, BROKER, NODE, (SET, "num.io.threads", "8"), validate_only=True)
        yield _change(version, BROKER, NODE, (9, "log.retention.ms", "1"))
        for other in ("2", "x", "-1"):
            yield _change(version, BROKER, other, (SET, "log.retention.ms", "1"))


def _of_the_broker_at_once() -> Iterator[Request]:
    for version in versions("AlterConfigs"):
        yield _replace(version, BROKER, NODE, {"log.retention.ms": "99999999"})
        yield _describe(BROKER, NODE, "log.retention.ms")
        yield _replace(version, BROKER, NODE, {"log.retention.bytes": "-1"}, validate_only=True)
        yield _replace(version, BROKER, NODE, {})
        yield _describe(BROKER, NODE, "log.retention.ms")
        yield _replace(version, BROKER, "", {"log.retention.ms": "99999999"})
        yield _replace(version, BROKER, "", {"log.retention.ms": "77777777", "min.insync.replicas": "1"})
        yield _describe(BROKER, "", "log.retention.ms")
        yield _replace(version, BROKER, "", {"min.insync.replicas": "1"})
        for bad in ({"num.partitions": "2"}, {"log.retention.ms": None}, {"log.retention.ms": "x"}):
            yield _replace(version, BROKER, NODE, bad)
        yield _replace(version, BROKER, "2", {})


SCRIPTS: Final = {
    "configs of topics are changed": _of_topics,
    "configs of topics are replaced": _of_topics_at_once,
    "configs of the broker are changed": _of_the_broker,
    "configs of the broker are refused": _refused_by_the_broker,
    "configs of the broker are replaced": _of_the_broker_at_once,
}
"""Requests of one conversation each; what they change of the broker they change back."""
