"""A compacted log for tests: producers append to it, it is cleaned, read as by a consumer, and opened
again."""

from __future__ import annotations

from typing import NamedTuple

from tests.models.fetch_filter import AbortedTxn, decode_any, fetch, scan_log
from tests.unit.storage.reads import read
from txnkafka import TopicPartition
from txnkafka._core.encode import end_txn_marker
from txnkafka.config import CleanerConfig, LogConfig
from txnkafka.env import DataFiles
from txnkafka.model import IsolationLevel
from txnkafka.record.builder import build_batch
from txnkafka.storage.cleaner.cleaner_pass import CleanStats
from txnkafka.storage.cleaner.compaction import clean
from txnkafka.storage.formats.txn_index import AbortedTxn as IndexEntry
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.transactions import transactions_of
from txnkafka.storage.recovery.log_loader import Start, open_log
from txnkafka.testing.memory_files import MemoryFiles

__all__ = ["ABORT", "COMMIT", "DIRECTORY", "EMPTY", "NOW", "CompactedLog", "Row"]

NOW = 1_700_000_000_000
DIRECTORY = "/data/t-0"
DEFAULTS = {
    "segment_bytes": 1 << 20,
    "index_interval_bytes": 50,
    "cleanup_policy": "compact",
    "delete_retention_ms": 1000,
    "transaction_partition_verification_enable": False,
}
ABORT, COMMIT, EMPTY = "abort", "commit", "empty"


class Row(NamedTuple):
    """A batch: its base offset, its producer, and its keys or its kind."""

    offset: int
    producer_id: int
    what: str


