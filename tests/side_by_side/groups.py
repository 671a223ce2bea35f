"""What consumers ask of a group and its offsets: one member at a time, and tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.side_by_side.messages import Request
from tests.side_by_side.records import TOPIC_ID, UNKNOWN_ID, versions

__all__ = ["SCRIPTS"]

GROUP: Final = "~g"
FIRST_PRODUCER: Final = 10**12
SUBSCRIPTION: Final = b"\x00\x01\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff\x00\x00\x00\x00"
STABLE: Final = {"generation_id": 1, "member_id": "member 0"}
STRANGERS: Final = (
    {"generation_id": 1, "member_id": "nobody"},
    {"generation_id": 2, "member_id": "member 0"},
    {"generation_id": -1, "member_id": ""},
    {"generation_id": 1, "member_id": "member 0", "group_instance_id": "i"},
)


def _join(version: int, member_id: str = "", **changes: Any) -> Request:
    fields = {
        "group_id": GROUP,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [{"name": name, "metadata": SUBSCRIPTION} for name in ("range", "roundrobin")],
        **changes,
    }
    if version < 1:
        del fields["rebalance_timeout_ms"]
    return Request("JoinGroup", version, fields)


def _member(version: int = 5) -> Iterator[Request]:
    """The only member of a group, up to its assignment."""
    yield _join(version)
    if version >= 4:
        yield _join(version, "member 0")
    yield _sync(min(version, 5))


def _sync(version: int, **changes: Any) -> Request:
    fields = {"group_id": GROUP, **STABLE, "assignments": [{"member_id": "member 0", "assignment": b"a"}]}
    if version >= 5:
        fields |= {"protocol_type": "consumer", "protocol_name": "range"}
    return Request("SyncGroup", version, {**fields, **changes})


def _fits(api: str, version: int, fields: dict[str, Any]) -> dict[str, Any]:
    """Without an instance id where the version has none."""
    from_version = {"OffsetCommit": 7, "JoinGroup": 5}.get(api, 3)
    return fields if version >= from_version else {**fields, "group_instance_id": None}


def _members() -> Iterator[Request]:
    for version in versions("JoinGroup"):
        for change in (
            {"group_id": ""}, {"session_timeout_ms": 5}, {"session_timeout_ms": 2_000_000},
            {"protocol_type": ""}, {"protocols": []}, {"member_id": "nobody"},
        ):  # fmt: skip
            yield _join(version, **change)
        group = {"group_id": f"~join {version}"}
        yield _join(version, **group)


def _lives() -> Iterator[Request]:
    """The life of one member, in the versions of its APIs."""
    yield from _member()
    for version in versions("Heartbeat"):
        yield Request("Heartbeat", version, {"group_id": GROUP, **STABLE})
        for stranger in STRANGERS:
            if version >= 3 or "group_instance_id" not in stranger:
                yield Request("Heartbeat", version, {"group_id": GROUP, **stranger})
        yield Request("Heartbeat", version, {"group_id": "", **STABLE})
        yield Request("Heartbeat", version, {"group_id": "~nobody", **STABLE})
    for version in versions("SyncGroup"):
        yield _sync(version)
        yield _sync(version, member_id="nobody")
        yield _sync(version, generation_id=7)
        yield _sync(version, group_id="~nobody")
        if version >= 5:
            yield _sync(version, protocol_name="sticky")
            yield _sync(version, protocol_type="connect")
            yield _sync(version, protocol_name=None)
    for version in versions("DescribeGroups"):
        yield Request("DescribeGroups", version, {"groups": [GROUP, "~nobody", ""]})
    for version in range(3, 7):
        fields = {"groups": [GROUP, "~nobody"], "include_authorized_operations": True}
        yield Request("DescribeGroups", version, fields)
    for version in range(4, 6):
        for states in (["Stable"], ["Empty", "Dead"], ["nonsense"]):
            yield Request("ListGroups", version, {"states_filter": states})
    for types in (["classic"], ["consumer"], ["Classic", "share"], ["nonsense"]):
        yield Request("ListGroups", 5, {"types_filter": types})
    for version in versions("ListGroups"):
        yield Request("ListGroups", version, {})
    yield Request("DeleteGroups", 2, {"groups_names": [GROUP]})
    for version in range(3):
        yield Request("LeaveGroup", version, {"group_id": GROUP, "member_id": "nobody"})
        yield Request("LeaveGroup", version, {"group_id": "~nobody", "member_id": "member 0"})
        yield Request("LeaveGroup", version, {"group_id": "", "member_id": "member 0"})
    for version in range(3, 6):
        leaving = [{"member_id": "nobody"}, {"member_id": "", "group_instance_id": "i"}]
        for group in (GROUP, "~nobody", ""):
            yield Request("LeaveGroup", version, {"group_id": group, "members": leaving})
    yield _join(5, "member 0")  # the leader: a new generation
    yield Request("Heartbeat", 4, {"group_id": GROUP, **STABLE})
    yield _sync(5, generation_id=2)
    yield Request("LeaveGroup", 5, {"group_id": GROUP, "members": [{"member_id": "member 0"}]})
    for version in versions("DescribeGroups"):
        yield Request("DescribeGroups", version, {"groups": [GROUP]})
    yield Request("ListGroups", 5, {})
    yield _join(5, "member 0")
    for version in versions("DeleteGroups"):
        yield Request("DeleteGroups", version, {"groups_names": [GROUP, "~nobody", ""]})


def _instances() -> Iterator[Request]:
    """A static member that comes back (KIP-345, KIP-814)."""
    instance = {"group_instance_id": "instance"}
    for version in range(5, 10):
        group = {"group_id": f"~static {version}", **instance}
        yield _join(version, **group)
        first = f"member {2 * (version - 5)}"
        assignments = [{"member_id": first, "assignment": b"a"}]
        yield _sync(4, **group, member_id=first, assignments=assignments)
        yield _join(version, **group)
        for number in (0, 1):
            named = {**group, "generation_id": 1, "member_id": f"member {2 * (version - 5) + number}"}
            yield Request("Heartbeat", 4, named)
            yield _sync(4, **named, assignments=[])
        yield Request("DescribeGroups", 5, {"groups": [group["group_id"]]})
        leaving = [{"member_id": "", **instance}]
        yield Request("LeaveGroup", 4, {"group_id": group["group_id"], "members": leaving})


def _commit(version: int, offset: int, **changes: Any) -> Request:
    parts = [
        {"partition_index": 0, "committed_offset": offset, "committed_metadata": "words"},
        {"partition_index": 1, "committed_offset": offset + 1},
        {"partition_index": 7, "committed_offset": offset},
    ]
    if version >= 6:
        parts[0]["committed_leader_epoch"] = 0
    topics = (
        [{"topic_id": TOPIC_ID, "partitions": parts}, {"topic_id": UNKNOWN_ID, "partitions": parts}]
        if version >= 10
        else [{"name": "~t", "partitions": parts}, {"name": "~missing", "partitions": parts}]
    )
    return Request("OffsetCommit", version, {"group_id": GROUP, "topics": topics, **changes})


def _fetch(version: int, group: str = GROUP, *, everything: bool = False, **changes: Any) -> Request:
    indexes = {"partition_indexes": [0, 1, 7]}
    named = {"topic_id": TOPIC_ID} if version >= 10 else {"name": "~t"}
    topics = None if everything else [{**named, **indexes}]
    if version < 8:
        return Request("OffsetFetch", version, {"group_id": group, "topics": topics, **changes})
    return Request("OffsetFetch", version, {"groups": [{"group_id": group, "topics": topics}], **changes})


def _offsets() -> Iterator[Request]:
    for version in versions("OffsetFetch"):
        yield _fetch(version)
        yield _fetch(version, "")
    for number, version in enumerate(versions("OffsetCommit")):
        yield _commit(version, 10 * number)
        yield _fetch(9)
        yield _commit(version, 1, group_id="")
        yield _commit(version, 1, generation_id_or_member_epoch=1, member_id="x", group_id="~nobody")
        yield _commit(version, 1, member_id="x")
        yield _commit(version, 1, generation_id_or_member_epoch=1)
        yield _commit(version, -5)
        if version <= 4:
            yield _commit(version, 5, retention_time_ms=1_000_000)
    for version in versions("OffsetFetch"):
        yield _fetch(version)
        if version >= 2:
            yield _fetch(version, everything=True)
        if version >= 7:
            yield _fetch(version, require_stable=True)
    long = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "x" * 4097}
    yield Request("OffsetCommit", 8, {"group_id": GROUP, "topics": [{"name": "~t", "partitions": [long]}]})
    unknown = [{"topic_id": UNKNOWN_ID, "partition_indexes": [0]}]
    yield Request("OffsetFetch", 10, {"groups": [{"group_id": GROUP, "topics": unknown}]})
    yield Request("OffsetFetch", 10, {"groups": []})


def _offsets_of_members() -> Iterator[Request]:
    yield from _member()
    for version in versions("OffsetCommit"):
        for identity in (STABLE, *STRANGERS):
            named = {
                "generation_id_or_member_epoch": identity["generation_id"], "member_id": identity["member_id"]
            }  # fmt: skip
            if version >= 7 and "group_instance_id" in identity:
                named["group_instance_id"] = identity["group_instance_id"]
            yield _commit(version, version, **named)
        yield _fetch(9)
    delete = {"topics": [{"name": "~t", "partitions": [{"partition_index": 0}, {"partition_index": 7}]}]}
    for group in (GROUP, "~nobody", ""):
        yield Request("OffsetDelete", 0, {"group_id": group, **delete})
    yield _fetch(9)
    yield Request("LeaveGroup", 5, {"group_id": GROUP, "members": [{"member_id": "member 0"}]})
    yield Request("OffsetDelete", 0, {"group_id": GROUP, **delete})
    yield _fetch(9)
    yield Request("DeleteGroups", 2, {"groups_names": [GROUP]})
    yield _fetch(9)
    yield _fetch(9, everything=True)


def _commit_in_transaction(version: int, offset: int, epoch: int = 0, **changes: Any) -> Request:
    parts = [
        {"partition_index": 0, "committed_offset": offset, "committed_metadata": "m"},
        {"partition_index": 7, "committed_offset": offset},
    ]
    topics = [{"name": "~t", "partitions": parts}, {"name": "~missing", "partitions": parts[:1]}]
    if version >= 6:
        topics = [
            {"topic_id": TOPIC_ID, "partitions": parts},
            {"topic_id": UNKNOWN_ID, "partitions": parts[:1]},
        ]
    fields = {"transactional_id": "~a", "group_id": GROUP, "producer_id": FIRST_PRODUCER, "topics": topics}
    return Request("TxnOffsetCommit", version, {**fields, "producer_epoch": epoch, **changes})


def _transactions() -> Iterator[Request]:
    """Offsets of transactions of both versions of clients, committed and aborted."""
    yield Request("InitProducerId", 4, {"transactional_id": "~a", "transaction_timeout_ms": 60_000})
    identity = {"transactional_id": "~a", "producer_id": FIRST_PRODUCER}
    for version in range(5):
        yield _commit_in_transaction(version, 1)
        yield Request("AddOffsetsToTxn", 3, {**identity, "producer_epoch": 0, "group_id": GROUP})
        yield _commit_in_transaction(version, version)
        yield from _looks()
        yield _commit_in_transaction(version, 1, group_id="")
        yield _commit_in_transaction(version, 1, epoch=3)
        yield _commit_in_transaction(version, 1, transactional_id="~b")
        if version >= 3:
            yield _commit_in_transaction(version, 1, generation_id_or_member_epoch=4, member_id="m")
        yield Request("EndTxn", 3, {**identity, "producer_epoch": 0, "committed": version % 2 == 0})
        yield from _looks()
    yield Request("InitProducerId", 5, {"transactional_id": "~c", "transaction_timeout_ms": 60_000})
    second = {"transactional_id": "~c", "producer_id": FIRST_PRODUCER + 1}
    for epoch in range(4):
        yield _commit_in_transaction(5 + epoch % 2, 20 + epoch, epoch, **second)
        yield from _looks()
        stranger = {"group_id": "~nobody", "generation_id_or_member_epoch": 2, "member_id": "m"}
        yield _commit_in_transaction(5, 1, epoch, **second, **stranger)
        yield _commit_in_transaction(5, 1, epoch + 7, **second)
        yield _commit(9, 30 + epoch)
        yield Request("EndTxn", 5, {**second, "producer_epoch": epoch, "committed": epoch % 2 == 0})
        yield from _looks()


def _looks() -> Iterator[Request]:
    for stable in (False, True):
        yield _fetch(9, require_stable=stable)
        yield _fetch(9, everything=True, require_stable=stable)


SCRIPTS: Final = {
    "members": _members,
    "lives of members": _lives,
    "static members": _instances,
    "offsets": _offsets,
    "offsets of members": _offsets_of_members,
    "offsets of transactions": _transactions,
}
