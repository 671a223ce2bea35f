"""What members of consumer groups ask (KIP-848): several members of a group, by turns.

The ids of members are single letters: both brokers look at them in the same order then, and give the same
partitions to the same members.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.side_by_side.messages import Request
from tests.side_by_side.naming import topic_uuid
from tests.side_by_side.records import TOPIC_ID, versions

__all__ = ["SCRIPTS"]

GROUP: Final = "~g"
JOIN: Final = {
    "member_epoch": 0,
    "rebalance_timeout_ms": 60_000,
    "subscribed_topic_names": ["~t"],
    "topic_partitions": [],
}
UPGRADED: Final = "upgraded"  # a topic that both brokers call so: it is in bytes that clients make
MATCHED: Final = "matched-by-patterns"
REGEXES: Final = (
    MATCHED, "matched-by-[^0-9]{2,}", "nothing", "x|mat(c|t)hed.*", "matched", r"(?i)MATCHED\b.*",
)  # fmt: skip


def _subscription(*owned: int) -> bytes:
    """A subscription in version 1 of the embedded protocol."""
    topic = len(UPGRADED).to_bytes(2, "big") + UPGRADED.encode()
    found = b"\0\1" + (1).to_bytes(4, "big") + topic + b"\xff" * 4 + bool(owned).to_bytes(4, "big")
    return found + (topic + _numbers(*owned) if owned else b"")


def _assignment(*numbers: int) -> bytes:
    topic = len(UPGRADED).to_bytes(2, "big") + UPGRADED.encode()
    return b"\0\1" + (1).to_bytes(4, "big") + topic + _numbers(*numbers) + b"\xff" * 4


def _numbers(*numbers: int) -> bytes:
    return b"".join(each.to_bytes(4, "big") for each in (len(numbers), *numbers))


def _beat(member: str, epoch: int, version: int = 1, **changes: Any) -> Request:
    fields = {"group_id": GROUP, "member_id": member, "member_epoch": epoch, **changes}
    return Request("ConsumerGroupHeartbeat", version, fields)


def _join(member: str, version: int = 1, **changes: Any) -> Request:
    return _beat(member, 0, version, **{**JOIN, **changes})


def _owns(member: str, epoch: int, *partitions: int, topic: str = TOPIC_ID, **changes: Any) -> Request:
    owned = [{"topic_id": topic, "partitions": list(partitions)}] if partitions else []
    return _beat(member, epoch, topic_partitions=owned, **changes)


def _created(name: str, partitions: int) -> Iterator[Request]:
    """A topic. Kafka's group coordinator hears of it behind everybody else, so a while passes."""
    topics = [{"name": name, "num_partitions": partitions, "replication_factor": 1}]
    yield Request("CreateTopics", 7, {"topics": topics, "timeout_ms": 60_000})
    rows = [{"partition_index": each, "timestamp": -1} for each in range(partitions)]
    yield Request("ListOffsets", 6, {"replica_id": -1, "topics": [{"name": name, "partitions": rows}]})
    for _ in range(500):
        yield _beat("nobody", 1, group_id="~nobody")


def _looks(*groups: str) -> Iterator[Request]:
    for version in versions("ConsumerGroupDescribe"):
        yield Request("ConsumerGroupDescribe", version, {"group_ids": list(groups or (GROUP,))})


def _refused() -> Iterator[Request]:
    """What makes no sense, and members that are not there."""
    for version in (0, 1):
        for changes in (
            {"group_id": ""}, {"group_id": "  "}, {"member_id": ""}, {"rack_id": ""}, {"instance_id": ""},
            {"rebalance_timeout_ms": -1}, {"topic_partitions": None}, {"subscribed_topic_names": None},
            {"topic_partitions": [{"topic_id": TOPIC_ID, "partitions": [0]}]}, {"server_assignor": "sticky"},
            {"member_epoch": -3}, {"member_epoch": -2}, {"member_epoch": -1}, {"member_epoch": 4},
            {"member_epoch": -1, "member_id": ""}, {"member_epoch": 4, "member_id": ""},
            {"member_epoch": -2, "instance_id": "i"}, {"member_epoch": 3, "instance_id": "i"},
        ):  # fmt: skip
            fields = {**JOIN, "group_id": f"~refused {version}", "member_id": "a", **changes}
            yield Request("ConsumerGroupHeartbeat", version, fields)
    yield from _looks("~refused 0", "~nobody", "")
    names, asked = ["~refused 0", "~refused 1", "~nobody"], {"include_authorized_operations": True}
    yield Request("ConsumerGroupDescribe", 1, {"group_ids": names, **asked})
    yield Request("DescribeGroups", 6, {"groups": names, **asked})
    for member, epoch in (("b", 2), ("b", -1), ("a", 7), ("a", 1), ("a", 2), ("a", -1)):
        yield _beat(member, epoch, group_id="~refused 0")
    yield Request("ListGroups", 5, {})


