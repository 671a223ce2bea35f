"""The target for connections: bytes as they come from a socket, in any pieces, to a session with a broker in
memory behind it.

Nothing raises but InvalidRequestError of the session, which ends the connection. Answers come in the order of
the requests, at most one each, and each can be read in its version; only Produce with acks 0 has none. Memory
is bounded by what came, and the broker serves the next connection as before.

An input is a seed for the pieces (4 bytes), and the stream.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from typing import Any

from tests.fuzz.engine import Target, require
from tests.fuzz.mutations import change_bytes, put_number, resize_bytes
from tests.unit.broker.node import Node, batch_of
from tests.unit.wire.messages.kafka_apis import Message
from tests.unit.wire.messages.values import random_message
from txnkafka.errors import InvalidRequestError
from txnkafka.server import receive_buffer
from txnkafka.server.dispatch import Dispatcher
from txnkafka.server.fetch_sessions import FetchSessions
from txnkafka.server.handlers import SERVED
from txnkafka.server.peer import CloseConnection, Peer
from txnkafka.server.peer import Node as Address
from txnkafka.server.receive_buffer import BLOCK_SIZE, BlockPool
from txnkafka.server.session import Session
from txnkafka.wire.messages import APIS, RequestHeader, read_response, write_request
from txnkafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from txnkafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from txnkafka.wire.messages.init_producer_id import InitProducerIdRequest
from txnkafka.wire.messages.metadata import MetadataRequest
from txnkafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

__all__ = ["SESSION", "session_seeds"]

receive_buffer.COPIED_SIZE = 64  # type: ignore[misc]  # small inputs have frames of both kinds
SEED_BYTES = 4
MOST_FRAME_BYTES = 1 << 20
MOST_REQUESTS = 200  # of one input: the rest is another input
LONGEST_SECONDS = 20.0  # of processor time for one input
LONGEST_WAIT_MS = 1 << 32  # beyond every wait of a request
BY_NAME = {api.name: api for api in APIS.values()}


class Served:
    """The broker of all inputs of a process, as a server has one; now and then a new one."""

    def __init__(self) -> None:
        self._uses = 0
        self.node = Node()
        self.sessions = FetchSessions(10)

    def broker(self) -> Node:
        self._uses += 1
        if self._uses == 1 or self._uses % 50 == 0:
            self.node = Node(
                transaction_state_log_num_partitions=1, offsets_topic_num_partitions=1,
                socket_request_max_bytes=MOST_FRAME_BYTES,
            )  # fmt: skip
            self.sessions = FetchSessions(10)
            self.node.create("t", 2)
            self.node.append(batch_of(b"a"))
        return self.node


SERVING = Served()


class Connection:
    """One connection: what ``tcp.Connection`` does, without a socket."""

    def __init__(self, node: Node, sessions: FetchSessions) -> None:
        self.session = Session(BlockPool(), MOST_FRAME_BYTES, SERVED)
        self.sent = bytearray()
        self.is_closed = False
        self.requests: list[Any] = []  # headers, in the order in which they came
        self.with_answer: list[bool] = []
        self._received = 0
        self._node, self._address = node, Address("localhost", 9092, sessions)

    def receive(self, data: bytes) -> None:
        """Bytes as they come, at once as many as there is room for."""
        position = 0
        while position < len(data) and not self.is_closed:
            space = self.session.space()
            require(len(space) > 0, "there is no room for bytes")
            count = min(len(space), len(data) - position)
            space[:count] = data[position : position + count]
            position += count
            self._received += count
            self.session.received(count)
            allocated = self.session._received.allocated
            require(allocated <= max(BLOCK_SIZE, 4 * self._received), f"{allocated} bytes are allocated")
            self.serve()

    def serve(self) -> None:
        """Serve what has come; where the session is saturated, the broker goes on first."""
        try:
            while not self.is_closed and len(self.requests) < MOST_REQUESTS:
                request = self.session.next_request()
                if request is not None:
                    self._dispatch(request)
                elif self.session.is_saturated:
                    self._go_on()
                else:
                    return
        except InvalidRequestError:
            self.is_closed = True

    def _dispatch(self, request: Any) -> None:
        header = request.header
        number = len(self.requests)
        self.requests.append(header)
        self.with_answer.append(False)
        Dispatcher(self._node.broker, lambda: self._node.now_ms).call(
            header.api, header.api_version, request.message, Peer(self._address, header.client_id),
            partial(self._reply, request, number),
        )  # fmt: skip

    def _reply(self, request: Any, number: int, response: Any) -> None:
        if isinstance(response, CloseConnection):
            self.is_closed = True
            return
        require(not request.is_answered, f"two answers to {request.header}")
        self.session.respond(request, response)
        self.with_answer[number] = response is not None
        require(
            response is not None or request.header.api.name == "Produce", f"no answer to {request.header}"
        )

    def _go_on(self) -> None:
        self._take()
        self._node.settle()
        self._take()
        if self.session.is_saturated:
            self._node.wait(LONGEST_WAIT_MS)
            self._take()
        require(not self.session.is_saturated or self.is_closed, "a request is never answered")

    def _take(self) -> None:
        """The client takes all answers."""
        while buffers := self.session.next_buffers(100):
            for buffer in buffers:
                self.sent += buffer
            self.session.sent(sum(map(len, buffers)))

    def end(self) -> None:
        """All requests are answered, in time."""
        self._node.settle()
        self._node.wait(LONGEST_WAIT_MS)
        self._take()
        if not self.is_closed:
            require(not self.session._unanswered, "a request is not answered")
            require(not self.session.unsent_bytes, "an answer is not sent")
        self.session.close()

    def check(self) -> int:
        """Answers are frames, in the order of the requests that have one; returns their number."""
        position = count = 0
        headers = list(itertools.compress(self.requests, self.with_answer))
        while position < len(self.sent):
            size = int.from_bytes(self.sent[position : position + 4], "big")
            frame = bytes(self.sent[position + 4 : position + 4 + size])
            require(len(frame) == size, "an answer is cut")
            header = headers[count]
            version = header.api_version if header.api.has(header.api_version) else 0
            correlation_id, _ = read_response(header.api, version, frame)
            require(correlation_id == header.correlation_id, f"answer {count} is not that to {header}")
            position, count = position + 4 + size, count + 1
        require(self.is_closed or count == len(headers), "answers are missing")
        return count


def check_session(content: bytes) -> str:
    """Feed the stream in pieces."""
    random, stream = Random(content[:SEED_BYTES]), content[SEED_BYTES:]
    node = SERVING.broker()
    connection = Connection(node, SERVING.sessions)
    begin, position = time.process_time(), 0
    while position < len(stream) and not connection.is_closed:
        size = random.choice((1, 3, 4, 20, 100, 1000, 1 << 20))
        connection.receive(stream[position : position + size])
        position += size
        if random.random() < 0.2:
            node.settle()
    connection.end()
    require(time.process_time() - begin < LONGEST_SECONDS, "an input takes too long")
    count = connection.check()
    if "t" in node.broker.image.topics:
        require(node.append(batch_of(b"a")).error in (0, 7), "the broker does not serve any more")
    kind = "closed" if connection.is_closed else "served"
    names = sorted({f"{header.api.name} {header.api_version}" for header in connection.requests})
    return f"{kind}: {min(count, 9)} answers, {' '.join(names)[:120]}"


def mutate_session(random: Random, content: bytes, pool: Sequence[bytes]) -> bytes:
    """Frames are repeated, left out, put together with others, or changed inside, their sizes mostly kept."""
    seed, frames = content[:SEED_BYTES], list(_frames(content[SEED_BYTES:]))
    choice = random.random()
    if choice < 0.1 or not frames:
        return random.randbytes(SEED_BYTES) + resize_bytes(random, content[SEED_BYTES:])
    number = random.randrange(len(frames))
    if choice < 0.25:
        other = list(_frames(random.choice(pool)[SEED_BYTES:]))
        frames[number:number] = other[:8]
    elif choice < 0.35:
        frames.insert(random.randrange(len(frames) + 1), frames[number])
    elif choice < 0.4:
        del frames[number]
    elif choice < 0.6:
        frames[number] = _random_frame(random)
    elif choice < 0.7:  # a version, an API, a correlation id
        frames[number] = put_number(random, frames[number], (random.choice((4, 6, 8)), 2))
    else:
        body = (change_bytes if choice < 0.85 else resize_bytes)(random, frames[number][4:])
        frames[number] = len(body).to_bytes(4, "big") + body
    return seed + b"".join(frames)


def _frames(stream: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(stream):
        size = int.from_bytes(stream[position : position + 4], "big")
        yield stream[position : position + 4 + size]
        position += 4 + size


def _random_frame(random: Random) -> bytes:
    """A request of any API that is served, in any version, with any values."""
    api = APIS[random.choice(sorted(SERVED))]
    version = random.randint(api.min_version, api.max_version)
    message = random_message(Message(api, "Request", version), random.randrange(1000))
    return _frame(api.name, version, message, random.randrange(1 << 16))


def _frame(name: str, version: int, message: Any, correlation_id: int = 7) -> bytes:
    header = RequestHeader(BY_NAME[name], version, correlation_id, "fuzz")
    return b"".join(map(bytes, write_request(header, message)))


def session_seeds() -> Iterator[tuple[str, bytes]]:
    """What clients do, and each API that is served, sparse and full."""
    data = PartitionProduceData(index=0, records=bytes(batch_of(b"a", b"b")))
    topic = TopicProduceData(name="t", partition_data=(data,))
    produce = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(topic,))
    fetch = FetchRequest(
        max_wait_ms=100, min_bytes=1, max_bytes=1 << 20,
        topics=(FetchTopic(topic="t", partitions=(FetchPartition(partition_max_bytes=1000),)),),
    )  # fmt: skip
    create = CreateTopicsRequest(topics=(CreatableTopic(name="u", num_partitions=1, replication_factor=1),))
    client = [
        _frame("Metadata", 9, MetadataRequest(topics=None), 1),
        _frame("InitProducerId", 4, InitProducerIdRequest(transaction_timeout_ms=1000), 2),
        _frame("Produce", 9, produce, 3),
        _frame("Fetch", 12, fetch, 4),
        _frame("CreateTopics", 7, create, 5),
        _frame("Fetch", 4, fetch, 6),
        _frame("Produce", 3, produce, 7),
    ]
    yield "client", b"seed" + b"".join(client)
    yield "pipelined", b"more" + client[2] * 20 + client[3] * 3
    for key in sorted(SERVED):
        api = APIS[key]
        for number in (0, 2):
            message = random_message(Message(api, "Request", api.max_version), number)
            frame = _frame(api.name, api.max_version, message)
            yield f"{api.module}-{number}", b"seed" + frame + client[0]


SESSION = Target("session", check_session, mutate_session, needed=("served", "closed"), iterations=600)
