"""Reads LZ4 frames like Kafka's Lz4BlockInputStream, and writes them like its Lz4BlockOutputStream.

    magic 04 22 4d 18 | flags | block descriptor | [u64 content size] | header checksum
    blocks of { u32 size, top bit: stored | bytes | [u32 checksum] } | u32 end mark 0 | [u32 content checksum]

All numbers are little-endian. This module parses the frame itself because general readers differ: Kafka
requires independent blocks and the end mark, does not check content size and content checksum, ignores bytes
behind the frame, takes an empty block for the end of the content, and accepts a wrong header checksum in
magic 0 (KIP-57).

``lz4`` decompresses the blocks. cramjam's function for blocks cannot be used: it takes the first four bytes
for a size when they may be one, and so reads some blocks wrong. Where ``lz4`` has no wheel (free-threaded
Python), cramjam gets each block as a separate frame, which is correct but slower. It writes blocks as ``lz4``
does.

Levels are Kafka's: 9, the default, selects the fast compressor, and every other number, even 1, is a level of
the high compression mode; so the default compresses least.
"""

from __future__ import annotations

import struct
from typing import Literal

import cramjam
import xxhash

try:
    import lz4.block as lz4_block
except ImportError:  # free-threaded Python
    lz4_block = None

from txnkafka.errors import CorruptRecordError
from txnkafka.record.output_buffer import OutputBuffer

LZ4_ERRORS: tuple[type[Exception], ...] = () if lz4_block is None else (lz4_block.LZ4BlockError,)

LZ4_FILE: str = "" if lz4_block is None else lz4_block._block.__file__

_read_u32 = struct.Struct("<I").unpack_from
_u32 = struct.Struct("<I").pack
_MAGIC = b"\x04\x22\x4d\x18"
# The top bit of a block's size means that its bytes are stored uncompressed.
_SIZE_MASK, _STORED = 0x7FFFFFFF, 0x80000000
_BLOCK_CHECKSUM, _CONTENT_SIZE, _CONTENT_CHECKSUM = 0x10, 0x08, 0x04
# Version 01 and independent blocks; reserved bit and dictionary bit clear.
_FIXED_FLAGS, _FIXED_FLAGS_MASK = 0x60, 0xE3
# The header that Kafka's writer puts before the blocks: no checksums, 64 KiB blocks.
_USUAL_HEADER = _MAGIC + b"\x60\x40\x82"
_USUAL_BLOCK_MAX = 1 << 16
# The header of a frame around one block of up to 4 MiB.
_FRAME_HEADER, _END_MARK = _MAGIC + b"\x60\x70\x73", b"\0\0\0\0"
_FAST_LEVEL = 9


def compress_lz4(payload: memoryview, level: int) -> bytes:
    """Compress to one frame of 64 KiB blocks without checksums; blocks that do not become smaller are
    stored."""
    parts: list[bytes | memoryview] = [_USUAL_HEADER]
    for begin in range(0, len(payload), _USUAL_BLOCK_MAX):
        content = payload[begin : begin + _USUAL_BLOCK_MAX]
        block = _compressed_block(content, level)
        if len(block) < len(content):
            parts += (_u32(len(block)), block)
        else:
            parts += (_u32(_STORED | len(content)), content)
    parts.append(_END_MARK)
    return b"".join(parts)


def _compressed_block(content: memoryview, level: int) -> bytes | memoryview:
    mode: Literal["default", "high_compression"] = "default" if level == _FAST_LEVEL else "high_compression"
    if lz4_block is None:
        block = cramjam.lz4.compress_block(content, mode=mode, compression=level, store_size=False)
        return memoryview(block)
    compressed: bytes = lz4_block.compress(content, mode=mode, compression=level, store_size=False)
    return compressed


def decompress_lz4(output: OutputBuffer, payload: memoryview, magic: int) -> int:
    """Decompress one frame; content size and content checksum are not checked."""
    position, flags, block_max = 7, _FIXED_FLAGS, _USUAL_BLOCK_MAX
    if payload[:7] != _USUAL_HEADER:
        position, flags, block_max = _header(payload, magic)
    length = len(payload)
    end = output.end
    behind_empty_block = False
    while position + 4 <= length:
        (word,) = _read_u32(payload, position)
        size = word & _SIZE_MASK
        position += 4
        if size == 0:
            if flags & _CONTENT_CHECKSUM and position + 4 > length:
                break
            return end
        stop = position + size
        if size > block_max or stop > length:
            raise CorruptRecordError(f"an LZ4 block of {size} bytes is too long for its frame or its batch")
        block = payload[position:stop]
        before = end
        if word > _SIZE_MASK:
            end = output.write(end, block)
        else:
            end += _decompress_block_into(block, output.room(end, block_max))
        if end == before:
            behind_empty_block = True
        elif behind_empty_block:
            raise CorruptRecordError("LZ4 data continues after an empty block")
        position = _checked(payload, block, stop) if flags & _BLOCK_CHECKSUM else stop
    raise CorruptRecordError("LZ4 data ends before the end of its frame")


def _with_lz4(block: memoryview, room: memoryview) -> int:
    content = lz4_block.decompress(block, uncompressed_size=len(room))
    room[: len(content)] = content
    return len(content)


def _with_cramjam(block: memoryview, room: memoryview) -> int:
    frame = b"".join((_FRAME_HEADER, len(block).to_bytes(4, "little"), block, _END_MARK))
    written: int = cramjam.lz4.decompress_into(frame, room)
    return written


_decompress_block_into = _with_cramjam if lz4_block is None else _with_lz4


def _header(payload: memoryview, magic: int) -> tuple[int, int, int]:
    """Return the start of the blocks, the flags and the size of the largest block."""
    if len(payload) < 7 or payload[:4] != _MAGIC:
        raise CorruptRecordError("LZ4 data does not begin with an LZ4 frame header")
    flags, descriptor = payload[4], payload[5]
    if flags & _FIXED_FLAGS_MASK != _FIXED_FLAGS:
        raise CorruptRecordError(
            f"LZ4 frame flags 0x{flags:02x} are not allowed by Kafka (version 1, independent blocks)"
        )
    if descriptor & 0x8F or descriptor < 0x40:
        raise CorruptRecordError(f"LZ4 block descriptor 0x{descriptor:02x} is not valid")
    checksum = 14 if flags & _CONTENT_SIZE else 6
    if checksum >= len(payload):
        raise CorruptRecordError("LZ4 data ends inside the frame header")
    # Writers of magic 0 computed this checksum wrong (KIP-57), so it is not checked there.
    if magic > 0 and payload[checksum] != (xxhash.xxh32_intdigest(payload[4:checksum]) >> 8) & 0xFF:
        raise CorruptRecordError("the LZ4 frame header does not match its checksum")
    return checksum + 1, flags, 1 << (2 * (descriptor >> 4) + 8)


def _checked(payload: memoryview, block: memoryview, position: int) -> int:
    if position + 4 > len(payload):
        raise CorruptRecordError("LZ4 data ends inside a block checksum")
    if _read_u32(payload, position)[0] != xxhash.xxh32_intdigest(block):
        raise CorruptRecordError("an LZ4 block does not match its checksum")
    return position + 4
