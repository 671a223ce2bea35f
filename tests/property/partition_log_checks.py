"""Checks that a partition log passes at any time, besides the comparison with its model."""

from __future__ import annotations

from tests.models.fetch_filter import AbortedTxn, fetch, scan_log
from tests.models.partition_log import PartitionLogModel
from tests.models.record_batch import BatchHeader
from tests.unit.storage.reads import read
from txnkafka.model import IsolationLevel
from txnkafka.storage.formats import parse_producer_snapshot
from txnkafka.storage.log import log_read
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.log_offset_metadata import LogOffsetMetadata, bytes_between
from txnkafka.storage.log.log_segment import LogSegment
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.transactions import transactions_of

__all__ = [
    "check_offsets",
    "check_positions",
    "check_producers",
    "check_records",
    "check_transaction_indexes",
]

LARGEST = 1 << 20  # upper limit of the size of a segment


def check_offsets(log: PartitionLog, model: PartitionLogModel) -> None:
    assert (log.log_start_offset, log.log_end_offset) == (model.log_start, model.log_end)
    marks = log.recovery_point, log.high_watermark
    assert marks == (model.durable, model.high_watermark), (marks, model.durable, model.high_watermark)
    assert log.last_stable_offset == model.last_stable_offset <= log.log_end_offset
    known = LeaderEpochs(log.epochs.entries)
    known.truncate_from_start(log.log_start_offset)  # after a crash those of deleted segments may be known
    known.truncate_from_end(log.log_end_offset)
    assert known.entries == model.epochs()


def check_positions(log: PartitionLog) -> None:
    """Every position that the log remembers is that of a scan, and a read up to it ends there."""
    headers = [_headers(log, segment) for segment in log.segments]

    def scanned(offset: int) -> tuple[int, int, int]:
        for segment, found in zip(log.segments, headers, strict=True):
            for header in found:
                if header.last_offset >= offset:
                    return offset, segment.base_offset, header.position
        return offset, log.active.base_offset, log.active.size

    known = log.offsets.last_stable_metadata, log.offsets.high_watermark_metadata, log.log_end_metadata
    assert known == tuple(map(scanned, (log.last_stable_offset, log.high_watermark, log.log_end_offset)))
    sizes = {segment.base_offset: segment.size for segment in log.segments}
    start = log.segments[0].base_offset
    begin = LogOffsetMetadata(start, start, 0)
    for end in known:
        below = sum(size for base, size in sizes.items() if base < end.segment_base_offset) + end.position
        assert bytes_between(log.segments, begin, end) == below
        assert bytes_between(log.segments, end, begin) == 0
    levels = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED, None
    for level, limit in zip(levels, known, strict=True):
        if max(limit.segment_base_offset, log.log_start_offset) < limit.offset:
            offset = max(limit.segment_base_offset, log.log_start_offset)
            with log_read.read(log, offset, max_bytes=LARGEST, isolation_level=level).records as records:
                ends_at = records.base_offset, records.position + records.size
                assert not records.size or ends_at == (limit.segment_base_offset, limit.position)


def _headers(log: PartitionLog, segment: LogSegment) -> list[BatchHeader]:
    if not segment.size:
        return []
    headers, stop, _ = scan_log(log.files.read(segment.path("log"), LARGEST)[: segment.size])
    assert stop == "end"
    return headers


def check_producers(log: PartitionLog, model: PartitionLogModel) -> None:
    """Compare the producers in memory and in every snapshot with the model at the same offset."""
    assert [tuple(entry) for entry in log.producers.entries()] == model.rows()
    for offset in log.snapshots.offsets:
        entries = parse_producer_snapshot(log.snapshots.read(offset))
        live = model.producers(offset)
        rows = sorted(tuple(entry) for entry in entries if entry.producer_id in live)
        assert rows == model.rows(offset), f"snapshot of {offset}"


def check_transaction_indexes(log: PartitionLog, model: PartitionLogModel) -> None:
    bases = [segment.base_offset for segment in log.segments]
    ends = [*bases[1:], model.log_end]
    for segment, end in zip(log.segments, ends, strict=True):
        entries = [tuple(entry[1:]) for entry in transactions_of(log, segment).entries]
        assert entries == model.markers_of(segment.base_offset, end)


def check_records(log: PartitionLog, model: PartitionLogModel) -> None:
    """Compare the records with the model's, for both kinds of consumers, in small reads and in large ones."""
    for max_bytes, level in ((1, IsolationLevel.READ_COMMITTED), (300, IsolationLevel.READ_UNCOMMITTED)):
        committed = level is IsolationLevel.READ_COMMITTED
        assert _consumed(log, model, max_bytes, level) == model.records(committed=committed)


def _consumed(
    log: PartitionLog, model: PartitionLogModel, max_bytes: int, level: IsolationLevel
) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    offset = model.log_start
    while True:
        answer = read(log, offset, max_bytes=max_bytes, isolation_level=level)
        headers, stop, _ = scan_log(bytes(answer.records))
        assert stop == "end"
        if not headers:
            return found
        end = headers[-1].last_offset + 1
        aborted: list[AbortedTxn] | None = None
        if answer.aborted_transactions is not None:
            aborted = [AbortedTxn(*each) for each in model.aborted(offset, end)]
            told = [tuple(each[1:]) for each in answer.aborted_transactions]
            assert told == sorted(aborted, key=lambda each: each.first_offset)
        records = fetch(bytes(answer.records), headers, offset, end, aborted)
        found += [(record.offset, record.value or b"") for record in records]
        offset = end
