"""A broker in memory behind its handlers: each request and answer goes through bytes in its version."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.node import Node, Producer
from txnkafka.error_codes import ErrorCode
from txnkafka.server.dispatch import Dispatcher
from txnkafka.server.fetch_sessions import FetchSessions
from txnkafka.server.listeners import Endpoint
from txnkafka.server.peer import CloseConnection, Peer
from txnkafka.server.peer import Node as Address
from txnkafka.wire.messages import (
    APIS,
    RequestHeader,
    read_request,
    read_request_header,
    read_response,
    write_request,
    write_response,
)

__all__ = ["BY_NAME", "WireNode", "node", "topic_id", "transactional", "versions"]

BY_NAME = {api.name: api for api in APIS.values()}


class WireNode(Node):
    """A node whose clients send messages."""

    def __init__(self, *arguments: Any, **configs: Any) -> None:
        self.sessions = FetchSessions()
        super().__init__(*arguments, **configs)

    def ask(self, name: str, version: int, **fields: Any) -> Any:
        """The answer when everything is durable."""
        (answer,) = self.ask_all((name, version, fields))
        return answer

    def ask_all(self, *requests: tuple[str, int, dict[str, Any]]) -> list[Any]:
        """The answers of requests that come before anything is flushed; None of one that is not answered."""
        answers: list[Any] = [None] * len(requests)
        for i, (name, version, fields) in enumerate(requests):
            self.send(name, version, fields, lambda answer, i=i: answers.__setitem__(i, answer))
        self.settle()
        return answers

    def send(self, name: str, version: int, fields: dict[str, Any], call: Any) -> Any:
        """Hand one request to its handler; ``call`` gets the answer as the client reads it."""
        api = BY_NAME[name]
        header = RequestHeader(api, version, 7, "test")
        frame = b"".join(map(bytes, write_request(header, api.request(**fields))))[4:]
        read, position = read_request_header(frame)

        def reply(response: Any) -> None:
            if response is None or isinstance(response, CloseConnection):
                call(response)
                return
            out = b"".join(map(bytes, write_response(api, version, 7, response)))
            correlation_id, message = read_response(api, version, out[4:])
            assert correlation_id == 7
            call(message)

        endpoints = [Endpoint("PLAINTEXT", "localhost", 9092)]
        address = Address("localhost", 9092, self.sessions, endpoints=endpoints)
        dispatcher = Dispatcher(self.broker, lambda: self.now_ms)
        peer = Peer(address, "test", "localhost")
        return dispatcher.call(api, version, read_request(read, frame, position), peer, reply)


def versions(name: str) -> Any:
    api = BY_NAME[name]
    return pytest.mark.parametrize("version", range(api.min_version, api.announced[1] + 1))


def node(partitions: int = 1, **configs: Any) -> WireNode:
    made = WireNode(**configs)
    assert made.create("t", partitions) == ErrorCode.NONE
    return made


def topic_id(of: WireNode) -> str:
    return of.broker.image.topics["t"].topic_id


def transactional(transactional_id: str = "x", **configs: Any) -> tuple[WireNode, Producer]:
    made = node(**configs)
    return made, Producer(made, transactional_id)
