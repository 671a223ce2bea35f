"""What administrators and curious clients ask: topics and their configs, the cluster, malformed batches.

Each script is a list of requests of one conversation; names that begin with ``~`` are its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.side_by_side.messages import BY_NAME, Request
from tests.side_by_side.naming import FOREIGN, topic_uuid

__all__ = ["scripts"]

TOPIC_ID: Final = topic_uuid(0)
UNKNOWN_ID: Final = topic_uuid(99)
ZERO_ID: Final = "A" * 22


def scripts() -> dict[str, list[Request]]:
    """By name."""
    return {
        "the broker": list(_broker()),
        "coordinators": list(_coordinators()),
        "metadata": list(_metadata()),
        "topics are created": list(_creations()),
        "topics are refused": list(_bad_topics()),
        "configs of topics": list(_topic_configs()),
        "topics are described": list(_described()),
        "topics are deleted": list(_deletions()),
        "topics that are not there": list(_missing()),
        "records that are refused": list(_bad_records()),
        "records of all codecs": list(_codecs()),
        "leader epochs": list(_leader_epochs()),
        "fetch sessions": list(_sessions()),
        "transactional ids that are none": list(_bad_ids()),
        "several in one request": list(_several()),
    }


def versions(name: str) -> range:
    """The versions that both accept."""
    api = BY_NAME[name]
    return range(api.min_version, api.announced[1] + 1)


def _broker() -> Iterator[Request]:
    for version in range(8):
        yield Request("ApiVersions", version, {}) if version < 3 else _client(version, "side-by-side", "1.0")
    for version in (3, 4):
        for name, number in (("", "1"), ("-bad", "1"), ("a b", "1"), ("good", ""), ("good", "1."), ("A.b-9", "x")):
            yield _client(version, name, number)
    for version in versions("DescribeCluster"):
        for operations in (False, True):
            for kind in (1, 2, 3) if version >= 1 else (1,):
                fields = {"include_cluster_authorized_operations": operations, "endpoint_type": kind}
                yield Request("DescribeCluster", version, fields)
    yield Request("DescribeCluster", 2, {"include_fenced_brokers": True})


def _client(version: int, name: str, number: str) -> Request:
    fields = {"client_software_name": name, "client_software_version": number}
    return Request("ApiVersions", min(version, 4), fields)


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
    mixed = [{"topic_id": TOPIC_ID, "name": None}, {"name": "~t"}]
    yield Request("Metadata", 12, {"topics": mixed, "allow_auto_topic_creation": False})
    yield Request("Metadata", 13, {"topics": mixed, "allow_auto_topic_creation": False})


def _topics_by_id() -> list[dict[str, Any]]:
    return [
        {"topic_id": TOPIC_ID, "name": None},
        {"topic_id": TOPIC_ID, "name": "~t"},
        {"topic_id": UNKNOWN_ID, "name": None},
        {"topic_id": ZERO_ID, "name": None},
    ]


def _create(version: int, topics: list[dict[str, Any]], **fields: Any) -> Request:
    defaults = {"num_partitions": 1, "replication_factor": 1}
    given = [{**defaults, **topic} for topic in topics]
    return Request("CreateTopics", version, {"topics": given, "timeout_ms": 30_000, **fields})


def _creations() -> Iterator[Request]:
    for version in versions("CreateTopics"):
        name = f"~new{version}"
        yield _create(version, [{"name": name}], validate_only=True)
        yield _create(version, [{"name": name, "num_partitions": 3}])
        yield _create(version, [{"name": name}])
        yield _create(version, [{"name": name}], validate_only=True)
        yield Request("Metadata", 12, {"topics": [{"name": name}], "allow_auto_topic_creation": False})
        if version >= 4:
            default = {"name": f"{name}-default", "num_partitions": -1, "replication_factor": -1}
            yield _create(version, [default])
        assignments = [{"partition_index": number, "broker_ids": [1]} for number in (1, 0)]
        assigned = {"num_partitions": -1, "replication_factor": -1, "assignments": assignments}
        yield _create(version, [{"name": f"{name}-assigned", **assigned}])
        names = [f"{name}-a", f"{name}-b", f"{name}-a", "a b"]
        yield _create(version, [{"name": each} for each in names])
        yield Request("Metadata", 12, {"topics": [{"name": names[1]}], "allow_auto_topic_creation": False})
        yield _create(version, [])


def _bad_topics() -> Iterator[Request]:
    for version in (2, 4, 5, 7):
        for name in ("", ".", "..", "a b", "x" * 250, "~a/b", "~\u00fc", "__cluster_metadata", "~t"):
            yield _create(version, [{"name": name}])
        for partitions, replicas in ((0, 1), (-2, 1), (1, 0), (1, 2), (1, -2), (-1, -1), (10_001, 1), (-1, 1)):
            topic = {"name": "~bad", "num_partitions": partitions, "replication_factor": replicas}
            yield _create(version, [topic], validate_only=True)
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
            yield _create(version, [topic], validate_only=True)
    for first, second in (("~one.two", "~one_two"), ("~three_four", "~three.four")):
        yield _create(7, [{"name": first}])
        yield _create(7, [{"name": second}])
        yield _create(7, [{"name": second}], validate_only=True)
    yield _create(7, [{"name": "~five.six"}, {"name": "~five_six"}])


def _topic_configs() -> Iterator[Request]:
    for number, (name, value) in enumerate(_CONFIGS):
        topic = f"~config{number}"
        configs = [{"name": name, "value": value}]
        yield _create(5, [{"name": topic, "configs": configs}], validate_only=True)
    good = {"cleanup.policy": "compact,delete", "segment.bytes": "2097152", "retention.ms": "-1"}
    rows = [{"name": name, "value": value} for name, value in good.items()]
    yield _create(7, [{"name": "~configured", "configs": rows}])
    for version in versions("DescribeConfigs"):
        for options in ({}, {"include_synonyms": True}):
            yield _describe(version, 2, "~configured", None, **options)
            yield _describe(version, 2, "~configured", list(good), **options)
    twice = [{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "value": "2"}]
    yield _create(5, [{"name": "~twice", "configs": twice}], validate_only=True)


_CONFIGS: Final = (
    ("cleanup.policy", "delete"), ("cleanup.policy", "compact"), ("cleanup.policy", "delete,compact"),
    ("cleanup.policy", "nonsense"), ("cleanup.policy", ""), ("cleanup.policy", None),
    ("segment.bytes", "1048576"), ("segment.bytes", "1048575"), ("segment.bytes", "many"),
    ("segment.ms", "0"), ("segment.ms", "1"), ("segment.ms", "-1"),
    ("segment.jitter.ms", "-1"), ("segment.jitter.ms", "5"), ("segment.index.bytes", "3"),
    ("segment.index.bytes", "4"), ("index.interval.bytes", "-1"), ("index.interval.bytes", "0"),
    ("flush.messages", "0"), ("flush.messages", "1"), ("flush.ms", "-1"), ("flush.ms", "0"),
    ("retention.bytes", "-1"), ("retention.bytes", "-2"), ("retention.ms", "-1"), ("retention.ms", "-2"),
    ("max.message.bytes", "-1"), ("max.message.bytes", "0"), ("delete.retention.ms", "-1"),
    ("min.compaction.lag.ms", "-1"), ("max.compaction.lag.ms", "0"), ("max.compaction.lag.ms", "1"),
    ("file.delete.delay.ms", "-1"), ("min.cleanable.dirty.ratio", "1.1"), ("min.cleanable.dirty.ratio", "0.5"),
    ("min.cleanable.dirty.ratio", "-0.1"), ("compression.type", "zstd"), ("compression.type", "nonsense"),
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
    ("local.retention.bytes", "7"), ("message.format.version", "3.0"), ("message.downconversion.enable", "true"),
    ("no.such.config", "1"), ("", "1"), ("retention.ms", ""), ("retention.ms", " 5 "), ("retention.ms", "5.0"),
    ("retention.ms", "9223372036854775808"), ("segment.bytes", "2147483648"),
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
        for kind, name in ((4, "2"), (4, "x"), (4, ""), (0, "~t"), (99, "~t")):
            yield _describe(version, kind, name, ["num.partitions"])


def _deletions() -> Iterator[Request]:
    for version in versions("DeleteTopics"):
        names = [f"~old{version}-{i}" for i in range(4)]
        yield _create(7, [{"name": name} for name in names])

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
            yield delete({"topic_id": ZERO_ID, "name": None})
            yield delete({"topic_id": TOPIC_ID, "name": "~t"})
            yield delete({"topic_id": TOPIC_ID, "name": None}, {"name": "~t"})
            yield delete({"topic_id": TOPIC_ID, "name": None})
            yield delete({"topic_id": TOPIC_ID, "name": None})
        wanted = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": False}
        yield Request("Metadata", 12, wanted)
        yield _create(7, [{"name": names[0]}])


BATCH: Final[dict[str, Any]] = {"values": ["v"]}


def produce(version: int, partitions: dict[int, Any], **fields: Any) -> Request:
    """Produce to the topic of the conversation."""
    data = [{"index": index, "records": records} for index, records in partitions.items()]
    topic = {"topic_id": TOPIC_ID} if version >= 13 else {"name": "~t"}
    topics = [{**topic, **fields.pop("topic", {}), "partition_data": data}]
    given = {"acks": -1, "timeout_ms": 30_000, "transactional_id": None, "topic_data": topics, **fields}
    return Request("Produce", version, given)


def fetch(version: int, partitions: list[dict[str, Any]], **fields: Any) -> Request:
    """Fetch from the topic of the conversation."""
    topic = {"topic_id": TOPIC_ID} if version >= 13 else {"topic": "~t"}
    rows = [{"partition_max_bytes": 1 << 20, **each} for each in partitions]
    topics = [{**topic, **fields.pop("topic", {}), "partitions": rows}] if rows else []
    given = {"max_wait_ms": 0, "max_bytes": 1 << 20, "isolation_level": 1, "topics": topics}
    return Request("Fetch", version, {**given, **fields})


def _missing() -> Iterator[Request]:
    for version in versions("Produce"):
        yield produce(version, {7: [BATCH], -1: [BATCH]})
        other = {"topic_id": UNKNOWN_ID} if version >= 13 else {"name": "~missing"}
        yield produce(version, {0: [BATCH]}, topic=other)
        yield produce(version, {0: [BATCH]}, topic=other, acks=0)
        if version < 13:
            for name in ("", "a b", "__transaction_state"):
                yield produce(version, {0: [BATCH]}, topic={"name": name})
        yield Request("Produce", version, {"acks": -1, "timeout_ms": 1, "transactional_id": None, "topic_data": []})
        yield produce(version, {})
    for version in versions("Fetch"):
        yield fetch(version, [{"partition": 7, "fetch_offset": 0}, {"partition": -1, "fetch_offset": 0}])
        other = {"topic_id": UNKNOWN_ID} if version >= 13 else {"topic": "~missing"}
        yield fetch(version, [{"partition": 0, "fetch_offset": 0}], topic=other)
        yield fetch(version, [{"partition": 0, "fetch_offset": 5}, {"partition": 1, "fetch_offset": -1}])
        yield fetch(version, [])
    for version in versions("ListOffsets"):
        for name, number in (("~missing", 0), ("~t", 7), ("a b", 0), ("~t", -1)):
            yield _list_offsets(version, [(name, number)])
        yield _list_offsets(version, [("~t", 0), ("~t", 0)])
        yield _list_offsets(version, [])
    for name in ("~missing", "a b", "", "~t"):
        yield Request("DescribeProducers", 0, {"topics": [{"name": name, "partition_indexes": [0, 7]}]})


def _list_offsets(version: int, partitions: list[tuple[str, int]]) -> Request:
    topics = [
        {"name": name, "partitions": [{"partition_index": number, "timestamp": -1}]} for name, number in partitions
    ]
    return Request("ListOffsets", version, {"replica_id": -1, "topics": topics})


def _bad_records() -> Iterator[Request]:
    idempotent = {"producer_id": FOREIGN, "producer_epoch": 0, "base_sequence": 0}
    for version in (3, 7, 8, 9, 11, 12, 13):
        for records in (
            [],
            [{"hex": ""}],
            [{"hex": "00" * 5}],
            [{"hex": "00" * 61}],
            [{"hex": "ff" * 80}],
            [BATCH, BATCH],
            [{**BATCH, "damage": {"17": 1}}],
            [{**BATCH, "damage": {"16": 3}}],
            [{**BATCH, "damage": {"16": 1}}],
            [{**BATCH, "damage": {"11": 1}}],
            [{**BATCH, "damage": {"3": 1}}],
            [{**BATCH, "damage": {"65": 1}}],
            [{**BATCH, "control": True}],
            [{**BATCH, **idempotent, "base_sequence": -1}],
            [{**BATCH, **idempotent, "producer_epoch": -1}],
            [{**BATCH, "transactional": True}],
            [{**BATCH, "base_sequence": 5}],
            [{"values": ["v" * 1_100_000]}],
            [{"values": ["v"], "timestamp": 4_000_000_000_000}],
            [{"values": ["v"], "timestamp": -1}],
        ):
            yield produce(version, {0: records})
        yield produce(version, {0: [{**BATCH, "damage": {"17": 1}}], 1: [BATCH]})
        yield fetch(12, [{"partition": 0, "fetch_offset": 0}, {"partition": 1, "fetch_offset": 0}])


def _codecs() -> Iterator[Request]:
    for version in versions("Produce"):
        for codec in ("gzip", "snappy", "lz4", "zstd"):
            yield produce(version, {0: [{"values": ["v" * 50, "w"], "codec": codec}]})
    rows = [{"name": "compression.type", "value": "zstd"}]
    yield _create(7, [{"name": "~zstd", "configs": rows}])
    for version in versions("Fetch"):
        yield fetch(version, [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 300}])
        if version < 13:
            yield fetch(version, [{"partition": 0, "fetch_offset": 0}], topic={"topic": "~zstd"})
    rows = [{"name": "message.timestamp.type", "value": "LogAppendTime"}]
    yield _create(7, [{"name": "~timed", "configs": rows}])
    for version in (3, 9, 12):
        yield produce(version, {0: [{"values": ["v", "w"]}]}, topic={"name": "~timed"})
    yield fetch(12, [{"partition": 0, "fetch_offset": 0}], topic={"topic": "~timed"})
    rows = [{"name": "cleanup.policy", "value": "compact"}]
    yield _create(7, [{"name": "~compacted", "configs": rows}])
    for version in (3, 8, 12):
        yield produce(version, {0: [{"values": ["v", "w"]}]}, topic={"name": "~compacted"})
        keyless = [{"values": ["v", "w"], "key": None}]
        yield produce(version, {0: keyless}, topic={"name": "~compacted"})


def _leader_epochs() -> Iterator[Request]:
    yield produce(9, {0: [BATCH]})
    for epoch in (-1, 0, 1, 7):
        for version in range(9, 19):
            row = {"partition": 0, "fetch_offset": 0, "current_leader_epoch": epoch}
            yield fetch(version, [row, {"partition": 1, "fetch_offset": 0}])
        for version in range(12, 19):
            row = {"partition": 0, "fetch_offset": 1, "last_fetched_epoch": epoch}
            yield fetch(version, [row])
        for version in range(4, 12):
            row = {"partition_index": 0, "timestamp": -1, "current_leader_epoch": epoch}
            topics = [{"name": "~t", "partitions": [row]}]
            yield Request("ListOffsets", version, {"replica_id": -1, "topics": topics})
        for version in versions("OffsetForLeaderEpoch"):
            for leader_epoch in (-1, 0, 1):
                row = {"partition": 0, "current_leader_epoch": epoch, "leader_epoch": leader_epoch}
                topics = [{"topic": "~t", "partitions": [row, {**row, "partition": 7}]}]
                yield Request("OffsetForLeaderEpoch", version, {"topics": topics})


def _sessions() -> Iterator[Request]:
    both = [{"partition": 0, "fetch_offset": 0}, {"partition": 1, "fetch_offset": 0}]
    number = 0
    for version in (7, 11, 12, 13, 15, 18):
        number += 1

        def ask(epoch: int, rows: list[Any], session: int = number, version: int = version, **more: Any) -> Request:
            return fetch(version, rows, session_id=session, session_epoch=epoch, **more)

        yield ask(0, both, session=0)
        yield ask(1, [])
        yield produce(9, {0: [BATCH]})
        yield ask(2, [])
        yield ask(3, [{"partition": 0, "fetch_offset": number}])
        yield ask(4, [])
        yield ask(4, [])
        yield ask(9, [])
        yield ask(5, [{"partition": 7, "fetch_offset": 0}])
        topic = {"topic_id": TOPIC_ID} if version >= 13 else {"topic": "~t"}
        yield ask(6, [], forgotten_topics_data=[{**topic, "partitions": [7]}])
        yield ask(7, [])
        yield ask(8, [], forgotten_topics_data=[{**topic, "partitions": [0, 1]}])
        yield ask(9, [])
        yield ask(1, [], session=12345)
        yield ask(-1, both)
        yield ask(1, both, session=0)


def _bad_ids() -> Iterator[Request]:
    for version in versions("InitProducerId"):
        for timeout in (0, -1, 900_000, 900_001):
            yield _init(version, "~a", timeout)
        yield _init(version, "", 1000)
        for producer_id, epoch in ((-1, 0), (5, -1), (FOREIGN, 0), (-1, -1)) if version >= 3 else ():
            for name in ("~c", None):
                yield _init(version, name, 1000, producer_id=producer_id, producer_epoch=epoch)
    producer = {"producer_id": FOREIGN, "producer_epoch": 0}
    for version in versions("AddPartitionsToTxn"):
        topics = [{"name": "~t", "partitions": [0]}, {"name": "__consumer_offsets", "partitions": [0]}]
        for name in ("", "~a", "~missing"):
            for rows in (topics[:1], topics, [{"name": "~missing", "partitions": [0]}, topics[0]], []):
                if version >= 4:
                    one = {"transactional_id": name, **producer, "topics": rows}
                    yield Request("AddPartitionsToTxn", version, {"transactions": [one]})
                else:
                    fields = {"transactional_id": name, **producer, "topics": rows}
                    old = {f"v3_and_below_{key}": value for key, value in fields.items()}
                    yield Request("AddPartitionsToTxn", version, old)
    for name in ("", "~missing"):
        for version in versions("AddOffsetsToTxn"):
            yield Request("AddOffsetsToTxn", version, {"transactional_id": name, **producer, "group_id": "~g"})
        for version in versions("EndTxn"):
            yield Request("EndTxn", version, {"transactional_id": name, **producer, "committed": True})
        yield Request("DescribeTransactions", 0, {"transactional_ids": [name, "~a", name]})
    yield Request("DescribeTransactions", 0, {"transactional_ids": []})


def _init(version: int, name: str | None, timeout: int, **fields: Any) -> Request:
    return Request(
        "InitProducerId", version, {"transactional_id": name, "transaction_timeout_ms": timeout, **fields}
    )


def _several() -> Iterator[Request]:
    yield _init(5, "~a", 60_000)
    yield _init(5, "~b", 60_000)
    a, b = ({"producer_id": 10**12 + number, "producer_epoch": 0} for number in (0, 1))
    topics = [{"name": "~t", "partitions": [0, 1]}]
    for verify in (True, False, True):
        for version in (4, 5):
            rows = [
                {"transactional_id": "~a", **a, "verify_only": verify, "topics": topics},
                {"transactional_id": "~b", **a, "verify_only": verify, "topics": topics},
                {"transactional_id": "~c", **b, "verify_only": False, "topics": topics},
            ]
            yield Request("AddPartitionsToTxn", version, {"transactions": rows})
    yield Request("AddPartitionsToTxn", 5, {"transactions": []})
    of_a = {**BATCH, **a, "base_sequence": 0, "transactional": True}
    of_b = {**BATCH, **b, "base_sequence": 0, "transactional": True}
    for version in (9, 11, 12, 13):
        yield produce(version, {0: [of_a], 1: [of_b]}, transactional_id="~a")
        yield produce(version, {0: [of_a], 1: [BATCH]}, transactional_id="~a")
        yield produce(version, {0: [of_a], 7: [of_a]}, transactional_id="~a")
        yield produce(version, {1: [of_b]}, transactional_id="~a")
        yield produce(version, {1: [of_b]}, transactional_id="")
        yield produce(version, {1: [BATCH]}, transactional_id="~a")
    for version in (1, 2):
        rows = [
            {**each, "transaction_result": True, "coordinator_epoch": 0, "topics": [{"name": "~t", "partition_indexes": [0, 1]}]}
            for each in (a, b)
        ]
        yield Request("WriteTxnMarkers", version, {"markers": [*rows, rows[0]]})
        yield Request("WriteTxnMarkers", version, {"markers": []})
        missing = {**rows[0], "topics": [{"name": "~missing", "partition_indexes": [0]}]}
        yield Request("WriteTxnMarkers", version, {"markers": [missing]})
        yield Request("WriteTxnMarkers", version, {"markers": [{**rows[0], "topics": []}]})
    yield Request("DescribeProducers", 0, {"topics": [{"name": "~t", "partition_indexes": [0, 1]}]})
