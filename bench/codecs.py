"""Bare decompression with the bindings that txnkafka uses: the lower limit of reading a compressed segment.

The compressed blocks are cut out of the segment beforehand and decompressed into one reused buffer, so the
binding and the loop that calls it are timed. The bindings of gzip and lz4 return bytes and cannot write into
a buffer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cramjam
import lz4.block
import zstandard
from isal import igzip_lib

from bench.digest import Digest, DigestBuilder
from bench.harness import Timing, timed
from txnkafka._core.scan import BatchHeader, scan

__all__ = ["BareCodecSide"]

HEADER_SIZE = 61
BUFFER_SIZE = 4 << 20
GZIP_HEADER_SIZE = 10
LZ4_HEADER_SIZE = 7
LZ4_STORED = 0x80000000
XERIAL_HEADER_SIZE = 16

LZ4_BLOCK_SIZE = 64 << 10

Block = Callable[[memoryview, memoryview], bytes | memoryview]
_zstd_context = zstandard.ZstdDecompressor()


def _gzip_blocks(payload: memoryview) -> list[memoryview]:
    return [payload[GZIP_HEADER_SIZE:]]


def _lz4_blocks(payload: memoryview) -> list[memoryview]:
    blocks = []
    at = LZ4_HEADER_SIZE
    while size := struct.unpack_from("<I", payload, at)[0]:
        if size & LZ4_STORED:
            raise ValueError("the input has an LZ4 block that is stored, not compressed; take another input")
        blocks.append(payload[at + 4 : at + 4 + size])
        at += 4 + size
    return blocks


def _snappy_blocks(payload: memoryview) -> list[memoryview]:
    blocks = []
    at = XERIAL_HEADER_SIZE
    while at < len(payload):
        (size,) = struct.unpack_from(">I", payload, at)
        blocks.append(payload[at + 4 : at + 4 + size])
        at += 4 + size
    return blocks


def _zstd_blocks(payload: memoryview) -> list[memoryview]:
    return [payload]


def _gzip(block: memoryview, output: memoryview) -> bytes:
    inflate = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP_NO_HDR_VER)
    return inflate.decompress(block)


def _lz4(block: memoryview, output: memoryview) -> bytes:
    return lz4.block.decompress(block, uncompressed_size=LZ4_BLOCK_SIZE)


def _snappy(block: memoryview, output: memoryview) -> memoryview:
    return output[: cramjam.snappy.decompress_raw_into(block, output)]


def _zstd(block: memoryview, output: memoryview) -> memoryview:
    reader = _zstd_context.stream_reader(block)
    return output[: reader.readinto(output)]


CODECS: dict[str, tuple[Callable[[memoryview], list[memoryview]], Block]] = {
    "gzip": (_gzip_blocks, _gzip),
    "lz4": (_lz4_blocks, _lz4),
    "snappy": (_snappy_blocks, _snappy),
    "zstd": (_zstd_blocks, _zstd),
}


class BareCodecSide:
    """Decompresses every batch of a segment and ignores the result."""

    def __init__(self, segment: Path, codec: str, *, output: str = "records") -> None:
        self.name = f"bare {codec}"
        self.output = output
        self._segment = segment
        self._split, self._decompress = CODECS[codec]
        self._batches: list[tuple[BatchHeader, list[memoryview]]] = []
        self._buffer = memoryview(bytearray(BUFFER_SIZE))

    def warm(self) -> None:
        data = memoryview(self._segment.read_bytes())
        index = scan(data)
        for header in (index[i] for i in range(len(index))):
            payload = data[header.position + HEADER_SIZE : header.position + header.size]
            self._batches.append((header, self._split(payload)))
        self.run()

    def run(self) -> Timing:
        blocks = [block for _, blocks in self._batches for block in blocks]
        decompress, output = self._decompress, self._buffer
        timing: list[tuple[float, float]] = []
        with timed(timing):
            for block in blocks:
                decompress(block, output)
        return Timing(*timing[0], sum(header.count for header, _ in self._batches))

    def digest(self) -> Digest:
        """Compute the digest of the records inside: kafka-python reads the decompressed bytes as an
        uncompressed batch."""
        builder = DigestBuilder()
        for header, blocks in self._batches:
            for record in _records(header, b"".join(self._output_of(block) for block in blocks)):
                builder.add_record(record.offset, record.timestamp, record.key, record.value)
        return builder.digest()

    def _output_of(self, block: memoryview) -> bytes:
        return bytes(self._decompress(block, self._buffer))

    def close(self) -> None:
        self._batches = []


def _records(header: BatchHeader, content: bytes) -> Iterator[Any]:
    from kafka.record.default_records import DefaultRecordBatch

    head = struct.pack(
        ">qiibIhiqqqhii",
        header.base_offset,
        HEADER_SIZE - 12 + len(content),
        header.partition_leader_epoch,
        2,
        0,  # the CRC, which is not checked here
        header.attributes & ~0x07,
        header.last_offset - header.base_offset,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.count,
    )
    yield from DefaultRecordBatch(head + content)
