"""Writes a log of hundreds of megabytes quickly: repeats of a few batches that are encoded once.

The CRC does not cover the base offset, so a copy of a batch at another offset is valid.
"""

from __future__ import annotations

import struct
from pathlib import Path

from tests.models.builder import Batch, PlainRecord, end_marker

__all__ = ["RECORDS", "committed_offsets", "write_large_log"]

RECORDS = 400  # per batch
VALUE_BYTES = 100
COMMITTED, ABORTED = 1, 2  # producers
# producer; for a marker the producer whose transaction ends
ROUND = (
    (COMMITTED, "data"),
    (ABORTED, "data"),
    (COMMITTED, "data"),
    (ABORTED, "abort"),
    (COMMITTED, "commit"),
)


def _encoded(producer_id: int, what: str) -> tuple[bytes, int]:
    """Encode a batch; return it with the number of its offsets."""
    fields = {"producer_id": producer_id, "producer_epoch": 0}
    if what != "data":
        return end_marker(int(what == "commit"), **fields), 1
    records = [
        PlainRecord(b"key", bytes([producer_id, i % 256]) * (VALUE_BYTES // 2), i) for i in range(RECORDS)
    ]
    return Batch(records=records, transactional=True, base_sequence=0, **fields).encode(), RECORDS


def write_large_log(root: Path, partitions: int, segments: int, segment_bytes: int) -> int:
    """Write partitions t-0, t-1 …; return the number of rounds in each of them."""
    batches = [_encoded(*each) for each in ROUND]
    rounds = segment_bytes // sum(len(content) for content, _ in batches)
    for partition in range(partitions):
        offset = 0
        (root / f"t-{partition}").mkdir(parents=True)
        for _ in range(segments):
            with (root / f"t-{partition}" / f"{offset:020}.log").open("wb") as log:
                for _ in range(rounds):
                    for content, count in batches:
                        log.write(struct.pack(">q", offset) + content[8:])
                        offset += count
    return rounds * segments


def committed_offsets(rounds: int) -> list[int]:
    """Return the offsets that a read_committed consumer gets of one partition."""
    length = sum(RECORDS if what == "data" else 1 for _, what in ROUND)
    return [
        number * length + start + i
        for number in range(rounds)
        for start in (0, 2 * RECORDS)
        for i in range(RECORDS)
    ]