def _lives() -> Iterator[Request]:
    """One member: what it says again and what it leaves out."""
    yield _join("a", 0)
    yield _beat("a", 2)
    yield _join("a", 0)
    yield _owns("a", 2, 0, 1, rebalance_timeout_ms=60_000, subscribed_topic_names=["~t"])
    yield from _looks()
    yield _beat("a", 1, topic_partitions=[])
    yield _beat("a", 2, rack_id="rack", rebalance_timeout_ms=30_000)
    yield _beat("a", 2, subscribed_topic_names=["~missing"])
    yield from _looks()
    yield _owns("a", 2)
    yield _owns("a", 3)
    yield _beat("a", 3, subscribed_topic_names=["~t", "~missing"])
    yield from _looks()
    yield _beat("a", 4, subscribed_topic_names=[])
    yield _owns("a", 4)
    yield _owns("a", 5)
    yield _beat("a", 5, subscribed_topic_names=["~t"])
    for states in (["Stable"], ["Empty", "Assigning"], ["Reconciling"]):
        yield Request("ListGroups", 5, {"states_filter": states, "types_filter": ["Consumer"]})
    yield Request("DescribeGroups", 5, {"groups": [GROUP]})
    yield Request("DescribeGroups", 6, {"groups": [GROUP]})
    yield Request("DeleteGroups", 2, {"groups_names": [GROUP]})
    yield _beat("a", -1)
    yield _beat("a", -1)
    yield from _looks()
    yield Request("ListGroups", 5, {"types_filter": ["consumer"]})
    yield _join("a", subscribed_topic_names=[])
    yield _beat("a", -1)
    yield Request("DeleteGroups", 2, {"groups_names": [GROUP]})
    yield from _looks()
    yield _join("a", subscribed_topic_names=[])
    yield from _looks()


def _two(assignor: str) -> Iterator[Request]:
    """Partitions go from member to member."""
    yield _join("a", server_assignor=assignor)
    yield _join("b", server_assignor=assignor)
    yield from _looks()
    yield _owns("b", 3)
    yield _owns("a", 2, 0, 1)
    yield from _looks()
    yield _owns("a", 2, 0, 1)
    yield _owns("b", 3)
    yield _owns("a", 2, 0)
    yield from _looks()
    yield _owns("b", 3)
    yield from _looks()
    yield _join("c", server_assignor=assignor)
    for member, *owned in (("a", 0), ("b", 1), ("c",), ("a", 0), ("b", 1), ("c",)):
        yield _owns(str(member), 3, *(int(each) for each in owned))
        yield _owns(str(member), 4, *(int(each) for each in owned))
    yield from _looks()
    yield _beat("a", -1)
    yield _beat("b", 4)
    yield _beat("c", 4)
    yield _owns("c", 5)
    yield _owns("b", 5, 1)
    yield from _looks()
    yield _beat("b", -1)
    yield _beat("c", 5)
    yield _beat("c", 6)
    yield from _looks()


def _mixed() -> Iterator[Request]:
    """Members with different topics: the third one brings a topic of its own."""
    yield from _created("~u", 4)
    other = topic_uuid(1)
    for assignor, group in (("uniform", "~mixed"), ("range", "~ranges")):
        name = {"group_id": group, "server_assignor": assignor}
        yield _join("a", **name)
        yield _join("b", **name, subscribed_topic_names=["~u"])
        yield _join("c", **name, subscribed_topic_names=["~t", "~u", "~missing"])
        yield from _looks(group)
        yield _owns("b", 3, topic=other, group_id=group)
        yield _owns("b", 4, topic=other, group_id=group)
        yield _owns("a", 2, 0, group_id=group)
        yield _owns("c", 4, group_id=group)
        yield from _looks(group)
        yield _beat("c", 4, group_id=group, subscribed_topic_names=["~t"], topic_partitions=[])
        yield from _looks(group)
        yield _beat("b", -1, group_id=group)
        yield _beat("a", 4, group_id=group)
        yield from _looks(group)


