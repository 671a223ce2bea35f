"""Replays Kafka's own logs as their coordinators do: records and end markers of a partition, in offset order.

Headers and decoded records come from two passes per segment; ``coordinator.log_events`` joins them.
Source: TransactionStateManager.loadTransactionMetadata, CoordinatorLoaderImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from txnkafka.bounds import KEPT_BYTES, KEPT_RATIO
from txnkafka.coordinator import LogEvent, log_events
from txnkafka.errors import KafkaError
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.read import read_unit
from txnkafka.logdir.read_request import ReadRequest
from txnkafka.logdir.requested import units_of
from txnkafka.model import IsolationLevel
from txnkafka.record.batch import Record, records_of
from txnkafka.record.chunk import ChunkDecoder, OnCorrupt
from txnkafka.storage.formats.order import misplaced_batches

if TYPE_CHECKING:
    from txnkafka.logdir.log_view import LogView
    from txnkafka.logdir.plan import ReadUnit
    from txnkafka.storage.formats.segment_reader import SegmentReader


def replay(view: LogView, findings: list[Finding], kept_bytes: Callable[[], int]) -> Iterator[LogEvent]:
    """Yield all events of a partition's log. Damage and unreadable logs are left out and appended to
    ``findings``.

    ``kept_bytes`` returns the size of the keys and values that the caller keeps, plus KEPT_RECORD per record.
    If this exceeds the need of a log of this size (``bounds.KEPT_RATIO``), the replay ends with a finding."""

    def on_corrupt(error: KafkaError) -> None:
        findings.append(damaged(view, str(error)))

    try:
        yield from _bounded(view, _replay(view, findings, on_corrupt), kept_bytes)
    except KafkaError as error:
        on_corrupt(error)
    finally:
        view.close()


def damaged(view: LogView, reason: str) -> Finding:
    """Return a finding for the loss of part of a coordinator's log: the state from the rest may be
    outdated."""
    return Finding(
        view.path, None, "warning", "coordinator-log-damaged",
        f"part of the coordinator's log could not be read: {reason}",
        "what was lost may have changed the state of transactions and offsets; check with a running broker",
    )  # fmt: skip


def _bounded(view: LogView, events: Iterator[LogEvent], kept_bytes: Callable[[], int]) -> Iterator[LogEvent]:
    """Yield events until the caller keeps too many bytes. The kept bytes are counted each time half of the
    limit has been replayed, so that counting costs no more than replaying."""
    most = max(KEPT_BYTES, KEPT_RATIO * sum(segment.size for segment in view.segments))
    come = 0
    for event in events:
        come += event.size
        if come > most:
            come = kept_bytes() + event.size
            if come > most:
                raise KafkaError(
                    f"the last records of its keys have more than {most} bytes, which a log of this size "
                    f"cannot need; the replay ends before offset {event.offset}"
                )
            come = min(come, most // 2)
        yield event


def _replay(view: LogView, findings: list[Finding], on_corrupt: OnCorrupt) -> Iterator[LogEvent]:
    found: list[Finding] = []
    units: dict[str, list[ReadUnit]] = {}
    request = ReadRequest(isolation_level=IsolationLevel.READ_UNCOMMITTED)
    for unit in units_of(view, request, findings=found):
        units.setdefault(unit.path, []).append(unit)
    findings += [damaged(view, each.message) for each in found if each.code == "missing-segment"]
    decoder = ChunkDecoder()
    for segment in view.segments:
        records = _records(segment, units.get(segment.path, []), decoder, on_corrupt)
        headers = segment.another()
        try:
            yield from log_events(_headers(headers), records)
        finally:
            headers.close()
            segment.close()


def _headers(segment: SegmentReader) -> Iterator[tuple[int, int, int, int]]:
    """Yield (last offset, producer id, attributes, control type) of each batch that is not misplaced."""
    next_offset = segment.base_offset
    for index in segment.indexes():
        misplaced = set(misplaced_batches(index, next_offset, is_intact=segment.is_intact))
        columns = zip(index.last_offset, index.producer_id, index.attributes, index.control_type, strict=True)
        for i, header in enumerate(columns):
            if i not in misplaced:
                yield header
                next_offset = header[0] + 1


def _records(
    segment: SegmentReader, units: list[ReadUnit], decoder: ChunkDecoder, on_corrupt: OnCorrupt
) -> Iterator[Record]:
    for unit in units:
        for columns in read_unit(segment, unit, decoder, on_corrupt):
            yield from records_of(columns)
