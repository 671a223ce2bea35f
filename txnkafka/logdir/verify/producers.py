"""Replays the producers and transactions of a log once, and compares the two kinds of derived files:
``.txnindex`` and ``.snapshot``.

A ``.txnindex`` must contain exactly the aborted transactions with markers in its segment. The severity of a
fault depends on the broker's next start: it rebuilds the files of the segments that it recovers, and trusts
all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from txnkafka._core.producer_table import ProducerTable
from txnkafka._core.read_committed import TransactionRange, TransactionScan
from txnkafka._core.scan import BatchHeader, BatchIndex
from txnkafka.env import FileSystem
from txnkafka.errors import CorruptFileError
from txnkafka.logdir.verify.findings import Findings
from txnkafka.logdir.verify.indexes import read_beside
from txnkafka.logdir.verify.order import OffsetOrder
from txnkafka.logdir.verify.snapshots import Replayed, snapshot_problems
from txnkafka.model import CompletedTxn, ProducerStateEntry
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL, CONTROL_ABORT
from txnkafka.shown import counted, offset_range
from txnkafka.storage.formats import AbortedTxn, TxnIndexProblem, iter_producer_snapshot, iter_txn_index
from txnkafka.storage.formats.limits import SNAPSHOT_LIMIT, TXN_INDEX_LIMIT
from txnkafka.storage.formats.segment_reader import SegmentReader


class _SegmentTransactions(NamedTuple):
    """The transactions ended by the markers of one segment, by producer id and offset of the marker."""

    aborted: dict[tuple[int, int], TransactionRange]
    completed: dict[tuple[int, int], tuple[CompletedTxn, int]]  # with ``intact_from`` at that time
    markers: set[tuple[int, int]]


class ProducerCheck:
    """Follows the producers of one partition. ``snapshots`` are paths by offset. ``counts_sequences`` is
    False if each batch begins at sequence 0, like the group coordinator's batches."""

    def __init__(
        self,
        findings: Findings,
        order: OffsetOrder,
        file_system: FileSystem,
        snapshots: dict[int, str],
        *,
        counts_sequences: bool = True,
    ) -> None:
        self._counts_sequences = counts_sequences
        self._findings = findings
        self._file_system = file_system
        self._order = order
        self._first_offset = order.intact_from
        self._scan = TransactionScan(self._first_offset)
        self._producers = ProducerTable()
        self._completed: list[CompletedTxn] = []
        self._paths = snapshots
        self._waiting = sorted(offset for offset in snapshots if offset >= self._first_offset)
        self._active = False
        self._cause = ""  # the damage after which the producers are unknown
        self._segment: SegmentReader | None = None
        self._ended = _SegmentTransactions({}, {}, set())

    @property
    def has_producers(self) -> bool:
        """True if a snapshot of the log would contain producers; a broker replays from the log start on."""
        return any(entry.last_offset >= self._first_offset for entry in self._producers.entries())

    @property
    def has_open_transactions(self) -> bool:
        """True if the last stable offset depends on a snapshot."""
        return self._producers.open_count > 0

    def begin_segment(self, segment: SegmentReader, *, missing_before: bool) -> None:
        """Continue with the next segment."""
        if missing_before:
            self.damage("missing-segment")
        self._segment = segment
        self._ended = _SegmentTransactions({}, {}, set())

    def damage(self, code: str) -> None:
        """Record that the next bytes are not batches: markers may be lost there. ``code`` is the code of that
        finding, empty at the log end."""
        self._scan.hole()
        self._cause = self._cause or code

    def window(self, index: BatchIndex, excluded: list[int]) -> None:
        """Replay the next batches."""
        if not len(index):
            return
        self._active = self._active or max(index.producer_id) >= 0
        if any(not index.crc_wrong[i] for i in excluded):  # its place in the order of offsets is unknown
            self._cause = self._cause or "misplaced-batch"
        start = 0
        last_offset = max(index.last_offset) if excluded else index.last_offset[len(index) - 1]
        while self._waiting and self._waiting[0] <= last_offset:
            stop = max(start, index.find(self._waiting[0]))
            self._replay(index, excluded, start, stop)
            self._compare_snapshot(self._waiting.pop(0))
            start = stop
        self._replay(index, excluded, start, len(index))
        if self._active:
            self._transactions(index, excluded)

    def _replay(self, index: BatchIndex, excluded: list[int], start: int, stop: int) -> None:
        left_out = next((i for i in excluded if start <= i < stop), None)
        if left_out is not None:
            self._cause = self._cause or damage_code(index, left_out)
        if not self._active or start == stop:
            return
        anomalies: list[tuple[str, int, str]] = []
        for i in (*excluded, stop):
            self._producers.replay_checked(index, start, min(i, stop), self._completed, anomalies)
            start = max(start, i + 1)
        for name, number, text in anomalies:
            self._anomaly(name, index[number], text)

    def _transactions(self, index: BatchIndex, excluded: list[int]) -> None:
        start = 0
        for i in (*excluded, len(index)):
            self._scan.feed(index, start, i)
            if i < len(index) and (index.crc_wrong[i] or index.attributes[i] & ATTRIBUTE_CONTROL):
                self._scan.hole()
            start = i + 1
        for transaction in self._scan.ended:
            key = transaction.producer_id, transaction.last_offset
            if transaction.outcome == "aborted":
                self._ended.aborted[key] = transaction
            elif transaction.outcome == "undecided":
                self._undecided(transaction)
        self._scan.ended.clear()
        for completed in self._completed:
            if completed.is_aborted:
                key = completed.producer_id, completed.last_offset
                self._ended.completed[key] = completed, self._order.intact_from
        self._completed.clear()
        columns = zip(index.control_type, index.producer_id, index.base_offset, strict=True)
        self._ended.markers.update(
            (producer_id, offset) for kind, producer_id, offset in columns if kind == CONTROL_ABORT
        )

    def _undecided(self, transaction: TransactionRange) -> None:
        assert self._segment is not None
        self._findings.add(
            "undecided-transaction", self._segment.path,
            f"the end marker of producer {transaction.producer_id}'s transaction at offsets "
            f"{transaction.first_offset} to {transaction.last_offset} is missing or damaged: "
            f"its {transaction.records} records are held back from read_committed",
            cause=self._cause,
        )  # fmt: skip

    def _anomaly(self, code: str, header: BatchHeader, text: str) -> None:
        assert self._segment is not None
        restarts = code == "sequence_back" and header.base_sequence == 0
        if restarts and not self._counts_sequences:
            return
        # an idempotent producer whose state expired may restart at 0 with the same epoch
        severity = "note" if restarts else None
        self._findings.add(
            code.replace("_", "-"), self._segment.path, text,
            position=header.position, severity=severity, cause=self._cause,
        )  # fmt: skip

    def end_segment(self, *, believed: bool, damaged: bool, written: bool) -> None:
        """Compare the segment's ``.txnindex``. ``believed``: the broker would use the file unchecked.
        ``written``: all entries should be in the file."""
        segment = self._segment
        assert segment is not None
        path = segment.files.get("txnindex")
        if path is None:
            if written:
                self._missing_txn_index(segment.path.removesuffix(".log") + ".txnindex", believed=believed)
            return
        data = read_beside(segment, "txnindex", TXN_INDEX_LIMIT, self._findings)
        if data is None:
            return
        problems: list[TxnIndexProblem] = []
        missing = dict(self._ended.aborted) if written else {}
        for _, entry in iter_txn_index(data, segment.base_offset, problems):
            missing.pop((entry.producer_id, entry.last_offset), None)
        for problem in problems:
            self._findings.add("bad-txnindex", path, problem.text, position=problem.position)
        for key in missing:
            severity = "error" if believed else "note"
            self._findings.add(
                "txnindex-lacks-entry",
                path,
                f"{_aborted(self._ended.aborted[key])} is missing",
                severity=severity,
            )
        for position, entry in iter_txn_index(data, segment.base_offset):
            self._entry(path, position, entry, damaged=damaged)

    def _missing_txn_index(self, path: str, *, believed: bool) -> None:
        aborted = len(self._ended.aborted)
        if aborted:
            text = f"the file is missing, but the segment ends {counted(aborted, 'aborted transaction')}"
            if believed:
                text += ": the broker shows their records as if they were committed"
            self._findings.add("missing-txnindex", path, text, severity="error" if believed else "note")

    def _entry(self, path: str, position: int, entry: AbortedTxn, *, damaged: bool) -> None:
        key = entry.producer_id, entry.last_offset
        if key not in self._ended.markers:
            if not damaged:
                self._findings.add(
                    "txnindex-contradicts-log", path,
                    f"the index says that producer {entry.producer_id} aborted "
                    f"{offset_range(entry.first_offset, entry.last_offset)}, but the log has no ABORT marker "
                    "of it there",
                    position=position,
                )  # fmt: skip
            return
        completed, intact_from = self._ended.completed.get(key, (None, 0))
        if completed is None or min(entry.first_offset, completed.first_offset) < intact_from:
            return
        if entry.first_offset != completed.first_offset:
            self._findings.add(
                "txnindex-wrong-entry", path,
                f"the transaction of producer {entry.producer_id} that was aborted at {entry.last_offset} "
                f"began at {completed.first_offset}, not at {entry.first_offset}",
                position=position,
            )  # fmt: skip
        if (
            entry.last_stable_offset != completed.last_stable_offset
            and entry.last_stable_offset >= intact_from
        ):
            self._findings.add(
                "txnindex-last-stable-offset", path,
                f"the last stable offset at marker {entry.last_offset} was {completed.last_stable_offset}, "
                f"not {entry.last_stable_offset}",
                position=position,
            )  # fmt: skip

    def end(self, *, being_written: bool, cause: str) -> None:
        """Check the snapshots at and beyond the end of the log; ``cause`` is the code of the damage in the
        last segment."""
        for offset in self._waiting:
            if offset <= self._order.next_offset:
                self._compare_snapshot(offset)
            elif not being_written:
                text = f"the log ends at offset {self._order.next_offset}"
                self._findings.add("snapshot-beyond-log-end", self._paths[offset], text, cause=cause)

    def _compare_snapshot(self, offset: int) -> None:
        path = self._paths[offset]
        entries = self._read_snapshot(path)
        if entries is None:
            return
        producers = {entry.producer_id: entry for entry in self._producers.entries()}
        replayed = Replayed(offset, producers, self._first_offset, self._order.intact_from)
        for problem in snapshot_problems(entries, replayed):
            if problem.lacking:
                self._findings.add("snapshot-lacks-producer", path, problem.text, cause=self._cause)
                continue
            severity = "error" if offset == max(self._paths) else "warning"
            self._findings.add(
                "snapshot-contradicts-log", path, problem.text,
                severity="note" if self._cause else severity, cause=self._cause,
            )  # fmt: skip

    def _read_snapshot(self, path: str) -> Iterator[ProducerStateEntry] | None:
        try:
            return iter_producer_snapshot(self._file_system.read(path, SNAPSHOT_LIMIT))
        except CorruptFileError as error:
            self._findings.add("bad-snapshot", path, error.reason, position=error.position)
        except OSError as error:
            self._findings.add("unreadable-file", path, f"cannot be read: {error.strerror or error}")
        return None


def damage_code(index: BatchIndex, number: int) -> str:
    """Return the finding code for a batch that is left out."""
    return "corrupt-batch" if index.crc_wrong[number] else "misplaced-batch"


def _aborted(transaction: TransactionRange) -> str:
    return (
        f"the aborted transaction of producer {transaction.producer_id} "
        f"at {offset_range(transaction.first_offset, transaction.last_offset)}"
    )
