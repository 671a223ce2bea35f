"""Builds record batches of magic 2, compressed or not.

Uncompressed batches are byte for byte what Kafka's MemoryRecordsBuilder writes. Compressed ones have the same
header fields and records, and the framing of Kafka's writers; the compressed bytes inside depend on the
libraries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias, TypedDict, Unpack

from txnkafka._core.encode import encode_batch, replace_payload
from txnkafka._core.record_input import InputColumns as InputColumns
from txnkafka._core.record_input import InputRecords as InputRecords
from txnkafka.record.batch_header import HEADER_SIZE
from txnkafka.record.compression import CompressionType, Compressor

if TYPE_CHECKING:
    from typing_extensions import Buffer

    InputHeaders: TypeAlias = Iterable[tuple[str | Buffer, Buffer | None]]
    InputRecord: TypeAlias = (
        tuple[Buffer | None, Buffer | None, int] | tuple[Buffer | None, Buffer | None, int, InputHeaders]
    )


class BatchOptions(TypedDict, total=False):
    """The header fields of a batch, and the range of its records.

    Records ``start`` to ``stop``, all by default; numbers that are not given are Kafka's for "none".
    ``log_append_time`` (milliseconds) is the time of all records, ``delete_horizon`` replaces the base
    timestamp, and ``last_offset`` is the end of a batch whose last records were removed."""

    start: int
    stop: int | None
    base_offset: int
    partition_leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    control: bool
    log_append_time: int | None
    delete_horizon: int | None
    last_offset: int | None


class RecordBatchBuilder:
    """Builds batches with one codec at one level.

    ``compression`` is ``none``, ``gzip``, ``snappy``, ``lz4`` or ``zstd``; ``level`` one of Kafka's for it.
    """

    __slots__ = ("_compressor",)

    def __init__(self, compression: str | CompressionType = "none", level: int | None = None) -> None:
        self._compressor = Compressor(compression, level)

    def build(
        self,
        records: InputColumns | InputRecords | Iterable[InputRecord],
        **fields: Unpack[BatchOptions],
    ) -> bytearray:
        """Build one whole batch; without records the result is empty.

        ``records`` are columns, or tuples (key, value, timestamp) or (key, value, timestamp, headers);
        headers are pairs of a name and a value. Raises ValueError for arguments that Kafka's builder refuses,
        MessageTooLargeError for more bytes than a batch can have."""
        batch = encode_batch(records, **fields)
        codec = self._compressor.codec
        if codec is CompressionType.NONE or not batch:
            return batch
        payload = self._compressor.compress(memoryview(batch)[HEADER_SIZE:])
        return replace_payload(batch, payload, codec=codec)


def build_batch(
    records: InputColumns | InputRecords | Iterable[InputRecord],
    *,
    compression: str | CompressionType = "none",
    level: int | None = None,
    **fields: Unpack[BatchOptions],
) -> bytearray:
    """Build one batch with a new RecordBatchBuilder. Raises what that raises, and ValueError without records:
    Kafka's log takes no empty batch."""
    if not (batch := RecordBatchBuilder(compression, level).build(records, **fields)):
        raise ValueError("a batch has at least one record")
    return batch
