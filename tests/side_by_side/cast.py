"""Several members of one group, each on a connection of its own, beside each other on two brokers.

A turn says "M joins", "N brings the assignment"; its request follows from what M and N were told before. An
answer may come with a later turn, when the broker has waited for others: behind each turn, both brokers must
have answered the same connections, with the same answers.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, Final

from tests.side_by_side.comparison import NOTHING_YET
from tests.side_by_side.consumer_players import (
    GROUP,
    TOOL,
    ConsumerPlayers,
    Player,
    Turn,
    assignment_of,
    own_id,
    subscription_of,
)
from tests.side_by_side.differences import unexplained
from tests.side_by_side.messages import BY_NAME, Request, answer_of
from tests.side_by_side.naming import Naming
from tests.side_by_side.pair import Compared
from tests.side_by_side.sides import Conversation, TcpSide
from txnkafka.wire.messages import read_response

__all__ = ["Cast", "Turn"]

SUBSCRIPTION: Final = b"\x00\x01\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff\x00\x00\x00\x00"
PATIENCE_SECONDS: Final = 10.0
PAUSE_SECONDS: Final = 0.002
_AT_ONCE: Final = {"ConsumerGroupHeartbeat", "OffsetCommit"}  # what never waits for other members


class Cast(ConsumerPlayers):
    """The members ``names`` on new connections to the brokers of two sides."""

    def __init__(
        self, ours: TcpSide, kafka: TcpSide, prefix: str, names: Iterable[str], topic_ids: Sequence[str] = ()
    ) -> None:
        self.prefix = prefix
        self.players = {name: Player() for name in names}
        self._waiting: dict[str, Request] = {}  # without an answer
        self._leader: str | None = None
        self.is_over = False  # before its last turn
        self.used: Counter[str] = Counter()
        self._looks = [Conversation(side.another(), prefix) for side in (ours, kafka)]  # with other names
        self._sides: list[dict[str, Conversation]] = []
        for side in (ours, kafka):
            naming = Naming(prefix, side.now_ms())
            for topic_id in topic_ids[len(self._sides) : len(self._sides) + 1]:
                naming.topic(topic_id)
            conversations = {name: Conversation(side.another(), prefix) for name in (*self.players, TOOL)}
            for conversation in conversations.values():
                conversation.naming = naming
            self._sides.append(conversations)

    def close(self) -> None:
        """Close all connections."""
        everything = [each for conversations in self._sides for each in conversations.values()]
        for conversation in (*self._looks, *everything):
            conversation.side.close()  # type: ignore[attr-defined]

    def play(self, turns: Iterable[Turn]) -> list[Compared]:
        """One turn after the other, up to the first difference. Who waits for an answer makes no turn."""
        compared: list[Compared] = []
        for turn in turns:
            if turn.who in self._waiting or (turn.kind == "describe" and self._has_nameless):
                continue
            if "own_id" in turn.options and self._is_left():
                continue
            compared += self._turn(turn)
            if self.is_over or any(each.differences for each in compared):
                break
        return compared

    @property
    def _has_nameless(self) -> bool:
        """Whether somebody waits for its id: it would be named in the order of Kafka's hash table."""
        joins = (request for request in self._waiting.values() if request.api == "JoinGroup")
        return any(not request.fields["member_id"] for request in joins)

    def _is_left(self) -> bool:
        """Whether it is a consumer group without members: Kafka forgets it when a member that it does not
        know joins with the classic protocol (the rule "forgotten group")."""
        answer = self._looks[0].ask(Request("ConsumerGroupDescribe", 1, {"group_ids": [GROUP]}))
        return bool(answer["groups"][0].get("group_state") == "Empty")

    def _turn(self, turn: Turn) -> list[Compared]:
        if turn.kind == "wait":
            time.sleep(turn.options["seconds"])
            return self._answers()
        if turn.who == TOOL:
            return [self._asked(self._request(turn))]
        request = self._request(turn)
        is_sure = request.api in _AT_ONCE or (request.api == "JoinGroup" and self._is_empty())
        self._waiting[turn.who] = request
        for conversations in self._sides:
            conversations[turn.who].send(request)
        compared = self._answers({turn.who} if is_sure else set())
        if request.api == "LeaveGroup":
            self._wait_for_empty_group()
        return compared

    def _is_empty(self) -> bool:
        """Whether the group has no members: a timer ends its first rebalance, and nobody else."""
        return self._described(self._looks[0])["group_state"] in ("Empty", "Dead")

    def _wait_for_empty_group(self) -> None:
        """A timer ends a rebalance of nobody, too: one that has begun while an id was given."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        for look in self._looks:
            while time.monotonic() < deadline:
                group = self._described(look)
                if group["group_state"] != "PreparingRebalance" or group.get("members"):
                    break
                time.sleep(PAUSE_SECONDS)

    def _described(self, look: Conversation) -> dict[str, Any]:
        answer = look.ask(Request("DescribeGroups", 5, {"groups": [GROUP]}))
        group: dict[str, Any] = answer["groups"][0]
        return group

    # Answers

    def _asked(self, request: Request) -> Compared:
        """A question whose answer changes while a broker does what was asked before."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            ours, kafka = (conversations[TOOL].ask(request) for conversations in self._sides)
            found = unexplained(request, ours, kafka, self.used)
            if not found or time.monotonic() > deadline:
                return Compared(request, ours, kafka, found)
            time.sleep(PAUSE_SECONDS)

    def _answers(self, at_least: Set[str] = frozenset()) -> list[Compared]:
        """What has been answered since the last turn, when both have answered the same members, and these."""
        if at_least != self._waiting.keys():
            self._fence()
        frames: list[dict[str, bytes | None]] = [{}, {}]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            for conversations, found in zip(self._sides, frames, strict=True):
                for name in self._waiting:
                    side = conversations[name].side
                    if name not in found and side.has_answer():  # type: ignore[attr-defined]
                        found[name] = side.receive()
            is_same = frames[0].keys() == frames[1].keys() and frames[0].keys() >= at_least
            if is_same or time.monotonic() > deadline:
                return self._compared(frames)
            time.sleep(PAUSE_SECONDS)

    def _fence(self) -> None:
        """Both have looked at what was sent before: their brokers have one thread each for requests and for
        the network, which has read the others' requests when it answers the first of these two."""
        for conversations in self._sides:
            for _ in range(2):
                conversations[TOOL].ask(Request("Heartbeat", 4, {"group_id": GROUP, "member_id": "nobody"}))

    def _compared(self, frames: list[dict[str, bytes | None]]) -> list[Compared]:
        for found in frames:
            self._name_members(found, self._sides[frames.index(found)][TOOL].naming)
        compared = []
        for name, request in list(self._waiting.items()):
            ours, kafka = (self._answer(i, name, found) for i, found in enumerate(frames))
            if ours == kafka == NOTHING_YET:
                continue
            del self._waiting[name]
            is_whole = NOTHING_YET in (ours, kafka)  # one has answered: all that it says is the difference
            if not is_whole and self._has_elected(request, ours, kafka):
                continue
            pair = ({"answer": ours}, {"answer": kafka}) if is_whole else (ours, kafka)
            compared.append(
                Compared(request, ours, kafka, unexplained(request, pair[0], pair[1], self.used))
            )
            self._learn(self.players[name], request, ours)
        return compared

    def _has_elected(self, request: Request, ours: dict[str, Any], kafka: dict[str, Any]) -> bool:
        """Whether both have chosen another member to lead, because the one before is gone. The play is over
        then: Kafka takes any member, as its hash table has them."""
        leaders = {ours.get("leader"), kafka.get("leader")}
        if request.api != "JoinGroup" or None in leaders:
            return False
        self.is_over |= len(leaders) == 2 and self._leader not in leaders
        if len(leaders) == 1:
            (self._leader,) = leaders
        return self.is_over

    def _name_members(self, found: dict[str, bytes | None], naming: Naming) -> None:
        """Give names to the ids of those who were answered, before the leader's answer has them in any
        order."""
        for name, request in self._waiting.items():
            frame = found.get(name)
            if request.api == "JoinGroup" and frame is not None:
                naming.member(read_response(BY_NAME[request.api], request.version, frame)[1].member_id)

    def _answer(self, side: int, name: str, found: dict[str, bytes | None]) -> Any:
        frame, request = found.get(name), self._waiting[name]
        if frame is None:
            return NOTHING_YET
        naming = self._sides[side][name].naming
        return answer_of(BY_NAME[request.api], request.version, frame, naming)

    def _learn(self, player: Player, request: Request, answer: Any) -> None:
        if request.api == "ConsumerGroupHeartbeat" and answer != NOTHING_YET:
            player.learn_heartbeat(answer)
        if request.api == "JoinGroup" and answer != NOTHING_YET:
            player.member_id = answer.get("member_id", player.member_id)
            if not answer.get("error_code"):
                player.generation = answer.get("generation_id", 0)
                player.protocol = answer.get("protocol_name")
                player.members = [each["member_id"] for each in answer.get("members", ())]

    # Requests

    def _request(self, turn: Turn) -> Request:
        make: Callable[[Turn, Player], tuple[str, dict[str, Any]]] = getattr(self, f"_{turn.kind}")
        api, fields = make(turn, self.players.get(turn.who, Player()))
        return Request(api, turn.version, fields)

    def _join(self, turn: Turn, player: Player) -> tuple[str, dict[str, Any]]:
        """``fresh``: as another process, ``id_of``: with another's id. What is not said stays as it was."""
        if turn.options.get("fresh"):
            player.member_id = ""
        if "id_of" in turn.options:
            player.member_id = self.players[turn.options["id_of"]].member_id
        if turn.options.get("own_id"):
            player.member_id = own_id(turn.who)
        player.joining = {**player.joining, **turn.options}
        given = player.joining
        player.instance = given.get("instance")
        fields = {
            "group_id": GROUP,
            "session_timeout_ms": given.get("session", 30_000),
            "rebalance_timeout_ms": given.get("rebalance", 60_000),
            "member_id": player.member_id,
            "protocol_type": "consumer",
            "protocols": [
                {"name": name, "metadata": self._subscription(given, player)}
                for name in given.get("protocols", ("range",))
            ],
        }
        if turn.version >= 5:
            fields["group_instance_id"] = player.instance
        return "JoinGroup", fields

    def _subscription(self, given: dict[str, Any], player: Player) -> bytes:
        """``own_id``: of a member of a consumer group, which reads what it is told to."""
        if "own_id" not in given:
            return SUBSCRIPTION
        owned = player.told if given.get("owns") == "told" else player.owned if given.get("owns") else None
        return subscription_of(f"{self.prefix}t", owned)

    def _identity(self, turn: Turn, player: Player) -> dict[str, Any]:
        """``delta`` is added to its generation, ``id_of`` has another's id."""
        owner = self.players[turn.options.get("id_of", turn.who)]
        generation = player.generation + turn.options.get("delta", 0)
        return {"member_id": owner.member_id, "generation_id": generation}

    def _instance(self, turn: Turn, player: Player, since: int) -> dict[str, Any]:
        return {"group_instance_id": player.instance} if turn.version >= since else {}

    def _sync(self, turn: Turn, player: Player) -> tuple[str, dict[str, Any]]:
        fields = {
            "group_id": GROUP,
            **self._identity(turn, player),
            **self._instance(turn, player, 3),
            "assignments": [
                {"member_id": each, "assignment": self._assignment(turn, i, each)}
                for i, each in enumerate(sorted(player.members))
            ],
        }
        if turn.version >= 5:
            fields |= {"protocol_type": "consumer", "protocol_name": player.protocol}
        return "SyncGroup", fields

    def _assignment(self, turn: Turn, place: int, member_id: str) -> bytes:
        """``real``: partitions of the topic, one for each of the first two members."""
        if not turn.options.get("real"):
            return f"to {member_id}".encode()
        return assignment_of(f"{self.prefix}t", [place] if place < 2 else [])

    def _heartbeat(self, turn: Turn, player: Player) -> tuple[str, dict[str, Any]]:
        return "Heartbeat", {
            "group_id": GROUP, **self._identity(turn, player), **self._instance(turn, player, 3)
        }  # fmt: skip

    def _leave(self, turn: Turn, player: Player) -> tuple[str, dict[str, Any]]:
        """``names``: several, by their ids; ``instances``: by these alone."""
        if turn.version < 3:
            return "LeaveGroup", {"group_id": GROUP, "member_id": player.member_id}
        leaving = [self.players[name] for name in turn.options.get("names", (turn.who,))]
        members = [
            {"member_id": each.member_id, "group_instance_id": each.instance} for each in leaving
        ] + [
            {"member_id": "", "group_instance_id": each} for each in turn.options.get("instances", ())
        ]  # fmt: skip
        return "LeaveGroup", {"group_id": GROUP, "members": members}

    def _commit(self, turn: Turn, player: Player) -> tuple[str, dict[str, Any]]:
        identity = self._identity(turn, player)
        given = turn.options
        part = {"partition_index": given.get("partition", 0), "committed_offset": given.get("offset", 1)}
        return "OffsetCommit", {
            "group_id": GROUP,
            "member_id": identity["member_id"],
            "generation_id_or_member_epoch": identity["generation_id"],
            **self._instance(turn, player, 7),
            "topics": [{"name": "~t", "partitions": [part]}],
        }

    def _committed(self, turn: Turn, player: Player) -> tuple[str, dict[str, Any]]:
        topics = [{"name": "~t", "partition_indexes": [0, 1]}]
        return "OffsetFetch", {"groups": [{"group_id": GROUP, "topics": topics}]}

    def _describe(self, turn: Turn, player: Player) -> tuple[str, dict[str, Any]]:
        return "DescribeGroups", {"groups": [GROUP]}

    def _delete(self, turn: Turn, player: Player) -> tuple[str, dict[str, Any]]:
        return "DeleteGroups", {"groups_names": [GROUP]}