def _static() -> Iterator[Request]:
    """A static member goes for a while, and comes back with another id."""
    one = {"instance_id": "one"}
    yield _join("a", **one)
    yield _join("b", instance_id="two")
    yield _owns("a", 2, 0, **one)
    yield _owns("b", 3, instance_id="two")
    yield _join("c", **one)
    yield _beat("c", 2, **one)
    yield _beat("a", 3, instance_id="three")
    yield _beat("a", -2, **one)
    yield from _looks()
    yield _beat("b", 3, instance_id="two")
    yield _beat("a", 3, **one)
    yield _join("c", **one)
    yield from _looks()
    yield _beat("a", 3, **one)
    yield _beat("a", -1, **one)
    yield _beat("c", -1, **one)
    yield _beat("b", 3, instance_id="two")
    yield from _looks()


def _commit(version: int, offset: int, epoch: int, member: str, *partitions: int) -> Request:
    parts = [{"partition_index": each, "committed_offset": offset} for each in partitions or (0, 1)]
    topic = {"topic_id": TOPIC_ID} if version >= 10 else {"name": "~t"}
    identity = {"generation_id_or_member_epoch": epoch, "member_id": member}
    fields = {"group_id": GROUP, "topics": [{**topic, "partitions": parts}], **identity}
    return Request("OffsetCommit", version, fields)


def _fetch(version: int, **member: Any) -> Request:
    topic = {"topic_id": TOPIC_ID} if version >= 10 else {"name": "~t"}
    group = {"group_id": GROUP, "topics": [{**topic, "partition_indexes": [0, 1]}], **member}
    return Request("OffsetFetch", version, {"groups": [group]})


def _offsets() -> Iterator[Request]:
    yield _commit(9, 1, -1, "")  # a classic group, without members
    yield _join("a")
    yield _fetch(9)
    for version in versions("OffsetCommit"):
        for epoch in (2, 1, 3, -1):
            yield _commit(version, 10 * version + epoch, epoch, "a")
        yield _commit(version, 5, 2, "b")
        yield _commit(version, 6, -1, "")
    for version in (9, 10):
        for member in (
            {"member_id": "a", "member_epoch": 2}, {"member_id": "a", "member_epoch": 1},
            {"member_id": "b", "member_epoch": 2}, {"member_id": "a"}, {"member_id": ""}, {},
        ):  # fmt: skip
            yield _fetch(version, **member)
    yield _join("b")
    yield _owns("a", 2, 0, 1)
    for epoch in (2, 1):
        yield _commit(9, 70 + epoch, epoch, "a")
    yield _owns("a", 2, 0)
    for epoch in (3, 2):
        for partition in (0, 1):
            yield _commit(9, 80 + epoch, epoch, "a", partition)
    yield _owns("b", 3)
    for epoch in (3, 2):
        for partition in (0, 1):
            yield _commit(10, 90 + epoch, epoch, "b", partition)
    yield _fetch(9)
    delete = {"topics": [{"name": "~t", "partitions": [{"partition_index": 0}]}]}
    yield Request("OffsetDelete", 0, {"group_id": GROUP, **delete})
    yield _beat("a", -1)
    yield _beat("b", -1)
    yield _commit(9, 100, 2, "a")
    yield _commit(9, 100, -1, "")
    yield Request("OffsetDelete", 0, {"group_id": GROUP, **delete})
    yield _fetch(9)
    yield Request("DeleteGroups", 2, {"groups_names": [GROUP]})
    yield _fetch(9)


def _classic(member: str, version: int = 9, **changes: Any) -> Request:
    fields = {
        "group_id": GROUP, "session_timeout_ms": 30_000, "rebalance_timeout_ms": 60_000, "member_id": member,
        "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": _subscription()}], **changes,
    }  # fmt: skip
    return Request("JoinGroup", version, fields)


def _sync(member: str, generation: int, **changes: Any) -> Request:
    fields = {"group_id": GROUP, "generation_id": generation, "member_id": member, **changes}
    names = {"protocol_type": "consumer", "protocol_name": "range"}
    return Request("SyncGroup", 5, {**names, **fields})


def _alive(member: str, generation: int) -> Request:
    return Request("Heartbeat", 4, {"group_id": GROUP, "generation_id": generation, "member_id": member})


