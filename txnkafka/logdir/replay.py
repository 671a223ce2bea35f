"""Kafka's own logs as their coordinators load them: records and end markers of a partition, in offset order.

A record does not say whose transaction it belongs to; the header of its batch does. Headers and decoded
records come from two passes, segment by segment, and are put together again by their offsets.
Invariant: an event's producer id is that of the batch that holds the record, even across skipped damage.
Source: TransactionStateManager.loadTransactionMetadata, CoordinatorLoaderImpl.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.errors import KafkaError
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.read import read_unit
from txnkafka.model import NO_PRODUCER_ID, IsolationLevel
from txnkafka.record.batch import Record, records_of
from txnkafka.record.chunk import ChunkDecoder, OnCorrupt
from txnkafka.storage.order import misplaced_batches

if TYPE_CHECKING:
    from txnkafka._core.scan import BatchIndex
    from txnkafka.logdir.partition import PartitionView
    from txnkafka.logdir.plan import ReadUnit
    from txnkafka.storage.segment_view import Segment

__all__ = ["LogEvent", "damaged", "replay"]

TRANSACTIONAL, CONTROL = 0x10, 0x20  # bits of a batch's attributes
ABORT, COMMIT = 0, 1  # types of control records


class LogEvent(NamedTuple):
    """A record, or the end of a transaction when ``committed`` is not None.

    ``producer_id`` is -1 for a record outside of any transaction.
    """

    offset: int
    producer_id: int
    committed: bool | None
    key: bytes | None
    value: bytes | None


def replay(view: PartitionView, findings: list[Finding]) -> Iterator[LogEvent]:
    """Everything in a partition's log. Damage is left out and added to ``findings``, as is an unreadable
    log."""

    def on_corrupt(error: KafkaError) -> None:
        findings.append(damaged(view, str(error)))

    try:
        yield from _replay(view, findings, on_corrupt)
    except KafkaError as error:
        on_corrupt(error)
    finally:
        view.close()


def damaged(view: PartitionView, reason: str) -> Finding:
    """Part of a coordinator's log is lost, so that what follows from the rest may be out of date."""
    return Finding(
        view.path, None, "warning", "coordinator-log-damaged",
        f"part of the coordinator's log could not be read: {reason}",
        "what was lost may have changed the state of transactions and offsets; check with a running broker",
    )  # fmt: skip


def _replay(view: PartitionView, findings: list[Finding], on_corrupt: OnCorrupt) -> Iterator[LogEvent]:
    found: list[Finding] = []
    units: dict[str, list[ReadUnit]] = {}
    for unit in view.plan(isolation_level=IsolationLevel.READ_UNCOMMITTED, findings=found):
        units.setdefault(unit.path, []).append(unit)
    findings += [damaged(view, each.message) for each in found if each.code == "missing-segment"]
    decoder = ChunkDecoder()
    for segment in view.segments:
        index = segment.scan()
        records = _records(segment, units.get(segment.path, []), decoder, on_corrupt)
        yield from _merged(index, set(misplaced_batches(index, segment.base_offset)), records)
        segment.close()


def _records(
    segment: Segment, units: list[ReadUnit], decoder: ChunkDecoder, on_corrupt: OnCorrupt
) -> Iterator[Record]:
    for unit in units:
        for columns in read_unit(segment, unit, decoder, on_corrupt):
            yield from records_of(columns)


def _merged(index: BatchIndex, misplaced: set[int], records: Iterator[Record]) -> Iterator[LogEvent]:
    record = next(records, None)
    headers = zip(index.last_offset, index.producer_id, index.attributes, index.control_type, strict=True)
    for i, (last_offset, producer_id, attributes, control_type) in enumerate(headers):
        if i in misplaced:
            continue
        if attributes & CONTROL:
            if control_type in (ABORT, COMMIT):
                yield LogEvent(last_offset, producer_id, control_type == COMMIT, None, None)
            continue
        owner = producer_id if attributes & TRANSACTIONAL else NO_PRODUCER_ID
        while record is not None and record.offset <= last_offset:
            yield LogEvent(record.offset, owner, None, record.key, record.value)
            record = next(records, None)
