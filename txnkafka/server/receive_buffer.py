"""Buffers for the received bytes of a connection, and the frames in them.

Bytes are received into blocks of ``BLOCK_SIZE`` bytes that all connections share and reuse. A small frame is
copied: it may wait for its response for minutes, as JoinGroup and Fetch do, and a block for each would cost
more than the copy. A larger frame is a view of its block, which is not written to until every frame in it is
released. A frame larger than a block gets memory that doubles as its bytes arrive, so that a size alone,
which any peer can send, allocates nothing.

Source: ``NetworkReceive``, whose frames are limited by ``socket.request.max.bytes``.
"""

from __future__ import annotations

from mmap import mmap  # noqa: TID251  (memory only, no file)
from struct import Struct
from typing import Final, NamedTuple

from txnkafka.errors import InvalidRequestError

BLOCK_SIZE: Final = 256 << 10
COPIED_SIZE: Final = 8 << 10  # frames up to this many bytes are copied
_SPARE_BLOCKS: Final = 32  # kept by a pool
_SIZE: Final = Struct(">i")
_BEGINNINGS: Final = (
    (b"\x16\x03", "the beginning of a TLS connection: this listener is not encrypted (security.protocol)"),
    (b"SSH-", "an SSH client"),
    (b"PRI ", "an HTTP/2 client"),
    *((f"{verb} ".encode()[:4], "an HTTP client") for verb in ("GET", "POST", "PUT", "HEAD", "OPTIONS")),
)


class Block:
    """Memory for received bytes, and the number of unreleased frames in it."""

    __slots__ = ("frames", "view")

    def __init__(self, size: int) -> None:
        self.view = memoryview(mmap(-1, size))  # pages without received bytes take no memory
        self.frames = 0


class BlockPool:
    """A pool of unused blocks. For one thread."""

    def __init__(self) -> None:
        self._spare: list[Block] = []

    def take(self) -> Block:
        """Return a block of ``BLOCK_SIZE`` bytes."""
        return self._spare.pop() if self._spare else Block(BLOCK_SIZE)

    def give(self, block: Block) -> None:
        """Return a block to the pool. Memory of another size is freed."""
        if len(block.view) == BLOCK_SIZE and len(self._spare) < _SPARE_BLOCKS:
            self._spare.append(block)


class Frame(NamedTuple):
    """A frame without its size prefix. Its bytes do not change until it is released; a copied frame has no
    block."""

    view: memoryview
    block: Block | None


class ReceiveBuffer:
    """The received bytes of one connection that belong to no frame yet."""

    def __init__(self, pool: BlockPool, max_frame_bytes: int) -> None:
        self._pool = pool
        self._max_frame_bytes = max_frame_bytes
        self._block: Block | None = None
        self._start = self._end = 0  # positions in the block
        self._is_new = True  # before the first frame

    @property
    def allocated(self) -> int:
        """Bytes of memory in use, without earlier blocks that have unreleased frames."""
        return 0 if self._block is None else len(self._block.view)

    def space(self) -> memoryview:
        """Return memory for the next bytes, at least one byte. It is valid until the next call of any
        method."""
        block = self._block
        if block is None:
            return self._begin(self._pool.take()).view
        if self._start == self._end and not block.frames:
            block = self._begin(block if len(block.view) == BLOCK_SIZE else self._pool.take())
        size = len(block.view)
        is_enough = self._start + self._frame_size() <= size
        if self._end < size and (is_enough or self._start == 0):
            return block.view[self._end :]
        return self._moved(block)[self._end :]

    def received(self, count: int) -> None:
        """Note that ``count`` bytes were written into ``space``."""
        self._end += count

    def next_frame(self) -> Frame | None:
        """Return the next frame, which must be released; None while it is incomplete. Raises
        InvalidRequestError for an invalid size."""
        block = self._block
        if block is None:
            return None
        if self._end - self._start < _SIZE.size:
            self._rest()
            return None
        end = self._start + self._frame_size()
        if end > self._end:
            return None
        view = block.view[self._start + _SIZE.size : end]
        self._start = end
        self._is_new = False
        if len(view) <= COPIED_SIZE:
            view = memoryview(bytes(view))
            self._rest()
            return Frame(view, None)
        block.frames += 1
        return Frame(view, block)

    def release(self, frame: Frame) -> None:
        """Allow the bytes of a frame to change."""
        block = frame.block
        if block is None:
            return
        block.frames -= 1
        if block is self._block:
            self._rest()
        elif not block.frames:
            self._pool.give(block)

    def close(self) -> None:
        """Release the memory that no unreleased frame uses."""
        block, self._block = self._block, None
        self._start = self._end = 0
        if block is not None and not block.frames:
            self._pool.give(block)

    def _rest(self) -> None:
        """Give the block back while it is empty, because most connections are idle."""
        if self._block is not None and self._start == self._end and not self._block.frames:
            self.close()

    def _begin(self, block: Block) -> Block:
        self._block = block
        self._start = self._end = 0
        return block

    def _frame_size(self) -> int:
        """Return the bytes of the next frame including its size prefix; the bytes of the prefix while the
        size is unknown."""
        if self._block is None or self._end - self._start < _SIZE.size:
            return _SIZE.size
        (size,) = _SIZE.unpack_from(self._block.view, self._start)
        if not 0 <= size <= self._max_frame_bytes:
            raise InvalidRequestError(self._complaint(size))
        return _SIZE.size + int(size)

    def _complaint(self, size: int) -> str:
        if self._is_new and self._block is not None:
            begins = self._block.view[self._start : self._start + 4].tobytes()
            for beginning, what in _BEGINNINGS:
                if begins.startswith(beginning):
                    return f"the client does not use Kafka's protocol; this looks like {what}"
        return (
            f"the client announced a request of {size} bytes; socket.request.max.bytes is "
            f"{self._max_frame_bytes} (or the client does not use Kafka's protocol)"
        )

    def _moved(self, block: Block) -> memoryview:
        """Move the incomplete frame to the beginning of a block with more room."""
        have, wanted = self._end - self._start, self._frame_size()
        part = block.view[self._start : self._end]
        if have >= BLOCK_SIZE:  # full, of one large frame or of unread frames
            room = Block(min(wanted, 2 * have) if wanted > have else 2 * have)
        elif block.frames or len(block.view) != BLOCK_SIZE:
            room = self._pool.take()
        else:
            room = block
        room.view[:have] = part  # memmove: source and target may overlap
        self._start, self._end, self._block = 0, have, room
        if room is not block and not block.frames:
            self._pool.give(block)
        return room.view
