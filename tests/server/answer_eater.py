"""Connections between clients and a broker on which one answer or request is lost, and then everything for a
while."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from typing import Self

__all__ = ["AnswerEater"]

PRODUCE = b"\0\0"


class AnswerEater:
    """Forwards what clients send to ``address`` to a broker, and its answers, in which ``address`` replaces
    the broker's own. After ``arm``, the next Produce request reaches the broker and its answer is dropped:
    ``eaten`` is set, all connections end, and new ones are closed at once until ``let_pass``. After
    ``arm_request``, the same happens before the request reaches the broker."""

    def __init__(self, broker: str) -> None:
        host, _, port = broker.partition(":")
        self._host, self._port = host, int(port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.eaten = threading.Event()
        self._armed, self._refusing = threading.Event(), threading.Event()
        self._eats_request = False
        self._theirs, self._ours = _address(broker), _address(self.address)
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._cut()

    def arm(self) -> None:
        """Drop the next answer to a Produce request."""
        self._armed.set()

    def arm_request(self) -> None:
        """Drop the next Produce request."""
        self._eats_request = True
        self._armed.set()

    def let_pass(self) -> None:
        """Forward again, on new connections."""
        self._refusing.clear()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listening.accept()[0]
                if self._refusing.is_set():
                    client.close()
                    continue
                broker = socket.create_connection((self._host, self._port))
                self._open += client, broker
                doomed: set[bytes] = set()
                threading.Thread(target=self._requests, args=(client, broker, doomed), daemon=True).start()
                threading.Thread(target=self._answers, args=(broker, client, doomed), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket, doomed: set[bytes]) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                frame = _frame(client)
                api_key, correlation_id = frame[4:6], frame[8:12]
                if self._armed.is_set() and api_key == PRODUCE:
                    self._armed.clear()
                    if self._eats_request:
                        self._refusing.set()
                        self._cut()
                        self.eaten.set()
                        return
                    doomed.add(correlation_id)
                broker.sendall(frame)

    def _answers(self, broker: socket.socket, client: socket.socket, doomed: set[bytes]) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                frame = _frame(broker)
                if frame[4:8] in doomed:
                    self._refusing.set()
                    self._cut()
                    time.sleep(0.1)  # the client puts its messages back, to try again
                    self.eaten.set()
                client.sendall(frame.replace(self._theirs, self._ours))

    def _cut(self) -> None:
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()


def _address(text: str) -> bytes:
    """Host and port as they stand in answers, after the length of the host."""
    host, _, port = text.partition(":")
    return host.encode() + struct.pack(">i", int(port))


def _frame(connection: socket.socket) -> bytes:
    size = _exactly(connection, 4)
    return size + _exactly(connection, struct.unpack(">i", size)[0])


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            raise EOFError
        found += more
    return found
