"""Computes figures about batches and transactions from batch headers.

One pass over the headers of each partition computes both. Memory: a ``Figures`` of constant size per topic,
partition or producer, the headers of one segment at a time, and the open transactions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from txnkafka._core.read_committed import TransactionRange, TransactionScan
from txnkafka.logdir.distribution import Distribution
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.header_pass import SegmentHeaders, header_pass, segment_containing
from txnkafka.model import NO_PRODUCER_ID
from txnkafka.record import CompressionType
from txnkafka.record.batch_header import ATTRIBUTE_CODEC, ATTRIBUTE_CONTROL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from txnkafka._core.scan import BatchIndex
    from txnkafka.logdir.log_view import LogView

GROUPINGS = ("topic", "partition", "producer")
ENDED = ("committed", "aborted")
PIECE = 1 << 16  # batches counted at once: a few hundred bytes per batch


class Figures:
    """The figures of one topic, partition or producer."""

    def __init__(self) -> None:
        self.control_batches = 0
        self.uncounted_batches = 0
        self.batch_bytes = Distribution()
        self.batch_records = Distribution()
        self.codecs: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        self.magics: Counter[int] = Counter()
        self.transactions: Counter[str] = Counter()
        self.transactional_records: Counter[str] = Counter()
        self.transaction_records = Distribution()
        self.transaction_bytes = Distribution()
        self.transaction_ms = Distribution()

    def add_batches(self, index: BatchIndex, chosen: NDArray[Any]) -> None:
        """Count the batches with these numbers."""
        for begin in range(0, len(chosen), PIECE):
            self._add_piece(index, chosen[begin : begin + PIECE])

    def _add_piece(self, index: BatchIndex, chosen: NDArray[Any]) -> None:
        import numpy as np

        attributes = np.asarray(index.attributes)[chosen]
        is_control = attributes & ATTRIBUTE_CONTROL != 0
        self.control_batches += int(is_control.sum())
        data = chosen[~is_control]
        sizes, counts = np.asarray(index.size)[data], np.asarray(index.record_count)[data]
        self.batch_bytes.add(sizes)
        self.batch_records.add(counts[counts >= 0])
        self.uncounted_batches += int((counts < 0).sum())
        codecs = attributes[~is_control] & ATTRIBUTE_CODEC
        for codec in np.unique(codecs).tolist():
            of_codec = sizes[codecs == codec]
            self.codecs[codec][0] += len(of_codec)
            self.codecs[codec][1] += int(of_codec.sum())
        magics, numbers = np.unique(np.asarray(index.magic)[data], return_counts=True)
        self.magics.update(dict(zip(magics.tolist(), numbers.tolist(), strict=True)))

    def add_transactions(self, ranges: Iterable[tuple[TransactionRange, int | None]]) -> None:
        """Count transactions, each with the time of its end marker (milliseconds; None without a marker)."""
        records, sizes, durations = [], [], []
        for transaction, ended_ms in ranges:
            self.transactions[transaction.outcome] += 1
            self.transactional_records[transaction.outcome] += transaction.records
            if transaction.outcome in ENDED:
                records.append(transaction.records)
                sizes.append(transaction.bytes)
                if ended_ms is not None:
                    durations.append(ended_ms - transaction.first_timestamp)
        self.transaction_records.add(records)
        self.transaction_bytes.add(sizes)
        self.transaction_ms.add(durations)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that docs/cli.md lists."""
        transactions, records = self.transactions, self.transactional_records
        return {
            "batches": self.batch_bytes.count,
            "bytes": self.batch_bytes.total,
            "records": self.batch_records.total,
            "control_batches": self.control_batches,
            "uncounted_batches": self.uncounted_batches,
            "batch_bytes": self.batch_bytes.as_dict(),
            "batch_records": self.batch_records.as_dict(),
            "codecs": {_codec_name(codec): self._share(*self.codecs[codec]) for codec in sorted(self.codecs)},
            "magics": {str(magic): self.magics[magic] for magic in sorted(self.magics)},
            "committed_transactions": transactions["committed"],
            "aborted_transactions": transactions["aborted"],
            "open_transactions": transactions["open"],
            "undecided_transactions": transactions["undecided"],
            "abort_rate": _rate(transactions["aborted"], sum(transactions[outcome] for outcome in ENDED)),
            "committed_records": records["committed"],
            "aborted_records": records["aborted"],
            "open_records": records["open"],
            "undecided_records": records["undecided"],
            "aborted_record_rate": _rate(records["aborted"], sum(records[outcome] for outcome in ENDED)),
            "transaction_records": self.transaction_records.as_dict(),
            "transaction_bytes": self.transaction_bytes.as_dict(),
            "transaction_ms": self.transaction_ms.as_dict(),
        }

    def _share(self, batches: int, size: int) -> dict[str, int | float | None]:
        return {
            "batches": batches,
            "bytes": size,
            "batch_share": _rate(batches, self.batch_bytes.count),
            "byte_share": _rate(size, self.batch_bytes.total),
        }


