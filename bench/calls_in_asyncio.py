"""`python -m bench.calls_in_asyncio STATE_FILE DATA_FILE` is `bench/c/transaction_calls.c` on asyncio: the
same requests, writes, syncs and answers, in the thread of the loop. It parses and decides nothing. Prints
its address; ends when the client closes the connection."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import cast

STATE_BYTES, DATA_BYTES, MARKER_BYTES, ANSWER = 110, 170, 78, bytes(40)
FRAME_BYTES = 512


class Log:
    """A file that grows."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self._size = 0

    def append(self, size: int) -> None:
        self._size += os.pwrite(self._file, bytes(size), self._size)

    def sync(self) -> None:
        os.fdatasync(self._file)


class Calls(asyncio.BufferedProtocol):
    """One connection; a request is one byte and padding, see the program in C."""

    def __init__(self, state: Log, data: Log, closed: asyncio.Future[None]) -> None:
        self._state, self._data, self._closed = state, data, closed
        self._buffer = bytearray(FRAME_BYTES)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        request, log = self._buffer[:1], self._state
        if request == b"p":
            self._data.append(DATA_BYTES)
            log = self._data
        else:
            self._state.append(STATE_BYTES)
        log.sync()
        if request == b"e":
            self._data.append(MARKER_BYTES)
        self._transport.write(ANSWER)
        if request == b"e":
            self._data.sync()
            self._state.append(STATE_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set_result(None)


async def serve() -> None:
    loop = asyncio.get_running_loop()
    closed = loop.create_future()
    state, data = map(Log, sys.argv[1:])
    server = await loop.create_server(lambda: Calls(state, data, closed), "127.0.0.1", 0)
    print(f"listening on 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await closed


if __name__ == "__main__":
    asyncio.run(serve())
