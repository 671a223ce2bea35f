"""Reads and writes snappy in xerial's framing (org.xerial.snappy.SnappyInputStream), and reads one raw block.

    magic 82 "SNAPPY" 0 | i32 version | i32 compatible version | chunks of { i32 size | raw block }

A payload without the magic is one raw block as a whole. The header may be repeated between chunks; only then
its version is checked. Up to three bytes behind the last chunk are ignored. The writer makes one chunk of
every 32 KiB.
"""

from __future__ import annotations

import struct

import cramjam

from txnkafka.errors import CorruptRecordError
from txnkafka.record.output_buffer import OutputBuffer

_read_u32 = struct.Struct(">I").unpack_from
_u32 = struct.Struct(">I").pack
_MAGIC = b"\x82SNAPPY\0"
_HEADER_SIZE = 16
_MAGIC_HEAD = 0x82534E41
_WRITTEN_HEADER = _MAGIC + bytes((0, 0, 0, 1, 0, 0, 0, 1))
_CHUNK = 32 << 10


def compress_snappy(payload: memoryview, level: int) -> bytes:
    """Compress to chunks after xerial's header; snappy has no levels."""
    parts: list[bytes | memoryview] = [_WRITTEN_HEADER]
    for begin in range(0, len(payload), _CHUNK):
        block = memoryview(cramjam.snappy.compress_raw(payload[begin : begin + _CHUNK]))
        parts += (_u32(len(block)), block)
    return b"".join(parts)


def decompress_snappy(output: OutputBuffer, payload: memoryview, magic: int) -> int:
    """Decompress the chunks after the header; without it the whole payload is one block."""
    if len(payload) < _HEADER_SIZE or payload[:8] != _MAGIC:
        return _block(output, output.end, payload)
    end = output.end
    position = _HEADER_SIZE
    last = len(payload) - 4
    while position <= last:
        (size,) = _read_u32(payload, position)
        position += 4
        if size == _MAGIC_HEAD:
            position = _repeated_header(payload, position)
            continue
        if size > len(payload) - position:
            raise CorruptRecordError("a snappy chunk runs past the end of the batch")
        end = _block(output, end, payload[position : position + size])
        position += size
    return end


def _repeated_header(payload: memoryview, position: int) -> int:
    """Return the start of the chunks after a repeated header; a wrong header ends the data."""
    stop = position - 4 + _HEADER_SIZE
    if stop > len(payload):
        raise CorruptRecordError("a snappy stream header is cut off")
    if payload[position - 4 : position + 4] != _MAGIC:
        return len(payload)
    if not 1 <= _read_u32(payload, position + 4)[0] < 1 << 31:
        raise CorruptRecordError("a repeated snappy stream header has a version below 1")
    return stop


def _block(output: OutputBuffer, end: int, block: memoryview) -> int:
    if len(block) > 4 and min(block[:5]) > 0x7F:
        # cramjam accepts a sixth byte of the length; snappy-java does not
        raise CorruptRecordError("the length of a snappy block has more than five bytes")
    size = cramjam.snappy.decompress_raw_len(block)
    written: int = cramjam.snappy.decompress_raw_into(block, output.exact_room(end, size))
    return end + written
