"""Decompression alone, by the C functions that the reader of txnkafka calls: the lower limit of reading a
compressed segment.

Payloads are cut out of the segment beforehand and decompressed into one reused buffer, one call for each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.digest import Digest, DigestBuilder
from bench.harness import Timing, timed
from txnkafka._core.codec_functions import CodecFunctions
from txnkafka._core.scan import BatchHeader, scan
from txnkafka.record.compression import CompressionType

__all__ = ["BareCodecSide"]

HEADER_SIZE = 61
BUFFER_SIZE = 4 << 20


class BareCodecSide:
    """Decompresses every batch of a segment and ignores the result.

    ``warm`` raises ValueError for a batch that the C functions leave to Python's bindings, or that becomes
    more than BUFFER_SIZE bytes.
    """

    def __init__(self, segment: Path, codec: str, *, output: str = "records") -> None:
        self.name = f"bare {codec}"
        self.output = output
        self._segment = segment
        self._codec = CompressionType.named(codec).value
        self._functions = CodecFunctions(
            enabled=True, max_ratio=BUFFER_SIZE, always_allowed=BUFFER_SIZE, max_bytes=BUFFER_SIZE
        )
        self._batches: list[tuple[BatchHeader, memoryview]] = []
        self._buffer = memoryview(bytearray(BUFFER_SIZE))

    def warm(self) -> None:
        data = memoryview(self._segment.read_bytes())
        index = scan(data)
        for header in (index[i] for i in range(len(index))):
            payload = data[header.position + HEADER_SIZE : header.position + header.size]
            self._batches.append((header, payload))
            self._content(header, payload)
        self.run()

    def run(self) -> Timing:
        payloads = [payload for _, payload in self._batches]
        decompress, codec, output = self._functions.decompress, self._codec, self._buffer
        timing: list[tuple[float, float]] = []
        with timed(timing):
            for payload in payloads:
                decompress(codec, payload, output, 0)
        return Timing(*timing[0], sum(header.count for header, _ in self._batches))

    def digest(self) -> Digest:
        """Compute the digest of the records inside: kafka-python reads the decompressed bytes as an
        uncompressed batch."""
        builder = DigestBuilder()
        for header, payload in self._batches:
            for record in _records(header, self._content(header, payload)):
                builder.add_record(record.offset, record.timestamp, record.key, record.value)
        return builder.digest()

    def _content(self, header: BatchHeader, payload: memoryview) -> bytes:
        end, status = self._functions.decompress(self._codec, payload, self._buffer, 0)
        if status:
            raise ValueError(
                f"{self._segment}: the C functions do not read the batch at {header.position}; "
                "take another input"
            )
        return bytes(self._buffer[:end])

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