def _codec_name(codec: int) -> str:
    names = {codec.value: codec.label for codec in CompressionType}
    return names.get(codec, f"UNKNOWN({codec})")


def _rate(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


class Stats:
    """Figures by ``topic``, ``partition`` or ``producer`` over the partitions that were added."""

    def __init__(self, by: str = "partition") -> None:
        if by not in GROUPINGS:
            raise ValueError(f"by must be {', '.join(GROUPINGS)}, not {by!r}")
        self._by = by
        self._groups: dict[tuple[Any, ...], Figures] = defaultdict(Figures)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row per producer, sorted, or per topic or partition, in the order of ``add``: its name,
        then the fields of ``Figures``."""
        names = {"topic": ("topic",), "partition": ("topic", "partition"), "producer": ("producer_id",)}
        for key in sorted(self._groups) if self._by == "producer" else self._groups:
            yield dict(zip(names[self._by], key, strict=True)) | self._groups[key].as_dict()

    def add(self, view: LogView) -> list[Finding]:
        """Count one partition. Returns findings about damaged parts that could not be counted."""
        findings: list[Finding] = []
        start = view.log_start_offset
        if self._by != "producer":
            self._groups[self._key(view, NO_PRODUCER_ID)]  # a partition without batches also has a row
        segments = view.segments
        first = segment_containing(segments, start)
        scan = TransactionScan(segments[first].base_offset if segments else 0)
        for headers in header_pass(segments, first, scan):
            self._add_batches(view, headers, start)
            self._add_transactions(view, _with_end_times(scan.ended, headers.index, start))
            scan.ended.clear()  # a log may have more ended transactions than memory
            findings += _damage(headers)
        self._add_transactions(view, [(transaction, None) for transaction in scan.open_transactions()])
        return findings

    def _key(self, view: LogView, producer_id: int) -> tuple[Any, ...]:
        if self._by == "producer":
            return (producer_id,)
        return (view.topic,) if self._by == "topic" else tuple(view.topic_partition)

    def _add_batches(self, view: LogView, headers: SegmentHeaders, start: int) -> None:
        import numpy as np

        index = headers.index
        counts = np.asarray(index.last_offset) >= start
        counts[headers.misplaced] = False
        chosen = np.flatnonzero(counts)
        if self._by != "producer":
            self._groups[self._key(view, NO_PRODUCER_ID)].add_batches(index, chosen)
            return
        producers = np.asarray(index.producer_id)[chosen]
        order = np.argsort(producers, kind="stable")
        ids, begins = np.unique(producers[order], return_index=True)
        parts = np.split(chosen[order], begins[1:])
        for producer_id, part in zip(ids.tolist(), parts, strict=False):
            self._groups[self._key(view, producer_id)].add_batches(index, part)

    def _add_transactions(self, view: LogView, ranges: Iterable[tuple[TransactionRange, int | None]]) -> None:
        by_group = defaultdict(list)
        for ended in ranges:
            by_group[self._key(view, ended[0].producer_id)].append(ended)
        for key, found in by_group.items():
            self._groups[key].add_transactions(found)


def _with_end_times(
    ranges: list[TransactionRange], index: BatchIndex, start: int
) -> Iterator[tuple[TransactionRange, int | None]]:
    """Yield the transactions that end at or after position ``start``, with the times of their markers in this
    segment."""
    times = index.max_timestamp
    for transaction in ranges:
        if transaction.last_offset >= start:
            i = index.find(transaction.last_offset) if transaction.outcome in ENDED else len(index)
            yield transaction, times[i] if i < len(index) else None


def _damage(headers: SegmentHeaders) -> Iterator[Finding]:
    remedy = "it is not counted; 'txnkafka verify' shows details"
    path, index = headers.segment.path, headers.index
    for i in headers.misplaced:
        reason = "the batch's offsets do not fit between those of its neighbours"
        yield Finding(path, index.position[i], "error", "misplaced-batch", reason, remedy)
    if index.stop != "end":
        reason = f"damaged from here on: {index.stop_reason}"
        yield Finding(path, index.end_position, "error", "damaged-segment", reason, remedy)
