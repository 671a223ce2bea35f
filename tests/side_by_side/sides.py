"""A broker that is asked over a connection."""

from __future__ import annotations

import select
import socket
import struct
import time
from contextlib import suppress
from typing import Any, Protocol

from tests.side_by_side.messages import BY_NAME, Request, answer_of, frame_of
from tests.side_by_side.naming import Naming

__all__ = ["CLOSED", "NOTHING", "Conversation", "Side", "TcpSide"]

SECONDS = 60
CLOSED = {"the connection": "closed"}
NOTHING = {"the answer": "none"}


class Side(Protocol):
    """One connection; it is opened again when the broker closes it."""

    def send(self, frame: bytes) -> None:
        """Send a request with its size."""

    def receive(self) -> bytes | None:
        """The next answer without its size; None when the broker closes the connection."""

    def now_ms(self) -> int:
        """The time of the broker."""


class TcpSide:
    """A broker at ``host:port``."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.address = address
        self._address = host, int(port)
        self._socket = self._connected()

    def _connected(self) -> socket.socket:
        connection = socket.create_connection(self._address, SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def send(self, frame: bytes) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # receive() says so
            self._socket.sendall(frame)

    def receive(self) -> bytes | None:
        size = self._read(4)
        frame = None if size is None else self._read(struct.unpack(">i", size)[0])
        if frame is None:
            self.connect()
        return frame

    def _read(self, size: int) -> bytes | None:
        found = bytearray()
        while len(found) < size:
            try:
                part = self._socket.recv(size - len(found))
            except ConnectionResetError:
                return None
            if not part:
                return None
            found += part
        return bytes(found)

    def has_answer(self) -> bool:
        """Whether something has come that was not received yet, or the connection was closed."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def another(self) -> TcpSide:
        """Another connection to the same broker."""
        return TcpSide(self.address)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def connect(self) -> None:
        """Connect again: the broker was restarted."""
        self._socket.close()
        self._socket = self._connected()

    def close(self) -> None:
        self._socket.close()


class Conversation:
    """Requests to one side, and its answers as data."""

    def __init__(self, side: Side, prefix: str) -> None:
        self.side = side
        self.naming = Naming(prefix, side.now_ms())
        self._sent: list[tuple[Request, int]] = []
        self._number = 0

    def send(self, request: Request) -> None:
        """Send a request, and with one that has no answer another one that has."""
        self._number += 1
        self.side.send(frame_of(request, self._number, self.naming))
        if not request.has_answer:
            self.side.send(frame_of(_PROBE, self._number, self.naming))

    def receive(self, request: Request) -> dict[str, Any]:
        """The answer to the request that was sent last."""
        frame = self.side.receive()
        if frame is None:
            return CLOSED
        if not request.has_answer:
            return NOTHING
        return answer_of(BY_NAME[request.api], request.version, frame, self.naming)

    def ask(self, request: Request) -> dict[str, Any]:
        self.send(request)
        return self.receive(request)


_PROBE = Request("ApiVersions", 0, {})
