"""What tools ask of a broker: directories, pages of partitions, leaders, the quorum, features, and what needs
users or several brokers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.side_by_side.messages import Request
from tests.side_by_side.records import create, versions

__all__ = ["SCRIPTS"]


def _directories() -> Iterator[Request]:
    for version in versions("DescribeLogDirs"):
        yield Request("DescribeLogDirs", version, {"topics": [{"topic": "~t", "partitions": [0, 1, 7]}]})
        missing = [{"topic": name, "partitions": [0]} for name in ("~missing", "__cluster_metadata")]
        yield Request("DescribeLogDirs", version, {"topics": missing})
        yield Request("DescribeLogDirs", version, {"topics": []})
    for version in versions("AlterReplicaLogDirs"):
        topics = [{"name": "~t", "partitions": [0, 9]}, {"name": "~missing", "partitions": [0]}]
        yield Request("AlterReplicaLogDirs", version, {"dirs": [{"path": "/nowhere", "topics": topics}]})
        yield Request("AlterReplicaLogDirs", version, {"dirs": []})


def _page(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Request:
    fields: dict[str, Any] = {"topics": [{"name": name} for name in names], "response_partition_limit": limit}
    if cursor is not None:
        fields["cursor"] = {"topic_name": cursor[0], "partition_index": cursor[1]}
    return Request("DescribeTopicPartitions", 0, fields)


def _pages() -> Iterator[Request]:
    yield create(7, [{"name": "~p", "num_partitions": 5}, {"name": "~q", "num_partitions": 1}])
    names = "~p", "~q", "~t", "~missing"
    yield _page(*names)
    yield _page("~t", "~t", "a b", "", "__transaction_state", limit=3)
    for limit in (-1, 0, 1, 3, 5, 6, 8):
        yield _page(*names, limit=limit)
    for cursor in (
        ("~p", 0), ("~p", 3), ("~p", 5), ("~p", 9), ("~q", 0), ("~r", 0), ("~p", -1), ("~missing", 2)
    ):  # fmt: skip
        yield _page(*names, limit=3, cursor=cursor)
    yield _page(limit=2, cursor=("~p", 2))
    yield _page(limit=2, cursor=("~p", 5))


def _leaders() -> Iterator[Request]:
    for version in versions("ElectLeaders"):
        for kind in (0, 1, 2, -1) if version else (0,):
            asked = [{"topic": "~t", "partitions": [0, 1, 9]}, {"topic": "~missing", "partitions": [0]}]
            fields: dict[str, Any] = {"topic_partitions": asked, "timeout_ms": 30_000}
            yield Request("ElectLeaders", version, {**fields, "election_type": kind} if version else fields)
        yield Request("ElectLeaders", version, {"topic_partitions": [], "timeout_ms": 30_000})
    for version in versions("AlterPartitionReassignments"):
        wanted = [
            {"partition_index": number, "replicas": replicas}
            for number, replicas in ((0, [1]), (1, None), (9, [1]))
        ]
        bad = [{"partition_index": 0, "replicas": each} for each in ([], [2], [1, 2], [1, 1])]
        for rows in (wanted, *([each] for each in bad)):
            topics = [{"name": "~t", "partitions": rows}, {"name": "~missing", "partitions": rows[:1]}]
            yield Request("AlterPartitionReassignments", version, {"topics": topics})
        yield Request("AlterPartitionReassignments", version, {"topics": []})
    for version in versions("ListPartitionReassignments"):
        yield Request("ListPartitionReassignments", version, {"topics": None})
        wanted = [{"name": name, "partition_indexes": [0, 9]} for name in ("~t", "~missing")]
        yield Request("ListPartitionReassignments", version, {"topics": wanted})


def _quorum() -> Iterator[Request]:
    for version in versions("DescribeQuorum"):
        for name, number in (("__cluster_metadata", 0), ("__cluster_metadata", 1), ("~t", 0)):
            topics = [{"topic_name": name, "partitions": [{"partition_index": number}]}]
            yield Request("DescribeQuorum", version, {"topics": topics})
        yield Request("DescribeQuorum", version, {"topics": []})
    for version in versions("UnregisterBroker"):
        yield Request("UnregisterBroker", version, {"broker_id": 7})


def _features() -> Iterator[Request]:
    for version in versions("UpdateFeatures"):

        def update(*rows: tuple[Any, ...], version: int = version, only: bool = True) -> Request:
            updates = []
            for name, level, *kind in rows:
                row = {"feature": name, "max_version_level": level}
                updates.append({**row, "upgrade_type": kind[0]} if kind and version else row)
            fields: dict[str, Any] = {"feature_updates": updates, "timeout_ms": 30_000}
            fields |= {"validate_only": only} if version else {}
            return Request("UpdateFeatures", version, fields)

        yield update()
        if version:
            yield update(("transaction.version", 1, 2))
            yield update(("transaction.version", 1, 2), ("transaction.version", 2, 2), only=False)
            yield update(("transaction.version", 1, 2), only=False)
            yield Request("ApiVersions", 4, {"client_software_name": "a", "client_software_version": "1"})
            yield update(("transaction.version", 2), only=False)
            yield update(("group.version", 0, 3))
            yield update(("share.version", 0, 3))
            yield update(("group.version", 1, 2))
            yield update(("metadata.version", 30))
        for row in (
            ("transaction.version", 1), ("transaction.version", 3), ("transaction.version", 2, 0),
            ("transaction.version", 2, 9), ("transaction.version", -1), ("no.such", 1), ("no.such", 0),
            ("metadata.version", 6), ("metadata.version", 34), ("metadata.version", 7, 2),
            ("kraft.version", 2),
        ):  # fmt: skip
            if version or len(row) == 2:
                yield update(row)


def _resources() -> Iterator[Request]:
    for version in versions("ListConfigResources"):
        for kinds in ([2], [4], [8], [16], [32], [4, 16], [7], [2, 7]) if version else ([],):
            fields = {"resource_types": kinds} if version else {}
            yield Request("ListConfigResources", version, fields)


def _quotas() -> Iterator[Request]:
    for version in versions("DescribeClientQuotas"):
        for components in (
            [], [("user", 0, "a")], [("user", 1, None)], [("client-id", 2, None), ("user", 2, None)],
            [("ip", 2, None)], [("ip", 2, None), ("user", 2, None)], [("", 0, "a")], [("odd", 0, "a")],
            [("user", 0, None)], [("user", 1, "a")], [("user", 2, "a")], [("user", 3, None)],
            [("user", 0, "a"), ("user", 1, None)],
        ):  # fmt: skip
            rows = [{"entity_type": kind, "match_type": how, "match": text} for kind, how, text in components]
            yield Request("DescribeClientQuotas", version, {"components": rows, "strict": False})
    for version in versions("AlterClientQuotas"):
        entity = [{"entity_type": "user", "entity_name": "a"}]
        entry = {"entity": entity, "ops": [{"key": "consumer_byte_rate", "value": 1000.0}]}
        yield Request("AlterClientQuotas", version, {"entries": [entry], "validate_only": True})
        yield Request("AlterClientQuotas", version, {"entries": []})


def _users() -> Iterator[Request]:
    for version in versions("DescribeUserScramCredentials"):
        for users in (None, [], [{"name": "a"}], [{"name": "a"}, {"name": "b"}, {"name": "a"}]):
            yield Request("DescribeUserScramCredentials", version, {"users": users})
    acl = {"resource_type": 2, "resource_name": "t", "principal": "User:a", "host": "*", "operation": 3}
    match = {"resource_type_filter": 1, "resource_name_filter": None, "principal_filter": None}
    match |= {"host_filter": None, "operation": 1, "permission_type": 1}
    for version in versions("DescribeAcls"):
        yield Request("DescribeAcls", version, match)
        yield Request("CreateAcls", version, {"creations": [{**acl, "permission_type": 3}] * 2})
        yield Request("CreateAcls", version, {"creations": []})
        yield Request("DeleteAcls", version, {"filters": [match, match]})
        yield Request("DeleteAcls", version, {"filters": []})
    for version in versions("CreateDelegationToken"):
        yield Request("CreateDelegationToken", version, {"renewers": [], "max_lifetime_ms": -1})
        renewers = [{"principal_type": "User", "principal_name": "a"}]
        yield Request("CreateDelegationToken", version, {"renewers": renewers, "max_lifetime_ms": 1000})
        for owners in (None, [], renewers):
            yield Request("DescribeDelegationToken", version, {"owners": owners})
    for version in versions("RenewDelegationToken"):
        yield Request("RenewDelegationToken", version, {"hmac": b"x", "renew_period_ms": 1})
        yield Request("ExpireDelegationToken", version, {"hmac": b"x", "expiry_time_period_ms": 1})


SCRIPTS: Final = {
    "log directories": _directories,
    "pages of partitions": _pages,
    "leaders and replicas": _leaders,
    "the quorum": _quorum,
    "levels of features": _features,
    "resources with configs": _resources,
    "quotas": _quotas,
    "users": _users,
}
"""Requests of one conversation each; what they change of the broker they change back."""
