"""Makes batch headers for tests, and encodes them as batches."""

from __future__ import annotations

from collections.abc import Iterable

from tests.models.builder import Batch, PlainRecord, end_marker
from tests.models.record_batch import CONTROL, TRANSACTIONAL
from txnkafka._core.scan import BatchHeader

__all__ = ["ABORT", "COMMIT", "data", "encode", "marker"]

ABORT, COMMIT = 0, 1
_PLAIN = BatchHeader(
    position=0, size=100, base_offset=0, last_offset=0, count=1, base_timestamp=1000, max_timestamp=1000,
    producer_id=-1, producer_epoch=-1, base_sequence=-1, partition_leader_epoch=0, attributes=0, magic=2,
    crc=0, control_type=-1, coordinator_epoch=-1,
)  # fmt: skip


def data(producer_id: int, epoch: int, base_offset: int, **fields: int) -> BatchHeader:
    """Return a data batch; by default it is transactional and has one record."""
    last_offset = fields.get("last_offset", base_offset)
    transactional, sequence = fields.pop("transactional", True), fields.pop("sequence", 0)
    derived = {
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "base_offset": base_offset,
        "last_offset": last_offset,
        "count": last_offset - base_offset + 1,
        "base_sequence": sequence if producer_id >= 0 else -1,
        "attributes": TRANSACTIONAL * transactional,
    }
    return _PLAIN._replace(**derived | fields)


def marker(producer_id: int, epoch: int, base_offset: int, control_type: int, **fields: int) -> BatchHeader:
    """Return an end marker."""
    derived = {
        "size": 78,
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "base_offset": base_offset,
        "last_offset": base_offset,
        "attributes": CONTROL | TRANSACTIONAL,
        "control_type": control_type,
        "coordinator_epoch": 0,
    }
    return _PLAIN._replace(**derived | fields)


def encode(headers: Iterable[BatchHeader]) -> bytes:
    """Encode a segment of these batches, with the sizes, positions and checksums that follow."""
    return b"".join(map(_encode, headers))


def _encode(header: BatchHeader) -> bytes:
    fields = {
        "base_offset": header.base_offset,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "max_timestamp": header.max_timestamp,
    }
    if header.attributes & CONTROL and header.count:
        fields |= {"coordinator_epoch": header.coordinator_epoch, "timestamp": header.max_timestamp}
        return end_marker(header.control_type, **fields)
    records = [PlainRecord(None, None, header.base_timestamp) for _ in range(header.count)]
    fields |= {
        "base_sequence": header.base_sequence,
        "last_offset_delta": header.last_offset - header.base_offset,
    }
    transactional = bool(header.attributes & TRANSACTIONAL)
    control = bool(header.attributes & CONTROL)
    return Batch(records=records, transactional=transactional, control=control, **fields).encode()
