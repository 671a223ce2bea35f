"""Records that are refused and of all codecs, leader epochs, fetch sessions, bad transactional ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.side_by_side.messages import BY_NAME, Request
from tests.side_by_side.naming import FOREIGN, topic_uuid

__all__ = ["SCRIPTS", "TOPIC_ID", "UNKNOWN_ID", "create", "versions"]

TOPIC_ID: Final = topic_uuid(0)
UNKNOWN_ID: Final = topic_uuid(99)


def versions(name: str) -> range:
    """The versions that both accept."""
    api = BY_NAME[name]
    return range(api.min_version, api.announced[1] + 1)


def create(version: int, topics: list[dict[str, Any]], **fields: Any) -> Request:
    """CreateTopics of one partition each, unless they say more."""
    defaults = {"num_partitions": 1, "replication_factor": 1}
    given = [{**defaults, **topic} for topic in topics]
    return Request("CreateTopics", version, {"topics": given, "timeout_ms": 30_000, **fields})


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
        yield Request(
            "Produce", version, {"acks": -1, "timeout_ms": 1, "transactional_id": None, "topic_data": []}
        )
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
        {"name": name, "partitions": [{"partition_index": number, "timestamp": -1}]}
        for name, number in partitions
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
    yield create(7, [{"name": "~zstd", "configs": rows}])
    yield _list_offsets(6, [("~zstd", 0)])
    for version in versions("Fetch"):
        yield fetch(version, [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 300}])
        if version < 13:
            yield fetch(version, [{"partition": 0, "fetch_offset": 0}], topic={"topic": "~zstd"})
    rows = [{"name": "message.timestamp.type", "value": "LogAppendTime"}]
    yield create(7, [{"name": "~timed", "configs": rows}])
    yield _list_offsets(6, [("~timed", 0)])
    for version in (3, 9, 12):
        yield produce(version, {0: [{"values": ["v", "w"]}]}, topic={"name": "~timed"})
    yield fetch(12, [{"partition": 0, "fetch_offset": 0}], topic={"topic": "~timed"})
    rows = [{"name": "cleanup.policy", "value": "compact"}]
    yield create(7, [{"name": "~compacted", "configs": rows}])
    yield _list_offsets(6, [("~compacted", 0)])
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


def _waiting() -> Iterator[Request]:
    """Fetches that wait until their time is over."""
    for version in (4, 11, 12, 18):
        yield fetch(version, [{"partition": 0, "fetch_offset": 0}], max_wait_ms=30, min_bytes=1)
    yield produce(9, {0: [BATCH]})
    for version in (4, 11, 12, 18):
        for offset in (0, 1):
            for min_bytes in (0, 1, 1_000_000):
                row = {"partition": 0, "fetch_offset": offset}
                yield fetch(version, [row], max_wait_ms=30, min_bytes=min_bytes)
        both = [{"partition": 0, "fetch_offset": 1}, {"partition": 7, "fetch_offset": 0}]
        yield fetch(version, both, max_wait_ms=30, min_bytes=1)


def _sessions() -> Iterator[Request]:
    both = [{"partition": 0, "fetch_offset": 0}, {"partition": 1, "fetch_offset": 0}]
    for number, version in enumerate((7, 11, 12, 13, 15, 18), start=1):

        def ask(
            epoch: int, rows: list[Any], session: int = number, version: int = version, **more: Any
        ) -> Request:
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
                    rows = [row for row in rows if row["name"] != "__consumer_offsets"]
                    one = {"transactional_id": name, **producer, "topics": rows}
                    yield Request("AddPartitionsToTxn", version, {"transactions": [one]})
                else:
                    fields = {"transactional_id": name, **producer, "topics": rows}
                    old = {f"v3_and_below_{key}": value for key, value in fields.items()}
                    yield Request("AddPartitionsToTxn", version, old)
    for name in ("", "~missing"):
        for version in versions("AddOffsetsToTxn"):
            fields = {"transactional_id": name, **producer, "group_id": "~g"}
            yield Request("AddOffsetsToTxn", version, fields)
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
        both = [{"name": "~t", "partition_indexes": [0, 1]}]
        rows = [
            {**each, "transaction_result": True, "coordinator_epoch": 0, "topics": both} for each in (a, b)
        ]
        yield Request("WriteTxnMarkers", version, {"markers": [*rows, rows[0]]})
        yield Request("WriteTxnMarkers", version, {"markers": []})
        missing = {**rows[0], "topics": [{"name": "~missing", "partition_indexes": [0]}]}
        yield Request("WriteTxnMarkers", version, {"markers": [missing]})
        yield Request("WriteTxnMarkers", version, {"markers": [{**rows[0], "topics": []}]})
    yield Request("DescribeProducers", 0, {"topics": [{"name": "~t", "partition_indexes": [0, 1]}]})


def _twice() -> Iterator[Request]:
    """The same partition or topic twice in one request."""
    yield _init(5, "~a", 60_000)
    a = {"producer_id": 10**12, "producer_epoch": 0}
    for version in (3, 9, 12):
        topic = {"name": "~t", "partition_data": [{"index": 0, "records": [BATCH]}]}
        rows = {"acks": -1, "timeout_ms": 30_000, "transactional_id": None}
        yield Request("Produce", version, {**rows, "topic_data": [topic, topic]})
        twice = {"name": "~t", "partition_data": [topic["partition_data"][0]] * 2}
        yield Request("Produce", version, {**rows, "topic_data": [twice]})
    for version in (4, 12, 13):
        row = {"partition": 0, "fetch_offset": 0}
        yield fetch(version, [row, row])
        yield fetch(version, [row, {**row, "fetch_offset": 2}])
    for version in (0, 3, 4, 5):
        for topics in (
            [{"name": "~t", "partitions": [0, 0]}],
            [{"name": "~t", "partitions": [0]}, {"name": "~t", "partitions": [0]}],
            [{"name": "~t", "partitions": [0]}, {"name": "~t", "partitions": [1]}],
        ):
            fields = {"transactional_id": "~a", **a, "topics": topics}
            if version >= 4:
                yield Request("AddPartitionsToTxn", version, {"transactions": [fields]})
                for rows in ([{**fields, "verify_only": True}], [fields, fields]):
                    yield Request("AddPartitionsToTxn", version, {"transactions": rows})
            else:
                old = {f"v3_and_below_{key}": value for key, value in fields.items()}
                yield Request("AddPartitionsToTxn", version, old)
    both = [{"name": "~t", "partition_indexes": [0, 0]}, {"name": "~t", "partition_indexes": [0, 1]}]
    yield Request("DescribeProducers", 0, {"topics": both})
    # the same partition twice is never answered by Kafka
    marker = {**a, "transaction_result": False, "coordinator_epoch": 0, "topics": both[1:]}
    yield Request("WriteTxnMarkers", 1, {"markers": [marker]})
    rows = [{"partition": 0, "leader_epoch": 0}] * 2
    yield Request("OffsetForLeaderEpoch", 3, {"topics": [{"topic": "~t", "partitions": rows}] * 2})
    filters = {"state_filters": ["Ongoing"] * 2, "producer_id_filters": [10**12] * 2}
    yield Request("ListTransactions", 0, filters)
    yield Request("DescribeConfigs", 1, {"resources": [_topic_resource("~t", ["retention.ms"])] * 2})
    yield Request("DescribeConfigs", 1, {"resources": [_topic_resource("~t", ["retention.ms"] * 2)]})


def _topic_resource(name: str, keys: list[str]) -> dict[str, Any]:
    return {"resource_type": 2, "resource_name": name, "configuration_keys": keys}


def _deleted_records() -> Iterator[Request]:
    """The start of a log moves, into the middle of a batch and of an open transaction, too."""
    yield create(7, [{"name": "~c", "configs": [{"name": "cleanup.policy", "value": "compact"}]}])
    yield create(7, [{"name": "~n", "configs": [{"name": "cleanup.policy", "value": ""}]}])
    for version in versions("DeleteRecords"):
        yield produce(9, {0: [{"values": ["a", "b", "c"]}]})
        names = (("~t", 0), ("~t", 7), ("~missing", 0), ("~c", 0), ("~n", 0), ("__consumer_offsets", 0))
        for offset in (-2, 1000, 3 * version + 1, 3 * version, -1):
            topics = [
                {"name": name, "partitions": [{"partition_index": number, "offset": offset}]}
                for name, number in names
            ]
            yield Request("DeleteRecords", version, {"topics": topics, "timeout_ms": 30_000})
            yield fetch(12, [{"partition": 0, "fetch_offset": 3 * version}])
            yield Request("ListOffsets", 6, {"replica_id": -1, "topics": [
                {"name": "~t", "partitions": [{"partition_index": 0, "timestamp": time} for time in (-2,)]}
            ]})  # fmt: skip
        yield Request("DeleteRecords", version, {"topics": [], "timeout_ms": 30_000})
    yield Request("InitProducerId", 4, {"transactional_id": "~a", "transaction_timeout_ms": 60_000})
    batch = {"producer_id": 10**12, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    yield produce(12, {0: [{**batch, "values": ["d", "e"]}]}, transactional_id="~a")
    topics = [{"name": "~t", "partitions": [{"partition_index": 0, "offset": 10}]}]
    yield Request("DeleteRecords", 2, {"topics": topics, "timeout_ms": 30_000})
    for isolation in (0, 1):
        yield fetch(12, [{"partition": 0, "fetch_offset": 10}], isolation_level=isolation)
    yield Request("DescribeProducers", 0, {"topics": [{"name": "~t", "partition_indexes": [0]}]})


SCRIPTS: Final = {
    "deleted records": _deleted_records,
    "topics that are not there": _missing,
    "records that are refused": _bad_records,
    "records of all codecs": _codecs,
    "leader epochs": _leader_epochs,
    "fetches that wait": _waiting,
    "fetch sessions": _sessions,
    "transactional ids that are none": _bad_ids,
    "several in one request": _several,
    "twice in one request": _twice,
}
"""Requests of one conversation each; names that begin with ``~`` are its own."""
