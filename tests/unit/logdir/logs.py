"""Small partition directories for tests, from the batches of tests/models/builder.py."""

from __future__ import annotations

from pathlib import Path

from tests.models.builder import Batch, PlainRecord, end_marker
from txnkafka.env import LocalFileSystem
from txnkafka.logdir import LogDir, PartitionView, SegmentReader

__all__ = ["batch", "marker", "partition", "segment", "write_log"]


def batch(base_offset: int, count: int = 2, **fields: object) -> bytes:
    """Encode a batch whose values are their offsets in decimal."""
    records = [PlainRecord(b"k", str(base_offset + i).encode(), 1000 + base_offset + i) for i in range(count)]
    return Batch(records=records, base_offset=base_offset, **fields).encode()  # type: ignore[arg-type]


def marker(base_offset: int, kind: str, producer_id: int, producer_epoch: int = 0) -> bytes:
    """Encode an end marker: ``commit`` or ``abort``."""
    return end_marker(
        int(kind == "commit"), base_offset=base_offset, producer_id=producer_id, producer_epoch=producer_epoch
    )


def write_log(root: Path, name: str, segments: dict[int, list[bytes]]) -> Path:
    """Write a partition directory ``root/name`` with these segments."""
    directory = root / name
    directory.mkdir(parents=True, exist_ok=True)
    for base_offset, batches in segments.items():
        (directory / f"{base_offset:020d}.log").write_bytes(b"".join(batches))
    return directory


def partition(
    root: Path, segments: dict[int, list[bytes]], *, clean: bool = True, io: str = "auto"
) -> PartitionView:
    """Open partition t-0 of a log directory with these segments."""
    write_log(root, "t-0", segments)
    if clean:
        (root / ".kafka_cleanshutdown").write_bytes(b'{"version":0,"brokerEpoch":1}')
    return LogDir(str(root), io=io).partition("t", 0)


def segment(path: Path, data: bytes, *, mapped: bool) -> SegmentReader:
    """Open one segment at offset 0."""
    path.write_bytes(data)
    found = SegmentReader(LocalFileSystem(), 0, {"log": str(path)}, len(data))
    found.mapped = mapped
    return found
