"""`python -m bench.produce_in_asyncio FILE` is `bench/c/produce_server.c` on asyncio: it reads frames, writes
their records to the file, and answers. It checks nothing, and serves Produce version 7 with one partition a
request. Prints its address; ends with SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from struct import Struct
from typing import cast

RECEIVE_BYTES = 256 << 10
INT16, INT32, INT64 = Struct(">h"), Struct(">i"), Struct(">q")
HEADER = 8  # API key, version, correlation id
RECORD_COUNT = 57  # where it is in a batch
ONE, NO_ERROR, NO_TIME, START_AND_THROTTLE = b"\0\0\0\1", bytes(2), b"\xff" * 8, bytes(12)


class Log:
    """The file, and the offsets that were given out."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self._size = self._next_offset = 0

    def append(self, records: memoryview) -> int:
        """Returns the offset of the first record."""
        self._size += os.pwrite(self._file, records, self._size)
        offset = self._next_offset
        self._next_offset += INT32.unpack_from(records, RECORD_COUNT)[0]
        return offset


class Produce(asyncio.BufferedProtocol):
    """One connection."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._buffer = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._buffer)
        self._received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view[self._received :]

    def buffer_updated(self, nbytes: int) -> None:
        self._received += nbytes
        position, end, answers = 0, self._received, []
        while end - position >= INT32.size:
            frame = position + INT32.size
            following = frame + INT32.unpack_from(self._buffer, position)[0]
            if following > end:
                break
            answers.append(self._serve(frame))
            position = following
        if answers:
            self._transport.write(b"".join(answers))
        self._buffer[: end - position] = self._buffer[position:end]
        self._received = end - position

    def _serve(self, frame: int) -> bytes:
        buffer = self._buffer
        topic = self._after_string(self._after_string(frame + HEADER)) + 2 + 4 + 4  # acks, timeout, topics
        topic_end = self._after_string(topic)
        partition = topic_end + 4
        records = partition + 8
        size = INT32.unpack_from(buffer, partition + 4)[0]
        offset = self._log.append(self._view[records : records + size])
        body = b"".join((
            buffer[frame + 4 : frame + HEADER], ONE, buffer[topic:topic_end], ONE,
            buffer[partition : partition + 4], NO_ERROR, INT64.pack(offset), NO_TIME, START_AND_THROTTLE,
        ))  # fmt: skip
        return INT32.pack(len(body)) + body

    def _after_string(self, position: int) -> int:
        return position + 2 + max(0, INT16.unpack_from(self._buffer, position)[0])


async def serve() -> None:
    loop = asyncio.get_running_loop()
    log, over = Log(sys.argv[1]), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    server = await loop.create_server(lambda: Produce(log), "127.0.0.1", 0)
    print(f"listening on 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await over.wait()


if __name__ == "__main__":
    asyncio.run(serve())
