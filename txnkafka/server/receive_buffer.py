"""Where the bytes of a connection arrive, and the frames in them.

Bytes are received into blocks of ``BLOCK_SIZE`` bytes that all connections share and use again. A small
frame is copied out: it may wait for its answer for minutes, as JoinGroup and Fetch do, and a block for each
would cost more than the copy. A larger one is a view of its block, which is not written to until every frame
in it is released. A frame that is larger than a block gets memory that doubles as its bytes arrive: a size
alone, which any peer can send, allocates nothing.

Source: ``NetworkReceive``, whose frames are bounded by ``socket.request.max.bytes``.
"""

from __future__ import annotations

from mmap import mmap  # noqa: TID251  (memory only, no file)
from struct import Struct
from typing import Final, NamedTuple

from txnkafka.errors import InvalidRequestError

__all__ = ["BLOCK_SIZE", "COPIED_SIZE", "Block", "BlockPool", "Frame", "ReceiveBuffer"]

BLOCK_SIZE: Final = 256 << 10
COPIED_SIZE: Final = 8 << 10  # frames up to this many bytes are copied
_SPARE_BLOCKS: Final = 32  # that a pool keeps
_SIZE: Final = Struct(">i")
_BEGINNINGS: Final = (
    (b"\x16\x03", "the beginning of a TLS connection: this listener is not encrypted (security.protocol)"),
    (b"SSH-", "an SSH client"),
    (b"PRI ", "an HTTP/2 client"),
    *((f"{verb} ".encode()[:4], "an HTTP client") for verb in ("GET", "POST", "PUT", "HEAD", "OPTIONS")),
)


class Block:
    """Memory that bytes are received into, and how many frames in it are not released."""

    __slots__ = ("frames", "view")

    def __init__(self, size: int) -> None:
        self.view = memoryview(mmap(-1, size))  # pages that no byte comes to take no memory
        self.frames = 0


class BlockPool:
    """A pool of unused blocks. For one thread."""

    def __init__(self) -> None:
        self._spare: list[Block] = []

    def take(self) -> Block:
        """A block of ``BLOCK_SIZE`` bytes."""
        return self._spare.pop() if self._spare else Block(BLOCK_SIZE)

    def give(self, block: Block) -> None:
        """Let others use a block. Memory of another size is freed."""
        if len(block.view) == BLOCK_SIZE and len(self._spare) < _SPARE_BLOCKS:
            self._spare.append(block)


class Frame(NamedTuple):
    """A frame without its size; the bytes do not change until it is released. One that was copied is in no
    block."""

    view: memoryview
    block: Block | None


class ReceiveBuffer:
    """The bytes of one connection that came and belong to no frame yet."""

    def __init__(self, pool: BlockPool, max_frame_bytes: int) -> None:
        self._pool = pool
        self._max_frame_bytes = max_frame_bytes
        self._block: Block | None = None
        self._start = self._end = 0  # of those bytes, in the block
        self._is_new = True  # no frame came yet

    @property
    def allocated(self) -> int:
        """Bytes of memory in use, without those of earlier blocks whose frames are not released."""
        return 0 if self._block is None else len(self._block.view)

    def space(self) -> memoryview:
        """Where the next bytes go: at least one byte. Valid until the next call of any method."""
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
        """``count`` bytes were put where ``space`` said."""
        self._end += count

    def next_frame(self) -> Frame | None:
        """The next frame, to be released; None while it is not complete. Raises InvalidRequestError for a
        size that no frame has."""
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
        """The bytes of a frame may change."""
        block = frame.block
        if block is None:
            return
        block.frames -= 1
        if block is self._block:
            self._rest()
        elif not block.frames:
            self._pool.give(block)

    def close(self) -> None:
        """The connection ended; frames that are not released keep their memory."""
        block, self._block = self._block, None
        self._start = self._end = 0
        if block is not None and not block.frames:
            self._pool.give(block)

    def _rest(self) -> None:
        """Do not keep a block while nothing is in it: most connections are idle."""
        if self._block is not None and self._start == self._end and not self._block.frames:
            self.close()

    def _begin(self, block: Block) -> Block:
        self._block = block
        self._start = self._end = 0
        return block

    def _frame_size(self) -> int:
        """Bytes of the next frame with its size, or those of the size while it is not known."""
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
                    return f"the connection does not speak Kafka's protocol; it looks like {what}"
        return (
            f"a request of {size} bytes was announced; socket.request.max.bytes is {self._max_frame_bytes} "
            "(or the client does not speak Kafka's protocol)"
        )

    def _moved(self, block: Block) -> memoryview:
        """Put the incomplete frame at the beginning of a block that has room for more of it."""
        have, wanted = self._end - self._start, self._frame_size()
        part = block.view[self._start : self._end]
        if have >= BLOCK_SIZE:  # full, of one large frame or of frames that are not read yet
            room = Block(min(wanted, 2 * have) if wanted > have else 2 * have)
        elif block.frames or len(block.view) != BLOCK_SIZE:
            room = self._pool.take()
        else:
            room = block
        room.view[:have] = part  # memmove: the two may overlap
        self._start, self._end, self._block = 0, have, room
        if room is not block and not block.frames:
            self._pool.give(block)
        return room.view
