"""A file on a remote file system: one window in memory while the next one is fetched."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

Fetch = Callable[[int, int], "Future[bytes]"]


class _Piece(NamedTuple):
    """Bytes [start, end) of the file, in memory or being fetched."""

    start: int
    end: int
    content: Future[bytes]


class RemoteFile:
    """A file read from front to back in windows, which may overlap; each byte is fetched once.

    Only the bytes of the last read and of ``read_ahead`` are kept in memory."""

    def __init__(self, fetch: Fetch, size: int) -> None:
        self._fetch = fetch
        self._size = size
        self._pieces: list[_Piece] = []  # contiguous

    def size(self) -> int:
        return self._size

    def read_into(self, buffer: memoryview, position: int) -> int:
        end = min(position + len(buffer), self._size)
        if end <= position:
            return 0
        self._keep_from(position)
        self._fetch_to(position, end)
        try:
            for piece in self._pieces:
                first, last = max(piece.start, position), min(piece.end, end)
                if first < last:
                    content = memoryview(piece.content.result())[first - piece.start : last - piece.start]
                    buffer[first - position : last - position] = content
        except OSError:
            self._pieces = []  # fetch again on the next attempt
            raise
        return end - position

    def read_ahead(self, position: int, length: int) -> None:
        if length <= 0:
            self._pieces = []
        elif self._pieces and self._pieces[-1].end >= position:
            self._fetch_to(position, min(position + length, self._size))

    def map(self, size: int) -> None:
        return None

    def close(self) -> None:
        self._pieces = []

    def _keep_from(self, position: int) -> None:
        pieces = [piece for piece in self._pieces if piece.end > position]
        self._pieces = pieces if pieces and pieces[0].start <= position else []

    def _fetch_to(self, position: int, end: int) -> None:
        start = self._pieces[-1].end if self._pieces else position
        if start < end:
            self._pieces.append(_Piece(start, end, self._fetch(start, end)))
