"""A minimal partition: it appends headers and updates the producer table."""

from __future__ import annotations

from collections.abc import Iterable

from tests.models.headers import COMMIT, data, encode, marker
from txnkafka._core.producer_rules import Checked
from txnkafka._core.producer_table import CLIENT, COORDINATOR, ProducerTable
from txnkafka._core.scan import BatchHeader, scan
from txnkafka._core.validate import read_batch
from txnkafka.model import CompletedTxn, ProducerStateEntry

__all__ = ["NEVER", "TIME", "Partition", "Replayed"]

NEVER = 2**62
TIME = 1000  # default for all batches


class Partition:
    """A log of headers, and its producer table."""

    def __init__(self) -> None:
        self.table = ProducerTable()
        self.log = bytearray()
        self.end_offset = 0

    def check(self, header: BatchHeader, origin: int = CLIENT, **more: int) -> Checked:
        """Return the table's answer for a batch."""
        return self.table.check(read_batch(encode([header])), origin, **more)  # type: ignore[arg-type]

    def append(self, header: BatchHeader, origin: int = CLIENT, **more: int) -> CompletedTxn | None:
        """Append a batch, which the table must accept."""
        checked = self.check(header, origin, **more)
        assert (checked.code, checked.is_duplicate) == (0, False), checked
        batch = encode([header])
        self.log += batch
        self.end_offset = header.last_offset + 1
        return self.table.append(read_batch(batch))

    def data(
        self, sequence: int, *, epoch: int = 0, records: int = 1, producer_id: int = 1, **fields: int
    ) -> BatchHeader:
        """Return the next batch, not transactional."""
        last_offset = self.end_offset + records - 1
        fields = {"transactional": 0, "last_offset": last_offset} | fields
        return data(producer_id, epoch, self.end_offset, sequence=sequence, **fields)

    def txn(self, sequence: int, **fields: int) -> BatchHeader:
        """Return the next batch, transactional."""
        return self.data(sequence, transactional=1, **fields)

    def marker(
        self, kind: int = COMMIT, *, epoch: int = 0, producer_id: int = 1, **fields: int
    ) -> BatchHeader:
        """Return the next batch, an end marker."""
        return marker(producer_id, epoch, self.end_offset, kind, **fields)

    def end(self, kind: int = COMMIT, *, version: int = 1, **fields: int) -> CompletedTxn | None:
        """Append a marker."""
        return self.append(self.marker(kind, **fields), COORDINATOR, transaction_version=version)

    def reload(self) -> None:
        """Replace the table by one loaded from a snapshot."""
        self.table.load(self.table.snapshot(), now_ms=TIME, expiration_ms=NEVER)

    def entry(self, producer_id: int = 1) -> ProducerStateEntry:
        """Return the state of a producer."""
        entry = self.table.entry(producer_id)
        assert entry is not None
        return entry


class Replayed:
    """A table into which headers are replayed, and the completed transactions."""

    def __init__(self, *batches: BatchHeader, start_offset: int = 0) -> None:
        self.table = ProducerTable()
        self.completed: list[CompletedTxn] = []
        self.replay(batches, start_offset)

    def replay(self, batches: Iterable[BatchHeader], start_offset: int = 0) -> None:
        """Replay the next batches of the log."""
        self.table.replay(scan(encode(batches)), start_offset, self.completed)

    def entries(self) -> list[ProducerStateEntry]:
        """Return all producers."""
        return self.table.entries()

    @property
    def opened(self) -> list[tuple[int, int]]:
        """Return the producers and first offsets of the open transactions."""
        return [(each.producer_id, each.current_txn_first_offset) for each in self.table.open_transactions()]