class CompactedLog:
    """An open log, ``log``. Everything is flushed before it is cleaned."""

    def __init__(self, files: DataFiles | None = None, **config: object) -> None:
        self.files = files or MemoryFiles()
        for path in ("/data", DIRECTORY):
            if not self.files.exists(path):
                self.files.make_directory(path)
        self.config = LogConfig(**DEFAULTS | config)  # type: ignore[arg-type]
        self.now = NOW
        self._sequences: dict[tuple[int, int], int] = {}
        self.log = self._opened(Start())

    def _opened(self, start: Start) -> PartitionLog:
        return open_log(
            self.files, DIRECTORY, TopicPartition("t", 0), self.config, start, now_ms=self.now
        ).log

    # Writing

    def data(
        self,
        producer_id: int,
        *records: tuple[bytes | None, bytes | None],
        epoch: int = 0,
        codec: str = "none",
    ) -> int:
        """Append a batch of a transaction, of an idempotent producer (ids from 100 on) or without a producer
        (-1); return its offset."""
        sequence = self._sequences.get((producer_id, epoch), 0)
        self._sequences[producer_id, epoch] = sequence + len(records)
        batch = build_batch(
            [(key, value, self.now, []) for key, value in records],
            compression=codec,
            producer_id=producer_id,
            producer_epoch=epoch if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
            transactional=0 <= producer_id < 100,
        )
        return self.log.append(batch, now_ms=self.now).first_offset

    def end(self, producer_id: int, *, commit: bool, epoch: int = 0, version: int = 0) -> int:
        """Append a marker; return its offset."""
        marker = end_txn_marker(
            base_offset=0, timestamp=self.now, producer_id=producer_id, producer_epoch=epoch,
            coordinator_epoch=1, commit=commit,
        )  # fmt: skip
        return self.log.append(
            marker, now_ms=self.now, origin=AppendOrigin.COORDINATOR, transaction_version=version
        ).first_offset

    def commit(self, producer_id: int, *records: tuple[bytes, bytes | None]) -> None:
        """Append a committed transaction."""
        self.data(producer_id, *records)
        self.end(producer_id, commit=True)

    def abort(self, producer_id: int, *records: tuple[bytes, bytes | None]) -> None:
        """Append an aborted transaction."""
        self.data(producer_id, *records)
        self.end(producer_id, commit=False)

    def roll(self) -> None:
        """Roll the log."""
        self.log.roll(self.now)

    def put(self, *batches: bytes) -> None:
        """Write batches that no append accepts, as left by another cleaner or an old broker."""
        for batch in batches:
            (header,) = scan_log(batch)[0]
            assert header.last_offset >= self.log.log_end_offset
            active, size = self.log.active, len(batch)
            active.write(active.size, [batch])
            active.note(active.size, size, header.last_offset, header.max_timestamp)
            active.size += size
            self.log.offsets.on_append(header.last_offset + 1)

    # Cleaning

    def clean(self, *, dirty_from: int = 0, after_ms: int = 0, memory: int = 1 << 20) -> CleanStats:
        """Clean all closed segments, ``after_ms`` later."""
        self.now += after_ms
        self.log.flush()
        config = CleanerConfig(dedupe_buffer_size=memory)
        return clean(self.log, now_ms=self.now, dirty_from=dirty_from, config=config)

    def reopen(self, *, clean: bool = True, snapshots: bool = True) -> None:
        """Close the log, or flush it and do not close it, then open it again, optionally without
        snapshots."""
        end = self.log.log_end_offset
        if clean:
            self.log.close()
        else:
            self.log.flush()
            self.log.local.close_files()
        if not snapshots:
            for entry in self.files.list(DIRECTORY):
                if entry.name.endswith((".snapshot", ".txnindex", "index")):
                    self.files.remove(self.files.join(DIRECTORY, entry.name))
        self.log = self._opened(Start(clean, end if clean else 0, self.log.log_start_offset))

    # Reading

    def content(self) -> bytes:
        """Return the bytes of all segments, concatenated."""
        return b"".join(bytes(segment.read(0, segment.size)) for segment in self.log.segments)

    def rows(self) -> list[Row]:
        """Describe every batch."""
        data = self.content()
        rows = []
        for header in scan_log(data)[0]:
            content = data[header.position : header.position + header.size]
            if header.count == 0:
                what = EMPTY
            elif header.attributes & 0x20:
                what = (ABORT, COMMIT)[header.control_type]
            else:
                keys = [(each.key or b"-").decode() for each in decode_any(content)]
                what = " ".join(keys)
            rows.append(Row(header.base_offset, header.producer_id, what))
        return rows

    def records(self) -> list[tuple[int, bytes | None, bytes | None]]:
        """Return what a read_committed consumer gets: offsets, keys and values."""
        self.log.flush()
        found = []
        offset = self.log.log_start_offset
        while offset < self.log.last_stable_offset:
            answer = read(self.log, offset, max_bytes=300, isolation_level=IsolationLevel.READ_COMMITTED)
            data = bytes(answer.records)
            headers = scan_log(data)[0]
            if not headers:
                break
            aborted = [AbortedTxn(*each[1:]) for each in answer.aborted_transactions or []]
            end = self.log.last_stable_offset
            fetched = fetch(data, headers, offset, end, aborted)
            found += [(each.offset, each.key, each.value) for each in fetched]
            offset = headers[-1].last_offset + 1
        return found

    def view(self) -> dict[bytes, bytes]:
        """Return the last committed value of each key."""
        view: dict[bytes, bytes] = {}
        for _, key, value in self.records():
            if key is not None and value is not None:
                view[key] = value
            elif key is not None:
                view.pop(key, None)
        return view

    def producers(self) -> list[tuple[int, ...]]:
        """Return the state of each producer: epoch, last sequence, last data, open transaction."""
        return sorted(
            (
                entry.producer_id, entry.producer_epoch, entry.last_sequence, entry.last_offset,
                entry.current_txn_first_offset,
            )
            for entry in self.log.producers.entries()
        )  # fmt: skip

    def aborted(self) -> list[IndexEntry]:
        """Return the entries of all transaction indexes."""
        return [entry for each in self.log.segments for entry in transactions_of(self.log, each).entries]

    def names(self, *suffixes: str) -> list[str]:
        """Return the files with one of the suffixes."""
        return sorted(entry.name for entry in self.files.list(DIRECTORY) if entry.name.endswith(suffixes))
