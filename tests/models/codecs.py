"""Decompression as in the Java client: simple loops around other libraries than the package uses.

``decompress(codec, payload, magic)`` returns the bytes or raises ``CodecError``. gzip uses zlib, LZ4 blocks
python-lz4, zstd python-zstandard; snappy is pure Python.
"""

from __future__ import annotations

import struct
import zlib

import lz4.block
import xxhash
import zstandard

from tests.models.snappy_block import SnappyError, decompress_block

__all__ = ["CodecError", "decompress"]


class CodecError(ValueError):
    """The codec's Java reader does not accept the payload."""


def decompress(codec: int, payload: bytes, magic: int = 2) -> bytes:
    """Return the records of a batch (magic 2) or of a wrapper's value (magic 0 and 1), decompressed."""
    if codec == 0:
        return payload
    if codec == 1:
        return _gzip(payload)
    if codec == 2:
        return _snappy(payload)
    if codec == 3:
        return _lz4(payload, magic)
    if codec == 4 and magic == 2:
        return _zstd(payload)
    raise CodecError(f"no codec {codec} in magic {magic}")


def _take(payload: bytes, position: int, size: int) -> bytes:
    if size < 0 or position + size > len(payload):
        raise CodecError("cut off")
    return payload[position : position + size]


# java.util.zip.GZIPInputStream


def _gzip(payload: bytes) -> bytes:
    output = b""
    rest = payload
    while True:
        inflate = zlib.decompressobj(wbits=-15)
        body = rest[_gzip_header_size(rest) :]
        try:
            content = inflate.decompress(body) + inflate.flush()
        except zlib.error as error:
            raise CodecError(str(error)) from error
        if not inflate.eof:
            raise CodecError("cut off")
        trailer = _take(inflate.unused_data, 0, 8)
        if struct.unpack("<II", trailer) != (zlib.crc32(content), len(content) & 0xFFFFFFFF):
            raise CodecError("wrong CRC or size")
        output += content
        rest = inflate.unused_data[8:]
        if not _another_member(rest):
            return output


def _another_member(rest: bytes) -> bool:
    if len(rest) <= 18:
        return False
    try:
        _gzip_header_size(rest)
    except CodecError:
        return False
    return True


def _gzip_header_size(member: bytes) -> int:
    if _take(member, 0, 10)[:3] != b"\x1f\x8b\x08":
        raise CodecError("not gzip")
    flags = member[3]
    size = 10
    if flags & 4:
        size += 2 + struct.unpack("<H", _take(member, size, 2))[0]
    for bit in (8, 16):
        if flags & bit:
            end = member.find(b"\0", size)
            if end < 0:
                raise CodecError("cut off")
            size = end + 1
    _take(member, 0, size)
    if flags & 2:
        if struct.unpack("<H", _take(member, size, 2))[0] != zlib.crc32(member[:size]) & 0xFFFF:
            raise CodecError("wrong header CRC")
        size += 2
    return size


# org.xerial.snappy.SnappyInputStream


def _snappy(payload: bytes) -> bytes:
    magic = b"\x82SNAPPY\0"
    try:
        if len(payload) < 16 or not payload.startswith(magic):
            return decompress_block(payload)
        output = b""
        position = 16
        while len(payload) - position >= 4:
            chunk_size = struct.unpack_from(">i", payload, position)[0]
            if payload[position : position + 4] == magic[:4]:
                header = _take(payload, position, 16)
                if header[:8] != magic:
                    return output
                if struct.unpack(">i", header[8:12])[0] < 1:
                    raise CodecError("version")
                position += 16
            else:
                output += decompress_block(_take(payload, position + 4, chunk_size))
                position += 4 + chunk_size
    except SnappyError as error:
        raise CodecError(str(error)) from error
    return output


# org.apache.kafka.common.compress.Lz4BlockInputStream


def _lz4(payload: bytes, magic: int) -> bytes:
    if _take(payload, 0, 4) != b"\x04\x22\x4d\x18":
        raise CodecError("not LZ4")
    flags, descriptor = _take(payload, 4, 2)
    independent, block_checksums = flags >> 5 & 1, flags >> 4 & 1
    has_content_size, has_content_checksum = flags >> 3 & 1, flags >> 2 & 1
    if flags >> 6 != 1 or not independent or flags & 3:
        raise CodecError("flags")
    if descriptor & 0x8F or descriptor >> 4 < 4:
        raise CodecError("block descriptor")
    block_max = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}[descriptor >> 4]
    position = 6 + 8 * has_content_size
    header_checksum = _take(payload, position, 1)[0]
    if magic > 0 and header_checksum != xxhash.xxh32(payload[4:position]).intdigest() >> 8 & 0xFF:
        raise CodecError("header checksum")
    position += 1
    output = b""
    ended = False
    while True:
        word = struct.unpack("<I", _take(payload, position, 4))[0]
        stored, size = word >> 31, word & 0x7FFFFFFF
        position += 4
        if size == 0:
            _take(payload, position, 4 * has_content_checksum)
            return output
        if size > block_max:
            raise CodecError("block too large")
        block = _take(payload, position, size)
        position += size
        if block_checksums:
            if struct.unpack("<I", _take(payload, position, 4))[0] != xxhash.xxh32(block).intdigest():
                raise CodecError("block checksum")
            position += 4
        content = block if stored else _lz4_block(block, block_max)
        if content and ended:
            raise CodecError("content after an empty block")
        ended = ended or not content
        output += content


def _lz4_block(block: bytes, block_max: int) -> bytes:
    try:
        return bytes(lz4.block.decompress(block, uncompressed_size=block_max))
    except lz4.block.LZ4BlockError as error:
        raise CodecError(str(error)) from error


# com.github.luben.zstd.ZstdInputStream


def _zstd(payload: bytes) -> bytes:
    output = b""
    rest = payload
    while rest or not payload:
        if len(rest) >= 8 and rest[1:4] == b"\x2a\x4d\x18" and rest[0] >> 4 == 5:
            rest = rest[8 + len(_take(rest, 8, struct.unpack_from("<I", rest, 4)[0])) :]
            continue
        frame = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
        try:
            content = frame.decompress(rest)
            told = zstandard.frame_content_size(rest)
        except zstandard.ZstdError as error:
            raise CodecError(str(error)) from error
        if not frame.eof:
            raise CodecError("cut off")
        if told not in (-1, len(content)):
            raise CodecError(f"{len(content)} bytes in a frame that says {told}")
        output += content
        rest = frame.unused_data
    return output
