"""A broker in memory that is asked in bytes, through the session of a connection."""

from __future__ import annotations

from tests.side_by_side.brokers import CONFIG
from tests.unit.broker.node import Node
from txnkafka.broker.config.broker_config import BrokerConfig
from txnkafka.errors import InvalidRequestError
from txnkafka.server.dispatch import Dispatcher
from txnkafka.server.fetch_sessions import FetchSessions
from txnkafka.server.handlers import SERVED
from txnkafka.server.peer import CloseConnection, Peer
from txnkafka.server.peer import Node as Address
from txnkafka.server.receive_buffer import BlockPool
from txnkafka.server.session import Request, Session

__all__ = ["MemorySide"]

MAX_FRAME_BYTES = 100 << 20
LONGEST_MS = 1000  # that a request waits


class MemorySide:
    """A ``Side`` without a socket: each request is answered when it is sent."""

    def __init__(self) -> None:
        config = BrokerConfig.of(CONFIG)
        names = (
            "transaction_state_log_num_partitions",
            "offsets_topic_num_partitions",
            "group_consumer_assignment_interval_ms",
            "group_initial_rebalance_delay_ms",
        )
        self._node = Node(**{name: getattr(config, name) for name in names})
        self._address = Address("localhost", 9092, FetchSessions())
        self._session: Session | None = self._connected()
        self._answers = bytearray()

    def _connected(self) -> Session:
        return Session(BlockPool(), MAX_FRAME_BYTES, SERVED)

    def now_ms(self) -> int:
        return self._node.now_ms

    def send(self, frame: bytes) -> None:
        if self._session is None:
            return
        try:
            self._receive(self._session, frame)
        except InvalidRequestError:
            self._session = None

    def _receive(self, session: Session, frame: bytes) -> None:
        while frame:
            space = session.space()
            count = min(len(space), len(frame))
            space[:count] = frame[:count]
            session.received(count)
            frame = frame[count:]
        while self._session is not None and (request := session.next_request()) is not None:
            self._answer(session, request)
        while self._session is not None and (buffers := session.next_buffers(8)):
            self._answers += buffers[0]
            session.sent(len(buffers[0]))

    def _answer(self, session: Session, request: Request) -> None:
        header = request.header

        def reply(response: object) -> None:
            if isinstance(response, CloseConnection):
                self._session = None
            else:
                session.respond(request, response)

        peer = Peer(self._address, header.client_id, "127.0.0.1")
        dispatcher = Dispatcher(self._node.broker, self.now_ms)
        dispatcher.call(header.api, header.api_version, request.message, peer, reply)
        self._node.settle()
        self._node.wait(0)  # what is due behind a request
        if self._session is not None and not request.is_answered:
            self._node.wait(LONGEST_MS)

    def receive(self) -> bytes | None:
        if len(self._answers) < 4:
            self._session = self._connected()
            return None
        end = 4 + int.from_bytes(self._answers[:4], "big")
        answer, self._answers = bytes(self._answers[4:end]), self._answers[end:]
        return answer
