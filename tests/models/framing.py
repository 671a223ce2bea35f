"""Encodes compressed payloads for tests, in usual and unusual framings.

The defaults are those of Kafka's own writers; every other argument makes a framing that some readers accept
and others refuse.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import lz4.block
import xxhash
import zstandard

from tests.models.snappy_block import store_block

__all__ = ["XERIAL_HEADER", "gzip_member", "lz4_block", "lz4_frame", "xerial", "zstd_frame", "zstd_skippable"]

XERIAL_HEADER = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)


def gzip_member(
    content: bytes, *, flags: int = 0, fields: bytes = b"", crc: int | None = None, size: int | None = None
) -> bytes:
    """Encode one member; ``fields`` are the optional header fields of ``flags``, except the header CRC."""
    deflate = zlib.compressobj(wbits=-15)
    header = b"\x1f\x8b\x08" + bytes([flags]) + bytes(5) + b"\xff" + fields
    if flags & 2:
        header += struct.pack("<H", zlib.crc32(header) & 0xFFFF)
    crc = zlib.crc32(content) if crc is None else crc
    size = len(content) if size is None else size
    return header + deflate.compress(content) + deflate.flush() + struct.pack("<II", crc, size)


def xerial(content: bytes, *, header: bytes = XERIAL_HEADER, chunk_bytes: int = 32 << 10) -> bytes:
    """Encode snappy chunks after a header; the blocks contain literals only."""
    chunks = [store_block(content[i : i + chunk_bytes]) for i in range(0, len(content), chunk_bytes)]
    return header + b"".join(struct.pack(">i", len(chunk)) + chunk for chunk in chunks)


def lz4_block(content: bytes, *, stored: bool = False, checksum: bool = False) -> bytes:
    """Encode one block with its size field."""
    block = content if stored else lz4.block.compress(content, store_size=False)
    trailer = struct.pack("<I", xxhash.xxh32(block).intdigest()) if checksum else b""
    return struct.pack("<I", len(block) | (0x80000000 if stored else 0)) + block + trailer


def lz4_frame(
    blocks: Sequence[bytes] | bytes,
    *,
    flags: int = 0x60,
    descriptor: int = 0x40,
    content_size: int | None = None,
    magic: int = 2,
    end: bytes = bytes(4),
) -> bytes:
    """Encode one frame of ``blocks``, or of as many blocks as bytes need; magic 0 has the checksum of
    KIP-57."""
    if isinstance(blocks, bytes):
        block_max = 1 << (2 * (descriptor >> 4) + 8)
        blocks = [lz4_block(blocks[i : i + block_max]) for i in range(0, len(blocks), block_max)]
    described = bytes([flags, descriptor])
    if content_size is not None:
        described += struct.pack("<Q", content_size)
    frame_magic = b"\x04\x22\x4d\x18"
    checksummed = frame_magic + described if magic == 0 else described
    checksum = xxhash.xxh32(checksummed).intdigest() >> 8 & 0xFF
    return frame_magic + described + bytes([checksum]) + b"".join(blocks) + end


def zstd_frame(
    content: bytes, *, level: int = 3, content_size: bool = False, checksum: bool = False
) -> bytes:
    """Encode one frame, by default without content size and checksum, as a streaming writer does."""
    compressor = zstandard.ZstdCompressor(
        level=level, write_content_size=content_size, write_checksum=checksum
    )
    if content_size:
        return compressor.compress(content)
    stream = compressor.compressobj()
    return stream.compress(content) + stream.flush()


def zstd_skippable(content: bytes, number: int = 0) -> bytes:
    """Encode a frame that readers skip."""
    return struct.pack("<II", 0x184D2A50 + number, len(content)) + content
