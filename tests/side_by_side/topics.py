"""What administrators and curious clients ask: the broker, its topics and their configs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.side_by_side.messages import Request
from tests.side_by_side.records import TOPIC_ID, UNKNOWN_ID, create, versions
from txnkafka.wire.schema import ZERO_UUID

__all__ = ["SCRIPTS"]


def _broker() -> Iterator[Request]:
    for version in versions("ApiVersions"):
        yield Request("ApiVersions", version, {}) if version < 3 else _client(version, "side-by-side", "1.0")
    for version in (3, 4):
        for name, number in (
            ("", "1"), ("-bad", "1"), ("a b", "1"), ("good", ""), ("good", "1."), ("A.b-9", "x")
        ):  # fmt: skip
            yield _client(version, name, number)
    for version in versions("DescribeCluster"):
        for operations in (False, True):
            for kind in (1, 2, 3) if version >= 1 else (1,):
                fields = {"include_cluster_authorized_operations": operations, "endpoint_type": kind}
                yield Request("DescribeCluster", version, fields)
    yield Request("DescribeCluster", 2, {"include_fenced_brokers": True})


def _client(version: int, name: str, number: str) -> Request:
    fields = {"client_software_name": name, "client_software_version": number}
    return Request("ApiVersions", version, fields)


def _coordinators() -> Iterator[Request]:
    for version in versions("FindCoordinator"):
        for kind in (0, 1, 3, -1) if version >= 1 else (0,):
            fields: dict[str, Any] = {"key_type": kind} if version >= 1 else {}
            if version >= 4:
                yield Request("FindCoordinator", version, {**fields, "coordinator_keys": ["~a", "", "~b"]})
                yield Request("FindCoordinator", version, {**fields, "coordinator_keys": []})
            else:
                yield Request("FindCoordinator", version, {**fields, "key": "~a"})
                yield Request("FindCoordinator", version, {**fields, "key": ""})
    for version in range(1, 6):
        key = {"coordinator_keys": ["~a"]} if version >= 4 else {"key": "~a"}
        yield Request("FindCoordinator", version, {"key_type": 2, **key})


def _metadata() -> Iterator[Request]:
    for version in versions("Metadata"):
        quiet: dict[str, Any] = {"allow_auto_topic_creation": False} if version >= 4 else {}
        yield Request("Metadata", version, {"topics": [{"name": "~t"}], **quiet})
        yield Request("Metadata", version, {"topics": [{"name": "~t"}, {"name": "~t"}], **quiet})
        if version >= 1:
            yield Request("Metadata", version, {"topics": [], **quiet})
        if version >= 4:
            names = [{"name": name} for name in ("~missing", "~t", "a b", "", ".", "x" * 250)]
            yield Request("Metadata", version, {"topics": names, **quiet})
        if version >= 8:
            operations: dict[str, Any] = {"include_topic_authorized_operations": True}
            if version <= 10:
                operations["include_cluster_authorized_operations"] = True
            yield Request("Metadata", version, {"topics": [{"name": "~t"}], **quiet, **operations})
        for topic in _topics_by_id() if version >= 10 else ():
            yield Request("Metadata", version, {"topics": [topic], **quiet})
    for version in range(10):
        yield Request("Metadata", version, {"topics": None if version else []})
    for version in (1, 9, 12):
        yield Request("Metadata", version, {"topics": [{"name": "__transaction_state"}]})
    for version in (0, 1, 4, 9, 13):
        yield Request("Metadata", version, {"topics": [{"name": f"~auto{version}"}]})
        yield Request("Metadata", version, {"topics": [{"name": "a b"}, {"name": f"~auto{version}"}]})
    mixed = [{"topic_id": TOPIC_ID, "name": None}, {"name": "~t"}]
    yield Request("Metadata", 12, {"topics": mixed, "allow_auto_topic_creation": False})
    yield Request("Metadata", 13, {"topics": mixed, "allow_auto_topic_creation": False})


def _topics_by_id() -> list[dict[str, Any]]:
    return [
        {"topic_id": TOPIC_ID, "name": None},
        {"topic_id": TOPIC_ID, "name": "~t"},
        {"topic_id": UNKNOWN_ID, "name": None},
        {"topic_id": ZERO_UUID, "name": None},
    ]


def _creations() -> Iterator[Request]:
    for version in versions("CreateTopics"):
        name = f"~new{version}"
        yield create(version, [{"name": name}], validate_only=True)
        yield create(version, [{"name": name, "num_partitions": 3}])
        yield create(version, [{"name": name}])
        yield create(version, [{"name": name}], validate_only=True)
        yield Request("Metadata", 12, {"topics": [{"name": name}], "allow_auto_topic_creation": False})
        if version >= 4:
            default = {"name": f"{name}-default", "num_partitions": -1, "replication_factor": -1}
            yield create(version, [default])
        assignments = [{"partition_index": number, "broker_ids": [1]} for number in (1, 0)]
        assigned = {"num_partitions": -1, "replication_factor": -1, "assignments": assignments}
        yield create(version, [{"name": f"{name}-assigned", **assigned}])
        names = [f"{name}-a", f"{name}-b", f"{name}-a", "a b"]
        yield create(version, [{"name": each} for each in names])
        yield Request("Metadata", 12, {"topics": [{"name": names[1]}], "allow_auto_topic_creation": False})
        yield create(version, [])


def _bad_topics() -> Iterator[Request]:
    for version in (2, 4, 5, 7):
        for name in ("", ".", "..", "a b", "x" * 250, "~a/b", "~\u00fc", "__cluster_metadata", "~t"):
            yield create(version, [{"name": name}])
        yield create(version, [{"name": "__transaction_state"}])
        for partitions, replicas in (
            (0, 1), (-2, 1), (1, 0), (1, 2), (1, -2), (-1, -1), (10_001, 1), (-1, 1)
        ):  # fmt: skip
            topic = {"name": "~bad", "num_partitions": partitions, "replication_factor": replicas}
            yield create(version, [topic], validate_only=True)
        for count, assignments in (
            (1, {0: [1]}),
            (-1, {0: [2]}),
            (-1, {1: [1]}),
            (-1, {0: [1, 1]}),
            (-1, {0: []}),
            (-1, {0: [1], 2: [1]}),
            (-1, {-1: [1]}),
        ):
            rows = [{"partition_index": key, "broker_ids": ids} for key, ids in assignments.items()]
            topic = {"name": "~bad", "num_partitions": count, "replication_factor": -1, "assignments": rows}
            yield create(version, [topic], validate_only=True)
    for first, second in (("~one.two", "~one_two"), ("~three_four", "~three.four")):
        yield create(7, [{"name": first}])
        yield create(7, [{"name": second}])
        yield create(7, [{"name": second}], validate_only=True)
    yield create(7, [{"name": "~five.six"}, {"name": "~five_six"}])


def _topic_configs() -> Iterator[Request]:
    for number, (name, value) in enumerate(_CONFIGS):
        topic = f"~config{number}"
        configs = [{"name": name, "value": value}]
        # the answers of later versions have all settings
        version = 5 if value in (" 5 ", None) else 4
        yield create(version, [{"name": topic, "configs": configs}], validate_only=True)
    good = {"cleanup.policy": "compact,delete", "segment.bytes": "2097152", "retention.ms": "-1"}
    rows = [{"name": name, "value": value} for name, value in good.items()]
    yield create(7, [{"name": "~configured", "configs": rows}])
    for version in versions("DescribeConfigs"):
        for options in ({}, {"include_synonyms": True}):
            yield _describe(version, 2, "~configured", None, **options)
            yield _describe(version, 2, "~configured", list(good), **options)
    twice = [{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "value": "2"}]
    yield create(5, [{"name": "~twice", "configs": twice}], validate_only=True)


_CONFIGS: Final = (
    ("cleanup.policy", "delete"), ("cleanup.policy", "compact"), ("cleanup.policy", "delete,compact"),
    ("cleanup.policy", "nonsense"), ("cleanup.policy", ""), ("cleanup.policy", None),
    ("cleanup.policy", "compact,compact"), ("cleanup.policy", "delete,delete"),
    ("segment.bytes", "1048576"), ("segment.bytes", "1048575"), ("segment.bytes", "many"),
    ("segment.ms", "0"), ("segment.ms", "1"), ("segment.ms", "-1"),
    ("segment.jitter.ms", "-1"), ("segment.jitter.ms", "5"), ("segment.index.bytes", "3"),
    ("segment.index.bytes", "4"), ("index.interval.bytes", "-1"), ("index.interval.bytes", "0"),
    ("flush.messages", "0"), ("flush.messages", "1"), ("flush.ms", "-1"), ("flush.ms", "0"),
    ("retention.bytes", "-1"), ("retention.bytes", "-2"), ("retention.ms", "-1"), ("retention.ms", "-2"),
    ("max.message.bytes", "-1"), ("max.message.bytes", "0"), ("delete.retention.ms", "-1"),
    ("min.compaction.lag.ms", "-1"), ("max.compaction.lag.ms", "0"), ("max.compaction.lag.ms", "1"),
    ("file.delete.delay.ms", "-1"), ("min.cleanable.dirty.ratio", "1.1"),
    ("min.cleanable.dirty.ratio", "0.5"), ("min.cleanable.dirty.ratio", "-0.1"),
    ("compression.type", "zstd"), ("compression.type", "nonsense"),
    ("compression.type", "producer"), ("compression.type", "uncompressed"), ("compression.gzip.level", "0"),
    ("compression.gzip.level", "9"), ("compression.gzip.level", "-1"), ("compression.lz4.level", "18"),
    ("compression.zstd.level", "23"), ("preallocate", "true"), ("preallocate", "yes"),
    ("message.timestamp.type", "LogAppendTime"), ("message.timestamp.type", "logAppendTime"),
    ("message.timestamp.before.max.ms", "-1"), ("message.timestamp.after.max.ms", "0"),
    ("min.insync.replicas", "0"), ("min.insync.replicas", "1"), ("min.insync.replicas", "two"),
    ("unclean.leader.election.enable", "maybe"), ("unclean.leader.election.enable", "true"),
    ("leader.replication.throttled.replicas", "*"), ("leader.replication.throttled.replicas", "0:1"),
    ("leader.replication.throttled.replicas", "x"), ("remote.storage.enable", "false"),
    ("remote.storage.enable", "true"), ("local.retention.ms", "-2"), ("local.retention.ms", "-3"),
    ("local.retention.bytes", "7"), ("local.retention.bytes", "9223372036854775808"),
    ("local.retention.ms", "9223372036854775808"), ("min.insync.replicas", "99999999999"),
    ("message.format.version", "3.0"),
    ("message.downconversion.enable", "true"), ("message.timestamp.difference.max.ms", "1"),
    ("no.such.config", "1"), ("", "1"), ("retention.ms", ""), ("retention.ms", " 5 "),
    ("retention.ms", "5.0"), ("retention.ms", "9223372036854775808"), ("segment.bytes", "2147483648"),
)  # fmt: skip


def _describe(version: int, kind: int, name: str, keys: list[str] | None, **options: Any) -> Request:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    return Request("DescribeConfigs", version, {"resources": [resource], **options})


def _described() -> Iterator[Request]:
    for version in versions("DescribeConfigs"):
        for options in ({}, {"include_synonyms": True}):
            yield _describe(version, 2, "~t", None, **options)
        yield _describe(version, 2, "~t", ["retention.ms", "no.such.config"])
        yield _describe(version, 2, "~t", [])
        for name in ("~missing", "a b", ""):
            yield _describe(version, 2, name, None)
        yield _describe(version, 4, "1", ["num.partitions", "message.max.bytes"])
        yield _describe(version, 2, "__transaction_state", None, include_synonyms=True)
        for kind, name in ((4, "2"), (4, "x"), (4, ""), (0, "~t"), (99, "~t")):
            yield _describe(version, kind, name, ["num.partitions"])


def _deletions() -> Iterator[Request]:
    for version in versions("DeleteTopics"):
        names = [f"~old{version}-{i}" for i in range(4)]
        yield create(7, [{"name": name} for name in names])

        def delete(*topics: Any, version: int = version) -> Request:
            if version < 6:
                return Request("DeleteTopics", version, {"topic_names": list(topics), "timeout_ms": 30_000})
            rows = [each if isinstance(each, dict) else {"name": each} for each in topics]
            return Request("DeleteTopics", version, {"topics": rows, "timeout_ms": 30_000})

        yield delete(names[0])
        yield delete(names[0])
        yield delete(names[1], "~missing")
        yield delete(names[2], names[2])
        yield delete(names[2])
        yield delete("a b")
        yield delete("")
        yield delete()
        if version >= 6:
            yield delete({"topic_id": UNKNOWN_ID, "name": None})
            yield delete({"topic_id": ZERO_UUID, "name": None})
            yield delete({"topic_id": TOPIC_ID, "name": "~t"})
            yield delete({"topic_id": TOPIC_ID, "name": None}, {"name": "~t"})
            yield delete({"topic_id": TOPIC_ID, "name": None})
            yield delete({"topic_id": TOPIC_ID, "name": None})
        wanted = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": False}
        yield Request("Metadata", 12, wanted)
        yield create(4, [{"name": names[0]}])


def _more(version: int, *topics: Any, **options: Any) -> Request:
    """CreatePartitions for names with counts, and with replicas where they are given."""
    rows = []
    for name, count, *replicas in topics:
        assignments = [{"broker_ids": ids} for ids in replicas[0]] if replicas else None
        rows.append({"name": name, "count": count, "assignments": assignments})
    return Request("CreatePartitions", version, {"topics": rows, "timeout_ms": 30_000, **options})


def _partitions() -> Iterator[Request]:
    for version in versions("CreatePartitions"):
        name = f"~more{version}"
        yield create(7, [{"name": name}])
        for count in (0, -1, 1):
            yield _more(version, (name, count))
        yield _more(version, (name, 3), validate_only=True)
        yield _more(version, (name, 2))
        yield _more(version, (name, 2))
        yield _more(version, (name, 4, [[1], [1]]))
        for replicas in ([], [[1], [1]], [[2]], [[]], [[1, 1]], [[1, 2]], [[-1]]):
            yield _more(version, (name, 5, replicas))
        yield _more(version, (name, 4, [[1]]))
        yield _more(version, (name, 5), (name, 6))
        yield _more(version, (name, 5), ("~missing", 2), ("a b", 2), ("", 2))
        yield _more(version)
        yield Request("Metadata", 12, {"topics": [{"name": name}], "allow_auto_topic_creation": False})
    yield _more(3, ("~t", 10_100), validate_only=True)
    yield _more(3, ("__transaction_state", 3), validate_only=True)
    yield _more(3, ("__cluster_metadata", 3))


SCRIPTS: Final = {
    "the broker": _broker,
    "coordinators": _coordinators,
    "metadata": _metadata,
    "topics are created": _creations,
    "topics are refused": _bad_topics,
    "configs of topics": _topic_configs,
    "topics are described": _described,
    "topics get more partitions": _partitions,
    "topics are deleted": _deletions,
}
"""Requests of one conversation each; names that begin with ``~`` are its own."""
