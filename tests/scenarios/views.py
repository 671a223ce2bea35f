"""What a scenario prints: logs, records of coordinators, answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.unit.broker.node import consumed
from txnkafka._core.read_committed import select
from txnkafka._core.scan import BatchHeader, scan
from txnkafka.broker.requests import FetchedPartition, ProduceResult
from txnkafka.coordinator.txn.txn_events import Answer
from txnkafka.coordinator.txn.txn_listing import Description
from txnkafka.error_codes import ErrorCode
from txnkafka.model import ProducerStateEntry, TopicPartition
from txnkafka.record.batch import records_of
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL, CONTROL_ABORT
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches
from txnkafka.storage.log.log_records import records_of_log
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.wire.records import TransactionMetadata, decode_transaction_log

__all__ = [
    "answer_line",
    "described_lines",
    "entry_line",
    "fetched_lines",
    "log_lines",
    "metadata_line",
    "partitions",
    "produced_line",
    "state_lines",
]


def partitions(names: Any) -> str:
    return ", ".join(str(name) for name in sorted(names)) or "none"


# Answers


def answer_line(answer: Answer) -> str:
    """An answer of the coordinator; the identity where there is one."""
    if answer.producer_id == -1:
        return answer.error.name
    return f"{answer.error.name}, producer {answer.producer_id} epoch {answer.producer_epoch}"


def produced_line(partition: TopicPartition, result: ProduceResult) -> str:
    if result.error == ErrorCode.NONE:
        return f"{partition} NONE, offset {result.base_offset}"
    return f"{partition} {result.error.name}"


def fetched_lines(fetched: FetchedPartition, offset: int) -> Iterator[str]:
    """The answer of a fetch, and what a consumer makes of it. Releases the records."""
    if fetched.error != ErrorCode.NONE or fetched.records is None:
        yield fetched.error.name
        return
    with fetched.records as records:
        data = bytes(records.read())
    aborted = fetched.aborted_transactions
    listed = "null" if aborted is None else ", ".join(
        f"producer {each.producer_id} from {each.first_offset}" for each in aborted
    ) or "none"  # fmt: skip
    index = scan(data)
    end = index.last_offset[-1] + 1 if len(index) else offset
    values = consumed(memoryview(data)[: index.end_position], aborted or ()) if len(index) else []
    yield f"last stable offset {fetched.last_stable_offset}, high watermark {fetched.high_watermark}"
    yield f"aborted: {listed}"
    yield f"consumed: {' '.join(quoted(value) for value in values) or 'nothing'}; next offset {end}"


def quoted(value: bytes | None) -> str:
    return "null" if value is None else f'"{value.decode()}"'


# Logs


def log_lines(log: PartitionLog) -> Iterator[str]:
    """Every batch of a log, durable or not, and its offsets."""
    for segment in log.segments:
        if segment.size:
            yield from _segment_lines(segment, log.log_start_offset)
    yield (
        f"last stable offset {log.last_stable_offset}, high watermark {log.high_watermark}, "
        f"end {log.log_end_offset}"
    )


def _segment_lines(segment: Any, start: int) -> Iterator[str]:
    reader = segment.view()
    try:
        for _, _, index in reader.windows():
            for i in range(len(index)):
                selection = bytearray(len(index))
                selection[i] = bytes(select(index))[i]
                values = [
                    record.value
                    for columns in ChunkDecoder().chunks(SelectedBatches(reader.read, index, selection))
                    for record in records_of(columns)
                ]
                if index[i].last_offset >= start:
                    yield _batch_line(index[i], values)
    finally:
        reader.close()


def _batch_line(header: BatchHeader, values: list[bytes | None]) -> str:
    offsets = f"{header.base_offset}"
    if header.last_offset > header.base_offset:
        offsets += f"-{header.last_offset}"
    producer = f"producer {header.producer_id} epoch {header.producer_epoch}"
    if header.attributes & ATTRIBUTE_CONTROL:
        outcome = "ABORT" if header.control_type == CONTROL_ABORT else "COMMIT"
        return f"{offsets}: {producer} {outcome}, coordinator epoch {header.coordinator_epoch}"
    kind = "transactional " if header.attributes & ATTRIBUTE_TRANSACTIONAL else ""
    if header.producer_id != -1:
        kind = f"{producer} sequence {header.base_sequence} {kind}"
    return f"{offsets}: {kind}{' '.join(quoted(value) for value in values)}"


def entry_line(entry: ProducerStateEntry) -> str:
    """A producer as DescribeProducers shows it."""
    opened = "none" if entry.current_txn_first_offset == -1 else f"from {entry.current_txn_first_offset}"
    return (
        f"producer {entry.producer_id} epoch {entry.producer_epoch} last sequence {entry.last_sequence} "
        f"coordinator epoch {entry.coordinator_epoch} transaction {opened}"
    )


# The coordinator


def state_lines(log: PartitionLog, started_ms: int) -> Iterator[str]:
    """Every record of a partition of ``__transaction_state``."""
    for record in records_of_log(log):
        decoded = decode_transaction_log(record.key or b"", record.value)
        name = decoded.key["transactional_id"] if decoded.key else "unreadable key"
        if record.value is None:
            yield f"{record.offset} {name}: tombstone"
            continue
        metadata = TransactionMetadata.of(decoded)
        line = "unreadable value" if metadata is None else metadata_line(metadata, started_ms)
        yield f"{record.offset} {name}: {line}{'' if record.value[1] else ', value version 0'}"


def metadata_line(metadata: TransactionMetadata, started_ms: int) -> str:
    """A state of a transactional id; a value that says nothing is left out."""
    parts = [f"{metadata.state.label} producer {metadata.producer_id} epoch {metadata.producer_epoch}"]
    if metadata.last_producer_epoch != -1:
        parts.append(f"last epoch {metadata.last_producer_epoch}")
    if metadata.previous_producer_id not in (-1, metadata.producer_id):
        parts.append(f"previous producer {metadata.previous_producer_id}")
    if metadata.next_producer_id != -1:
        parts.append(f"next producer {metadata.next_producer_id}")
    parts.append(f"partitions {partitions(metadata.topic_partitions)}")
    if metadata.start_timestamp != -1:
        parts.append(f"since {shown_time(metadata.start_timestamp - started_ms)}")
    return ", ".join(parts)


def described_lines(found: Description, started_ms: int) -> Iterator[str]:
    """A row of DescribeTransactions."""
    if found.error != ErrorCode.NONE:
        yield found.error.name
        return
    since = "" if found.start_ms == -1 else f", since {shown_time(found.start_ms - started_ms)}"
    yield (
        f"{found.state} producer {found.producer_id} epoch {found.producer_epoch}, "
        f"timeout {found.timeout_ms / 1000:g}s, partitions {partitions(found.partitions)}{since}"
    )


def shown_time(ms: int) -> str:
    """A time of the scenario's clock."""
    return f"{ms / 1000:.12g}s"
