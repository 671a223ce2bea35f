"""Reads gzip like java.util.zip.GZIPInputStream (RFC 1952), and writes it like GZIPOutputStream.

Members may follow each other; bytes after a complete member that do not begin like another member are
ignored. CRC and length of each member are checked. The headers are read here, with Java's rules; isal reads
the deflate streams and the trailers.

Levels 1 to 3 are written by isal, several times as fast as zlib and no larger; the others by zlib, as in
Java, which writes the same bytes with the same zlib.
"""

from __future__ import annotations

import struct
import zlib

from isal import igzip_lib, isal_zlib

from txnkafka.errors import CorruptRecordError
from txnkafka.record.output_buffer import OutputBuffer

GZIP_FILE: str = igzip_lib.__file__

_PLAIN_HEADER = b"\x1f\x8b\x08\x00"
_HEADER_SIZE = 10
_CRC, _EXTRA, _NAME, _COMMENT = 2, 4, 8, 16
# Input is fed in pieces so that the rest after a member is not copied for each of thousands of members;
# output is taken in pieces so that it never exists twice. The binding allocates an output piece in advance,
# so its size should fit: usually the last four bytes are the size.
_INPUT_PIECE = 64 << 10
_LEAST_OUTPUT_PIECE, _LARGEST_OUTPUT_PIECE = 16 << 10, 1 << 20
_TEXT_PIECE = 256
# Java only looks for another member if more bytes are left than the header and trailer of an empty member.
_LEAST_MEMBER = 19


# Java 16 and newer write 255 for an unknown operating system, and no flag for the level.
_WRITTEN_HEADER = _PLAIN_HEADER + b"\0\0\0\0\0\xff"
_ISAL_LEVELS = range(1, 4)
_RAW_DEFLATE = -15

_read_u32 = struct.Struct("<I").unpack_from
_trailer = struct.Struct("<II").pack


def compress_gzip(payload: memoryview, level: int) -> bytes:
    """Compress to one member; levels 1 to 9, or -1 for zlib's default, 6."""
    if level in _ISAL_LEVELS:
        deflated = igzip_lib.compress(payload, level, igzip_lib.COMP_DEFLATE)
    else:
        deflate = zlib.compressobj(level, zlib.DEFLATED, _RAW_DEFLATE)
        deflated = deflate.compress(payload) + deflate.flush()
    trailer = _trailer(isal_zlib.crc32(payload), len(payload) & 0xFFFFFFFF)
    return b"".join((_WRITTEN_HEADER, deflated, trailer))


def decompress_gzip(output: OutputBuffer, payload: memoryview, magic: int) -> int:
    """Decompress all members; bytes after a complete member that do not begin like another one are
    ignored."""
    body = _body(payload, 0)
    if body < 0:
        raise CorruptRecordError("gzip data does not begin with a gzip header")
    end = output.end
    while body >= 0:
        position, end = _inflate_member(output, end, payload, body)
        body = _body(payload, position) if len(payload) - position >= _LEAST_MEMBER else -1
    return end


def _inflate_member(output: OutputBuffer, end: int, payload: memoryview, position: int) -> tuple[int, int]:
    (size,) = _read_u32(payload, len(payload) - 4)
    output_piece = min(max(size, _LEAST_OUTPUT_PIECE), _LARGEST_OUTPUT_PIECE)
    inflate = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP_NO_HDR_VER)
    while not inflate.eof:
        piece = payload[position : position + _INPUT_PIECE] if inflate.needs_input else payload[:0]
        if not piece and inflate.needs_input:
            raise CorruptRecordError("gzip data ends inside a member")
        position += len(piece)
        end = output.write(end, inflate.decompress(piece, output_piece))
    return position - len(inflate.unused_data), end


def _body(payload: memoryview, position: int) -> int:
    """Return the start of the deflate stream of the member at ``position``, -1 without a valid header."""
    body = position + _HEADER_SIZE
    if body > len(payload):
        return -1
    if payload[position : position + 4] == _PLAIN_HEADER:
        return body
    if payload[position : position + 3] != _PLAIN_HEADER[:3]:
        return -1
    return _optional_fields(payload, position)


def _optional_fields(payload: memoryview, position: int) -> int:
    flags = payload[position + 3]
    body = position + _HEADER_SIZE
    if flags & _EXTRA:
        body += 2 + int.from_bytes(payload[body : body + 2], "little")
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            body = _behind_text(payload, body)
    if flags & _CRC:
        if int.from_bytes(payload[body : body + 2], "little") != zlib.crc32(payload[position:body]) & 0xFFFF:
            return -1
        body += 2
    return body if body <= len(payload) else -1


def _behind_text(payload: memoryview, position: int) -> int:
    """Return the position after the next zero byte, or one past the payload without one."""
    while position < len(payload):
        found = bytes(payload[position : position + _TEXT_PIECE]).find(b"\0")
        if found >= 0:
            return position + found + 1
        position += _TEXT_PIECE
    return len(payload) + 1
