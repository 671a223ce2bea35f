"""Reads and writes zstd frames (RFC 8878): several in a row, also skippable ones; windows up to 2^27 bytes.

    magic 28 b5 2f fd | frame header | blocks of { u24: last, type, size | bytes } | [u32 checksum]

A reused context of ``zstandard`` takes half the time of ``cramjam`` on 16 KiB, which spends most of its time
creating a context; ``zstandard`` has no wheels for free-threaded Python, where cramjam is used. Both check
everything, but need their whole output memory in advance, and Kafka's frames do not contain their content's
size. So the block headers are read first: they bound it.

Frames are written as Kafka's streams write them, without the content's size and without a checksum; cramjam
cannot leave the size out.
"""

from __future__ import annotations

import struct
import threading
from importlib.util import find_spec

import cramjam

try:
    import zstandard
except ImportError:  # free-threaded Python
    zstandard = None  # type: ignore[assignment]  # the module is missing

from txnkafka.errors import CorruptRecordError
from txnkafka.record.output_buffer import OutputBuffer

ZSTD_ERRORS: tuple[type[Exception], ...] = () if zstandard is None else (zstandard.ZstdError,)

# The binding for cffi exports the functions, unlike the one that is imported; it is only named here.
_cffi = None if zstandard is None else find_spec("zstandard._cffi")
ZSTD_FILE: str = "" if _cffi is None else _cffi.origin or ""

_thread = threading.local()
_read_two_u32 = struct.Struct("<II").unpack_from
_MAGIC = 0xFD2FB528
_SKIPPABLE, _SKIPPABLE_MASK = 0x184D2A50, 0xFFFFFFF0
_WINDOW_MAX = 1 << 27
_BLOCK_MAX = 128 << 10
# Block types; 0 is a raw block.
_RUN, _COMPRESSED, _RESERVED = 1, 2, 3
_DICTIONARY_ID_SIZES = (0, 1, 2, 4)
_CONTENT_SIZE_SIZES = (0, 2, 4, 8)


def compress_zstd(payload: memoryview, level: int) -> bytes | memoryview:
    """Compress to one frame; levels -131072 to 22."""
    if zstandard is None:
        return memoryview(cramjam.zstd.compress(payload, level))
    # a context keeps the tables of its level, so the one for the last level is reused
    if getattr(_thread, "level", None) != level:
        _thread.compressor = zstandard.ZstdCompressor(level=level, write_content_size=False)
        _thread.level = level
    stream = _thread.compressor.compressobj()
    return b"".join((stream.compress(payload), stream.flush()))


def decompress_zstd(output: OutputBuffer, payload: memoryview, magic: int) -> int:
    """Decompress all frames, each with room for the bytes that its block headers allow."""
    end, position = output.end, 0
    while position < len(payload) or position == 0:
        if position + 8 > len(payload):
            raise CorruptRecordError("zstd data is cut off, or has garbage after its last frame")
        head, size = _read_two_u32(payload, position)
        if head == _MAGIC:
            stop, bound, announced = _frame(payload, position + 4)
            if stop > len(payload):
                raise CorruptRecordError("zstd data ends inside a frame")
            end += _content(output, end, payload[position:stop], bound, announced)
            position = stop
        elif head & _SKIPPABLE_MASK == _SKIPPABLE:
            position += 8 + size
        else:
            raise CorruptRecordError("zstd data has bytes that are not a zstd frame")
    if position > len(payload):
        raise CorruptRecordError("zstd data ends inside a frame")
    return end


def _content(output: OutputBuffer, end: int, data: memoryview, bound: int, announced: int | None) -> int:
    """Decompress one frame of at most ``bound`` bytes to ``end``; returns the size of its content.

    The size is compared with the frame's header, since zstd itself does not always do so: not when the last
    block is empty and the room is smaller."""
    written = _decompress_into(data, output.room(end, bound))
    if announced is not None and written != announced:
        raise CorruptRecordError(f"a zstd frame announces {announced} bytes, but contains {written}")
    return written


def _with_cramjam(payload: memoryview, room: memoryview) -> int:
    written: int = cramjam.zstd.decompress_into(payload, room)
    return written


def _with_zstandard(payload: memoryview, room: memoryview) -> int:
    # contexts are not thread-safe, so each thread has one
    context = getattr(_thread, "context", None)
    if context is None:
        context = _thread.context = zstandard.ZstdDecompressor(max_window_size=_WINDOW_MAX)
    written = 0
    reader = context.stream_reader(payload)
    # not into an empty buffer: the reader takes that for its end and checks nothing more
    while written < len(room) and (count := reader.readinto(room[written:])):
        written += count
    if written == len(room) and reader.read(1):
        raise cramjam.DecompressionError("the content does not fit")
    return written


_decompress_into = _with_cramjam if zstandard is None else _with_zstandard


def _frame(payload: memoryview, position: int) -> tuple[int, int, int | None]:
    """Return the end of the frame, the bound of its content's size, and the size in its header, or None."""
    has_checksum = payload[position] & 0x04
    window, content_size, position = _frame_header(payload, position)
    bound, position = _blocks(payload, position, min(window, _BLOCK_MAX))
    return position + has_checksum, bound, content_size


def _frame_header(payload: memoryview, position: int) -> tuple[int, int | None, int]:
    """Return the window size, the size of the content if the header has it, and the start of the blocks."""
    descriptor = payload[position]
    if descriptor & 0x08:
        raise CorruptRecordError("a zstd frame header uses a reserved bit")
    single_segment = descriptor & 0x20
    content_size_bytes = _CONTENT_SIZE_SIZES[descriptor >> 6] or (1 if single_segment else 0)
    position += 1
    window, content_size = 0, None
    if not single_segment:
        base = 1 << (10 + (payload[position] >> 3))
        window = base + (base >> 3) * (payload[position] & 7)
        position += 1
    position += _DICTIONARY_ID_SIZES[descriptor & 3]
    stop = position + content_size_bytes
    if content_size_bytes:
        # Sizes of two bytes are stored less 256.
        announced = int.from_bytes(payload[position:stop], "little")
        content_size = announced + (256 if content_size_bytes == 2 else 0)
    if single_segment:
        window = content_size or 0
    if window > _WINDOW_MAX:
        raise CorruptRecordError(f"a zstd frame needs a window of {window} bytes, more than {_WINDOW_MAX}")
    return window, content_size, stop


def _blocks(payload: memoryview, position: int, block_max: int) -> tuple[int, int]:
    """Return the bound of the size of the blocks' contents, and the end of the blocks."""
    bound = 0
    last = 0
    while not last:
        head = int.from_bytes(payload[position : position + 3], "little")
        last, kind, size = head & 1, (head >> 1) & 3, head >> 3
        if kind == _RESERVED:
            raise CorruptRecordError("a zstd frame has a block of the reserved type")
        bound += block_max if kind == _COMPRESSED else size
        position += 3 + (1 if kind == _RUN else size)
        if position > len(payload):
            raise CorruptRecordError("zstd data ends inside a frame")
    return bound, position
