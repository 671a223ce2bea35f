"""The requests of members of the consumer protocol in a play (KIP-848), and of those of the classic protocol
in the same group. See ``Cast``.

All members choose their ids, letters from a to o: both brokers look at them in the same order then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tests.side_by_side.naming import topic_uuid

__all__ = ["GROUP", "ConsumerPlayers", "Player", "Turn", "assignment_of", "own_id", "subscription_of"]

GROUP: Final = "~g"
TOOL: Final = "tool"
"""The connection of who is no member."""
TOPIC_ID: Final = topic_uuid(0)


class Turn(NamedTuple):
    """One request of ``who``, or a time that passes (``wait``). ``options`` depend on the kind."""

    kind: str
    who: str = TOOL
    version: int = 0
    options: dict[str, Any] = {}  # noqa: RUF012

    def __str__(self) -> str:
        options = " ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.who} {self.kind} v{self.version} {options}".rstrip()


@dataclass
class Player:
    """What a member was told, by the names of the conversation. ``generation`` is the epoch of a member of
    the consumer protocol; ``told`` are the partitions that it may have, ``owned`` those that it says to
    have."""

    member_id: str = ""
    instance: str | None = None
    generation: int = -1
    protocol: str | None = None
    members: list[str] = field(default_factory=list)  # of the generation, where it leads
    joining: dict[str, Any] = field(default_factory=dict)  # the options of its last JoinGroup
    told: list[int] = field(default_factory=list)
    owned: list[int] = field(default_factory=list)

    def learn_heartbeat(self, answer: dict[str, Any]) -> None:
        """Take epoch and partitions from the answer to a ConsumerGroupHeartbeat."""
        if not answer.get("error_code"):
            self.generation = answer.get("member_epoch", 0)
            assignment = answer.get("assignment")
            if assignment is not None:
                rows = assignment.get("topic_partitions", ())
                self.told = sorted(number for row in rows for number in row.get("partitions", ()))


def own_id(who: str) -> str:
    """The id that a member chooses: a for M, b for N."""
    return chr(ord("a") + ord(who) - ord("M"))


class ConsumerPlayers:
    """A method for each kind of turn. ``prefix`` is that of the conversation on the wire: bytes that clients
    make have the name of the topic as it is there."""

    prefix: str
    players: dict[str, Player]

    def _enter(self, turn: Turn, player: Player) -> tuple[str, dict[str, Any]]:
        """``id``: as another process; ``instance``, ``topics``, ``assignor``."""
        given = turn.options
        player.member_id = given.get("id", own_id(turn.who))
        player.instance = given.get("instance")
        player.owned = []
        fields = {
            "group_id": GROUP, "member_id": player.member_id, "member_epoch": 0,
            "rebalance_timeout_ms": given.get("rebalance", 60_000), "topic_partitions": [],
            "subscribed_topic_names": list(given.get("topics", ("~t",))), "instance_id": player.instance,
            "server_assignor": given.get("assignor"),
        }  # fmt: skip
        return "ConsumerGroupHeartbeat", fields

    def _beat(self, turn: Turn, player: Player) -> tuple[str, dict[str, Any]]:
        """``owns`` is "told" (it takes what it was told), "same", "nothing", or "both"; without it the member
        says nothing of that. ``delta`` is added to its epoch; ``topics``, ``assignor`` are new."""
        given = turn.options
        player.member_id = player.member_id or own_id(turn.who)
        fields: dict[str, Any] = {
            "group_id": GROUP, "member_id": player.member_id, "instance_id": player.instance,
            "member_epoch": player.generation + given.get("delta", 0),
            "server_assignor": given.get("assignor"),
        }  # fmt: skip
        if "owns" in given:
            owns = {"told": player.told, "same": player.owned, "nothing": [], "both": [0, 1]}
            player.owned = list(owns[given["owns"]])
            topic = [{"topic_id": TOPIC_ID, "partitions": player.owned}] if player.owned else []
            fields["topic_partitions"] = topic
        if "topics" in given:
            fields["subscribed_topic_names"] = list(given["topics"])
        if given.get("whole"):
            fields |= {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["~t"]}
        return "ConsumerGroupHeartbeat", fields

    def _depart(self, turn: Turn, player: Player) -> tuple[str, dict[str, Any]]:
        """``away``: a static member leaves for a while."""
        epoch = -2 if turn.options.get("away") else -1
        fields = {"group_id": GROUP, "member_id": player.member_id, "instance_id": player.instance}
        return "ConsumerGroupHeartbeat", {**fields, "member_epoch": epoch}

    def _look(self, turn: Turn, player: Player) -> tuple[str, dict[str, Any]]:
        return "ConsumerGroupDescribe", {"group_ids": [GROUP]}

    def _types(self, turn: Turn, player: Player) -> tuple[str, dict[str, Any]]:
        """The protocol and the state of the group, by a classic request."""
        return "DescribeGroups", {"groups": [GROUP]}


def subscription_of(topic: str, owned: Iterable[int] | None) -> bytes:
    """A subscription in version 1 of the embedded protocol."""
    name = len(topic).to_bytes(2, "big") + topic.encode()
    numbers = list(owned or ())
    rows = len(numbers and [topic]).to_bytes(4, "big") + (name + _numbers(numbers) if numbers else b"")
    return b"\0\1" + (1).to_bytes(4, "big") + name + b"\xff" * 4 + rows


def assignment_of(topic: str, numbers: Iterable[int]) -> bytes:
    """An assignment in version 1 of the embedded protocol."""
    found = list(numbers)
    name = len(topic).to_bytes(2, "big") + topic.encode()
    rows = len(found and [topic]).to_bytes(4, "big") + (name + _numbers(found) if found else b"")
    return b"\0\1" + rows + b"\xff" * 4


def _numbers(numbers: list[int]) -> bytes:
    return b"".join(each.to_bytes(4, "big") for each in (len(numbers), *numbers))
