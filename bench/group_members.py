"""Members of consumer groups without a client library: the requests of the classic protocol, each member on a
connection of its own, so that what is measured is the server."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from typing import Any

from bench.confluent import SECONDS
from bench.servers import Server
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.messages import APIS, RequestHeader, read_response, write_request
from txnkafka.wire.messages.join_group import JoinGroupRequestProtocol
from txnkafka.wire.messages.sync_group import SyncGroupRequestAssignment

__all__ = ["Connection", "Members", "ready"]

BY_NAME = {api.name: api for api in APIS.values()}
VERSIONS = {
    "FindCoordinator": 2,
    "JoinGroup": 3,
    "SyncGroup": 2,
    "Heartbeat": 2,
    "OffsetCommit": 5,
    "OffsetFetch": 5,
}
SESSION_MS = 60_000
METADATA = b"\0" * 60  # of a member that has subscribed to a topic or two: no broker reads it


class Connection:
    """Requests and their answers, in order."""

    def __init__(self, server: Server) -> None:
        host, _, port = server.bootstrap_servers.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb")

    def frame(self, name: str, **fields: Any) -> bytes:
        """The bytes of a request."""
        api = BY_NAME[name]
        header = RequestHeader(api, VERSIONS[name], 1, "bench")
        return b"".join(map(bytes, write_request(header, api.request(**fields))))

    def send(self, frames: bytes) -> None:
        """Send one or more requests."""
        self._socket.sendall(frames)

    def answer(self, name: str) -> Any:
        """The next answer."""
        return read_response(BY_NAME[name], VERSIONS[name], self.skip())[1]

    def skip(self) -> bytes:
        """The bytes of the next answer."""
        size = int.from_bytes(self._answers.read(4), "big")
        found = self._answers.read(size)
        if not size or len(found) < size:
            raise RuntimeError("the server has closed the connection")
        return found

    def ask(self, name: str, **fields: Any) -> Any:
        """Send a request, and wait for its answer."""
        self.send(self.frame(name, **fields))
        return self.answer(name)

    def close(self) -> None:
        """Disconnect."""
        self._answers.close()
        self._socket.close()


def ready(server: Server, group: str) -> Connection:
    """A connection to the coordinator of a group, when there is one. Raises RuntimeError after a while."""
    connection, deadline = Connection(server), time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = connection.ask("FindCoordinator", key=group, key_type=0)
        if found.error_code == ErrorCode.NONE:
            state = connection.ask("OffsetFetch", group_id=group, topics=())
            if state.error_code == ErrorCode.NONE:
                return connection
        time.sleep(0.02)
    raise RuntimeError(f"{server.name}: the group {group} has no coordinator")


class Members:
    """``count`` members of one group; the first is its leader, once there is one."""

    def __init__(self, server: Server, group: str, count: int) -> None:
        ready(server, group).close()
        self._group = group
        self._connections = [Connection(server) for _ in range(count)]
        self._ids = [""] * count
        self._generation = 0

    def rebalance(self) -> None:
        """All join again, and get their assignments: the leader's request begins it, the others come when a
        heartbeat has told one of them. The first call makes the group, and must find all of them within the
        broker's ``group.initial.rebalance.delay.ms``. Raises RuntimeError for an error of the coordinator."""
        for at, connection in enumerate(self._connections):
            connection.send(self._join(connection, self._ids[at]))
            if at == 0 and self._generation:
                self._await_rebalance()
        answers = [_checked(connection.answer("JoinGroup")) for connection in self._connections]
        self._ids = [answer.member_id for answer in answers]
        self._generation = answers[0].generation_id
        self._put_first(self._ids.index(answers[0].leader))
        for at in range(len(answers)):
            self._connections[at].send(self._sync(at, () if at else self._ids))
        for connection in self._connections:
            _checked(connection.answer("SyncGroup"))

    def _put_first(self, leader: int) -> None:
        for some in (self._connections, self._ids):
            some.insert(0, some.pop(leader))  # type: ignore[attr-defined]

    def _await_rebalance(self) -> None:
        deadline = time.monotonic() + SECONDS
        for connection, member_id in list(zip(self._connections, self._ids, strict=True))[1:2]:
            fields = {"group_id": self._group, "generation_id": self._generation, "member_id": member_id}
            while connection.ask("Heartbeat", **fields).error_code != ErrorCode.REBALANCE_IN_PROGRESS:
                if time.monotonic() > deadline:
                    raise RuntimeError("the leader has joined again, and the group does not rebalance")

    def heartbeats(self, each: int) -> None:
        """So many of each member, which does not wait for the answers to the ones before."""
        for at, connection in enumerate(self._connections):
            fields = {"group_id": self._group, "generation_id": self._generation, "member_id": self._ids[at]}
            connection.send(connection.frame("Heartbeat", **fields) * each)
        for connection in self._connections:
            for _ in range(each - 1):
                connection.skip()
            _checked(connection.answer("Heartbeat"))

    def _join(self, connection: Connection, member_id: str) -> bytes:
        return connection.frame(
            "JoinGroup", group_id=self._group, session_timeout_ms=SESSION_MS, rebalance_timeout_ms=SESSION_MS,
            member_id=member_id, protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=METADATA),),
        )  # fmt: skip

    def _sync(self, at: int, members: Sequence[str]) -> bytes:
        given = tuple(SyncGroupRequestAssignment(member_id=each, assignment=METADATA) for each in members)
        return self._connections[at].frame(
            "SyncGroup", group_id=self._group, generation_id=self._generation, member_id=self._ids[at],
            assignments=given,
        )  # fmt: skip

    def close(self) -> None:
        """Disconnect all."""
        for connection in self._connections:
            connection.close()


def _checked(answer: Any) -> Any:
    if answer.error_code != ErrorCode.NONE:
        raise RuntimeError(f"the coordinator answers {ErrorCode(answer.error_code).name}")
    return answer