def _upgrade() -> Iterator[Request]:
    """A classic member, then one of the consumer protocol, which leaves again."""
    first = "member 0"
    yield from _created(UPGRADED, 2)
    yield _classic("", 3)
    yield _sync(first, 1, assignments=[{"member_id": first, "assignment": _assignment(0, 1)}])
    yield _beat("b", 3)
    yield _join("b", subscribed_topic_names=[UPGRADED])
    yield from _looks()
    for member in (first, "b", "nobody"):
        for generation in (1, 2):
            yield _alive(member, generation)
            yield _sync(member, generation)
    yield _classic(first)
    yield from _looks()
    yield _alive(first, 1)
    yield _sync(first, 1, protocol_name="sticky")
    yield _sync(first, 1, protocol_type="connect")
    yield _sync(first, 1)
    yield _classic(first, protocols=[{"name": "range", "metadata": _subscription(0)}])
    yield _sync(first, 2)
    yield _beat("b", 2)
    yield from _looks()
    for protocols in ([{"name": "sticky", "metadata": _subscription()}], []):
        yield _classic("c", protocols=protocols)
    yield _classic("c", protocol_type="connect")
    yield Request("DescribeGroups", 6, {"groups": [GROUP]})
    yield _alive(first, 2)
    yield _beat("b", -1)
    yield from _looks()
    yield Request("ListGroups", 5, {})
    yield _alive(first, 3)
    yield Request("LeaveGroup", 5, {"group_id": GROUP, "members": [{"member_id": first}]})
    yield Request("DescribeGroups", 6, {"groups": [GROUP]})
    yield _join("b")
    yield _beat("b", -1)
    yield _classic("", 3)
    yield Request("ListGroups", 5, {})


def _refused_member() -> Iterator[Request]:
    """A member that nobody knows, in a consumer group that everybody has left."""
    yield _join("a")
    yield _beat("a", -1)
    yield _classic("x")
    yield _join("b")


def _deleted_topic() -> Iterator[Request]:
    """The offsets of a topic go with it: another topic with its name is read from the beginning. A while
    passes until Kafka's group coordinator has heard of it."""
    group, topic = {"group_id": "~deleted"}, {"name": "~v"}
    fetch = Request("OffsetFetch", 8, {"groups": [{**group, "topics": None}]})
    yield from _created("~v", 2)
    parts = [{"partition_index": each, "committed_offset": 5 + each} for each in (0, 1)]
    yield Request("OffsetCommit", 8, {**group, "generation_id_or_member_epoch": -1, "topics": [
        {**topic, "partitions": parts}, {"name": "~t", "partitions": parts},
    ]})  # fmt: skip
    yield fetch
    yield Request("DeleteTopics", 5, {"topic_names": ["~v"], "timeout_ms": 60_000})
    for _ in range(500):
        yield _beat("nobody", 1, group_id="~nobody")
    yield fetch
    yield from _created("~v", 1)
    yield fetch


def _leaving() -> Iterator[Request]:
    """LeaveGroup for members of a consumer group."""
    yield _join("a")
    yield _join("b", instance_id="two")
    members = [{"member_id": "a"}, {"member_id": "x"}, {"member_id": "a", "group_instance_id": "two"}]
    yield Request("LeaveGroup", 5, {"group_id": GROUP, "members": [members[1], members[2]]})
    yield Request("LeaveGroup", 5, {"group_id": GROUP, "members": members})
    yield from _looks()
    yield Request("LeaveGroup", 5, {"group_id": GROUP, "members": [{"group_instance_id": "two"}]})
    yield from _looks()


def _regexes() -> Iterator[Request]:
    """Patterns: what they match comes behind the heartbeat that brings them."""
    yield from _created(MATCHED, 2)
    for regex in ("(", "[a", "a**", "x{2,1}", "\\", "(?=a)", "\\1", "(?x)a", "a(?i"):
        yield _join("a", subscribed_topic_names=None, subscribed_topic_regex=regex)
    for number, regex in enumerate(REGEXES):
        group = {"group_id": f"~regex {number}"}
        yield _join("a", **group, subscribed_topic_names=None, subscribed_topic_regex=regex)
        yield from _looks(group["group_id"])  # until it is resolved
        for epoch in (1, 2):
            yield _beat("a", epoch, **group, topic_partitions=[])
        yield _join("b", **group, subscribed_topic_names=None, subscribed_topic_regex=regex)
        yield from _looks(group["group_id"])
        yield _beat("b", 3, **group, subscribed_topic_regex="")
        yield from _looks(group["group_id"])
        yield _beat("a", -1, **group)
        yield from _looks(group["group_id"])


SCRIPTS: Final = {
    "refused heartbeats": _refused,
    "lives of consumers": _lives,
    "uniform assignor": lambda: _two("uniform"),
    "range assignor": lambda: _two("range"),
    "different topics": _mixed,
    "static consumers": _static,
    "offsets of consumers": _offsets,
    "from classic to consumer and back": _upgrade,
    "consumers that leave": _leaving,
    "offsets of a deleted topic": _deleted_topic,
    "a member that nobody knows": _refused_member,
    "patterns of consumers": _regexes,
}
