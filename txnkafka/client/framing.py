"""Frames of responses: the bytes of a connection, without its socket.

A frame that is complete is never changed: responses have views into it. A frame larger than some megabytes
gets memory that doubles as its bytes arrive, so that a size alone, which any peer can send, allocates little.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from txnkafka.errors import InvalidRequestError

_SIZE: Final = Struct(">i")
_BUFFER: Final = 64 << 10
_AT_ONCE: Final = 2 << 20  # more than the response to a Fetch of one partition
MAX_FRAME_BYTES: Final = 1 << 30  # an HTTP server announces more


class FrameReader:
    """The received bytes of a connection. ``place`` names the peer in errors."""

    def __init__(self, place: str, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._place = place
        self._max_frame_bytes = max_frame_bytes
        self._buffer = bytearray(_BUFFER)
        self._start = self._end = 0

    def space(self) -> memoryview:
        """Return memory for the next bytes, at least one byte."""
        return memoryview(self._buffer)[self._end :]

    def received(self, count: int) -> list[memoryview]:
        """Return the frames that are complete with the next ``count`` bytes of ``space``, without their size
        prefix. Raises InvalidRequestError for an invalid size."""
        self._end += count
        frames = []
        while (wanted := self._wanted()) <= self._end - self._start:
            begin, self._start = self._start + _SIZE.size, self._start + wanted
            if begin == _SIZE.size and self._start == self._end == len(self._buffer):
                frames.append(memoryview(self._buffer)[begin:])
                self._buffer, self._start, self._end = bytearray(_BUFFER), 0, 0
            else:
                frames.append(memoryview(bytes(memoryview(self._buffer)[begin : self._start])))
        self._make_room(wanted)
        return frames

    def _wanted(self) -> int:
        """Return the bytes of the next frame with its size prefix; of the prefix while the size is
        unknown."""
        if self._end - self._start < _SIZE.size:
            return _SIZE.size
        (size,) = _SIZE.unpack_from(self._buffer, self._start)
        if not 0 <= size <= self._max_frame_bytes:
            raise InvalidRequestError(
                f"{self._place} announced a response of {size} bytes: check that it is a listener of a Kafka "
                "broker, and not encrypted"
            )
        return _SIZE.size + int(size)

    def _make_room(self, wanted: int) -> None:
        """Move an incomplete frame to the beginning of a buffer of its size, or of twice its bytes."""
        have = self._end - self._start
        if self._start == 0 and self._end < len(self._buffer) and wanted >= len(self._buffer):
            return  # the frame fills a separate buffer
        room = max(_BUFFER, min(wanted, max(2 * have, _AT_ONCE)))
        if self._start == 0 and room == len(self._buffer) and have < room:
            return
        buffer = bytearray(room)
        buffer[:have] = memoryview(self._buffer)[self._start : self._end]
        self._buffer, self._start, self._end = buffer, 0, have
