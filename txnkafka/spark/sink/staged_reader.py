"""Reads staged batches on the driver, and checks them: a broker refuses a damaged batch, but as one damaged
in the network, which the producer repeats for minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.crc32c import crc32c
from txnkafka.errors import KafkaStorageError, LogDirError
from txnkafka.record.batch_header import ATTRIBUTES, HEADER_SIZE, header_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.env import FileSystem, ReadableFile
    from txnkafka.spark.sink.staged import Staged, StagedBatch


def read_staged(files: FileSystem, staged: Staged) -> Iterator[tuple[StagedBatch, bytearray]]:
    """Yield the batches of one task with their bytes. Raises LogDirError for a file that the driver does not
    have, KafkaStorageError for a damaged one."""
    if staged.path is None:
        return
    try:
        file = files.open(staged.path)
    except FileNotFoundError:
        raise LogDirError(
            f"{staged.path}, which a task has written, does not exist for the driver: stagingPath must be "
            "the same directory on all machines, and vacuum must not remove files of a running query"
        ) from None
    try:
        for batch in staged.batches:
            yield batch, _read(file, staged.path, batch)
    finally:
        file.close()


def _read(file: ReadableFile, path: str, batch: StagedBatch) -> bytearray:
    content = bytearray(batch.size)
    count = file.read_into(memoryview(content), batch.position)
    is_whole = count == batch.size >= HEADER_SIZE
    if not is_whole or crc32c(memoryview(content)[ATTRIBUTES:]) != header_fields(content).crc:
        raise KafkaStorageError(
            f"{path} is damaged at position {batch.position} (batch of {batch.topic}-{batch.partition}, "
            f"{batch.size} bytes): nothing was published. Restart the query, which writes the batch again"
        )
    return content
