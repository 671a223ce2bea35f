"""Requests as bytes: batches that no client would send, and end markers, which only coordinators send."""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

from txnkafka import TopicPartition

__all__ = ["Produced", "Wire"]

PRODUCE, WRITE_TXN_MARKERS = 0, 27
SECONDS = 30


class Produced(NamedTuple):
    """What a broker answers to a batch."""

    code: int
    first_offset: int


class Wire:
    """A connection to the one broker."""

    def __init__(self, bootstrap_servers: str) -> None:
        host, port = bootstrap_servers.split(":")
        self._socket = socket.create_connection((host, int(port)), SECONDS)
        self._correlation_id = 0

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def produce(
        self, partition: TopicPartition, batch: bytes, *, transactional_id: str | None = None
    ) -> Produced:
        """Produce, version 8: one batch for one partition, acknowledged."""
        body = _string(transactional_id) + struct.pack(">hii", -1, 1000 * SECONDS, 1)
        body += _string(partition.topic) + struct.pack(">iii", 1, partition.partition, len(batch)) + batch
        answer = self._ask(struct.pack(">hh", PRODUCE, 8), b"", body)
        # one topic, its name, one partition, its number
        return Produced(*struct.unpack_from(">hq", answer, 4 + 2 + len(partition.topic) + 4 + 4))

    def write_marker(
        self,
        partition: TopicPartition,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
    ) -> int:
        """WriteTxnMarkers, version 1: one marker for one partition; the error code."""
        topic = partition.topic.encode()
        body = b"\2" + struct.pack(">qhb", producer_id, producer_epoch, commit)
        body += b"\2" + bytes([len(topic) + 1]) + topic + b"\2" + struct.pack(">i", partition.partition)
        body += b"\0" + struct.pack(">i", coordinator_epoch) + b"\0\0"
        answer = self._ask(struct.pack(">hh", WRITE_TXN_MARKERS, 1), b"\0", body)
        # tags, one marker, its producer, one topic, its name, one partition, its number
        code: int = struct.unpack_from(">h", answer, 1 + 1 + 8 + 1 + 1 + len(topic) + 1 + 4)[0]
        return code

    def _ask(self, api: bytes, tags: bytes, body: bytes) -> bytes:
        self._correlation_id += 1
        request = api + struct.pack(">i", self._correlation_id) + _string("conformance") + tags + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", self._receive(4))
        answer = self._receive(size)
        assert struct.unpack_from(">i", answer) == (self._correlation_id,)
        return answer[4:]

    def _receive(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = self._socket.recv(size - len(found))
            if not part:
                raise ConnectionError("the broker has closed the connection")
            found += part
        return found


def _string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    return struct.pack(">h", len(text.encode())) + text.encode()
