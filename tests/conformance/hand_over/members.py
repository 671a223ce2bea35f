"""Consumer groups (KIP-848): members, epochs, partitions and patterns stay as they are, and no group is
assigned anew, because the hash of its topics stays the same."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.conformance.hand_over.owners import Owned
from tests.side_by_side.messages import Request
from tests.side_by_side.sides import Conversation, TcpSide

__all__ = ["SETTINGS", "TOPICS", "Members"]

SECONDS = 60
TOPICS = ("one:1", "three:3", "many:70")
NAMES = [topic.split(":")[0] for topic in TOPICS]
SETTINGS = {"group.consumer.assignment.interval.ms": "0", "group.consumer.session.timeout.ms": "60000"}
LOADING = {"14", "15", "16"}  # error codes of a coordinator that starts


class Client:
    """Members on one broker; ``epochs`` by group and member."""

    def __init__(self, address: str, epochs: dict[tuple[str, str], int]) -> None:
        self._side = TcpSide(address)
        self._conversation = Conversation(self._side, "")
        self.epochs = epochs

    def ask(self, api: str, version: int, **fields: Any) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while True:
            answer = self._conversation.ask(Request(api, version, fields))
            if not _is_loading(answer):
                return answer
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)

    def join(self, group: str, member: str, **changes: Any) -> None:
        everything = {"rebalance_timeout_ms": 60_000, "topic_partitions": [], "subscribed_topic_names": NAMES}
        self._beat(group, member, 0, **{**everything, **changes})

    def _beat(self, group: str, member: str, epoch: int, **fields: Any) -> None:
        named = {"group_id": group, "member_id": member, "member_epoch": epoch}
        answer = self.ask("ConsumerGroupHeartbeat", 1, **named, **fields)
        assert "error_code" not in answer, answer
        self.epochs[group, member] = answer["member_epoch"]

    def settle(self) -> None:
        """Send heartbeats without owned partitions, until nothing is left to revoke."""
        for _ in range(3):
            for group, member in list(self.epochs):
                self._beat(group, member, self.epochs[group, member], topic_partitions=[])

    def described(self) -> list[Any]:
        """All groups, in an order of its own."""
        groups = sorted({group for group, _ in self.epochs})
        found = self.ask("ConsumerGroupDescribe", 1, group_ids=groups)["groups"]
        return sorted((_sorted(each) for each in found), key=str)

    def offset(self, group: str) -> int:
        topic = {"name": "one", "partition_indexes": [0]}
        asked = {"group_id": group, "topics": [topic]}
        found = self.ask("OffsetFetch", 9, groups=[asked])["groups"][0]["topics"][0]["partitions"][0]
        return int(found["committed_offset"])

    def commit(self, group: str, member: str, offset: int) -> None:
        part = {"partition_index": 0, "committed_offset": offset}
        identity = {"member_id": member, "generation_id_or_member_epoch": self.epochs[group, member]}
        topics = [{"name": "one", "partitions": [part]}]
        answer = self.ask("OffsetCommit", 9, group_id=group, topics=topics, **identity)
        assert "error_code" not in str(answer), answer

    def close(self) -> None:
        self._side.close()


def _is_loading(answer: dict[str, Any]) -> bool:
    return any(f"'error_code': {code}" in str(answer) for code in LOADING)


def _sorted(value: Any) -> Any:
    """Without the ids of topics, which a conversation numbers as they come; their names are there."""
    if isinstance(value, dict):
        return {name: _sorted(each) for name, each in value.items() if name != "topic_id"}
    return sorted(map(_sorted, value), key=str) if isinstance(value, list) else value


@contextmanager
def client(address: str, epochs: dict[tuple[str, str], int]) -> Iterator[Client]:
    found = Client(address, epochs)
    try:
        found.ask("FindCoordinator", 2, key="g", key_type=0)
        yield found
    finally:
        found.close()


class Members:
    """The item of this file: two groups of the first owner, and one of each further owner."""

    def __init__(self) -> None:
        self._epochs: dict[tuple[str, str], int] = {}
        self._described: list[Any] = []
        self._offsets: dict[str, int] = {}

    def check(self, owned: Owned, turn: int) -> None:
        """Compare members, assignments, epochs and offsets; a new member raises the epoch by one."""
        with client(owned.address, self._epochs) as of:
            assert of.described() == self._described
            told = dict(self._epochs)
            of.settle()
            assert self._epochs == told
            assert {group: of.offset(group) for group in self._offsets} == self._offsets
            if turn > 1:
                group = f"group {turn - 1}"
                of.join(group, "f", subscribed_topic_names=["one"])
                assert self._epochs[group, "f"] == told[group, "e"] + 1

    def leave(self, owned: Owned, turn: int) -> None:
        """Let members join and commit."""
        with client(owned.address, self._epochs) as of:
            if turn == 0:
                of.join("names", "a")
                of.join("names", "b", instance_id="i", server_assignor="range")
                of.join("patterns", "c", subscribed_topic_names=None, subscribed_topic_regex="(one|th).*")
                time.sleep(0.5)
            else:
                of.join("names", f"member {turn}")
                of.join(f"group {turn}", "e", subscribed_topic_names=["one", "missing"])
            of.settle()
            group, member = ("names", "a") if turn == 0 else (f"group {turn}", "e")
            of.commit(group, member, 7 + turn)
            self._offsets[group] = 7 + turn
            self._described = of.described()
