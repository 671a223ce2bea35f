"""Logs that are full of transactions: 100,000 open ones, a million aborted ones, 100,000 transactional ids.
Both sides recover the same segment file: txnkafka's logs, and Kafka's UnifiedLog and TransactionStateManager
in a JVM that is warm.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.harness import Timing, timed
from bench.java import BUILD, JavaProcess
from bench.servers import fresh
from txnkafka._core.encode import encode_batch, end_txn_marker
from txnkafka.config import LogConfig
from txnkafka.coordinator.txn.transaction_partition import TransactionPartition, loaded_records
from txnkafka.env import LocalDataFiles
from txnkafka.model import TopicPartition
from txnkafka.storage.log.log_read import read
from txnkafka.storage.log.log_records import records_of_log
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.recovery.log_loader import Start, open_log
from txnkafka.wire.records import (
    TransactionMetadata,
    TransactionState,
    encode_transaction_key,
    encode_transaction_value,
)

__all__ = ["JavaLogSide", "LogSide", "Transactions"]

NOW_MS = 1_700_000_000_000
FETCH_BYTES = 64 << 10
ABORTING_PRODUCERS = 1000
# To be raised when other bytes are made for the same description.
VERSION = 1
WARM_ROUNDS = 5
MEMORY = ["-Xms2g", "-Xmx2g"]


@dataclass(frozen=True)
class Transactions:
    """A log with ``count`` transactions that are ``open``, or ``aborted``, or the states of ``count``
    transactional ids (``ids``)."""

    kind: str
    count: int

    @property
    def partition(self) -> TopicPartition:
        """The partition whose log it is."""
        return TopicPartition("__transaction_state" if self.kind == "ids" else "bench", 0)

    @property
    def segment(self) -> Path:
        """The data, created on first use."""
        path = BUILD / "bench" / "batches" / f"{self.kind}-{self.count}-v{VERSION}" / f"{0:020}.log"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            written = path.with_suffix(".part")
            with written.open("wb", buffering=1 << 20) as file:
                for batch in BATCHES[self.kind](self.count):
                    file.write(batch)
            written.rename(path)
        return path

    def place(self, name: str) -> Path:
        """A directory of a log with a copy of the segment, for a side of this name."""
        directory = fresh(f"{name}-{self.kind}") / str(self.partition)
        directory.mkdir()
        shutil.copyfile(self.segment, directory / self.segment.name)
        (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        return directory


def _data(producer_id: int, sequence: int, offset: int) -> bytearray:
    return encode_batch(
        [(None, b"%0100d" % offset, NOW_MS)],
        base_offset=offset,
        partition_leader_epoch=0,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )


def _marker(producer_id: int, offset: int, *, commit: bool) -> bytes:
    return end_txn_marker(
        base_offset=offset,
        timestamp=NOW_MS,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        commit=commit,
        partition_leader_epoch=0,
    )


def _open(count: int) -> Iterator[bytes | bytearray]:
    return (_data(number, 0, number) for number in range(count))


def _aborted(count: int) -> Iterator[bytes | bytearray]:
    """One record each, then its marker."""
    for number in range(count):
        sequence, producer_id = divmod(number, ABORTING_PRODUCERS)
        yield _data(producer_id, sequence, 2 * number)
        yield _marker(producer_id, 2 * number + 1, commit=False)


def _ids(count: int) -> Iterator[bytes | bytearray]:
    """The last state of each, every record in a batch of its own, as the coordinator appends it."""
    partitions = frozenset({TopicPartition("bench", 0)})
    for number in range(count):
        metadata = TransactionMetadata(
            transactional_id=f"transactional-id-{number}",
            producer_id=number,
            previous_producer_id=-1,
            next_producer_id=-1,
            producer_epoch=number % 1000,
            next_producer_epoch=-1,
            transaction_timeout_ms=60_000,
            state=TransactionState.ONGOING,
            topic_partitions=partitions,
            last_update_timestamp=NOW_MS,
            start_timestamp=NOW_MS,
            client_transaction_version=2,
        )
        key = encode_transaction_key(metadata.transactional_id)
        value = encode_transaction_value(metadata, 1)
        yield encode_batch([(key, value, NOW_MS)], base_offset=number, partition_leader_epoch=0)


BATCHES: dict[str, Callable[[int], Iterator[bytes | bytearray]]] = {
    "open": _open,
    "aborted": _aborted,
    "ids": _ids,
}


class _Side:
    """What both sides have: their copy of the log, the rounds, and the sum of what they have seen."""

    name: str
    output = "results"

    def __init__(self, source: Transactions, count: int) -> None:
        self._source, self._count = source, count
        self._rounds = 0
        self._sum = 0

    def run(self) -> Timing:
        """One round; see ``LogSide``."""
        timing, total = self._timed(self._rounds)
        self._rounds += 1
        self._sum += total
        return timing

    def _timed(self, number: int) -> tuple[Timing, int]:
        raise NotImplementedError

    def offsets(self, number: int) -> list[int]:
        """What is fetched in a round: data of random transactions."""
        chosen = random.Random(number)
        return [2 * chosen.randrange(self._source.count) for _ in range(self._count)]

    def digest(self) -> object:
        """The sum over all rounds."""
        return self._sum


class LogSide(_Side):
    """txnkafka. A round ends ``count`` of the open transactions, the oldest first, and looks where the log is
    stable after each; or fetches 64 KiB at ``count`` random offsets, without reading the slice; or loads all
    transactional ids."""

    name = "txnkafka"

    def warm(self) -> None:
        """Recover the log, and have a round."""
        config, directory = LogConfig(retention_ms=-1), str(self._source.place(self.name))
        opened = open_log(LocalDataFiles(), directory, self._source.partition, config, Start(), now_ms=NOW_MS)
        self._log = opened.log
        self._log.flush()
        for _ in range(WARM_ROUNDS if self._source.kind == "open" else 1):
            self.run()

    def _timed(self, number: int) -> tuple[Timing, int]:
        work = {"open": self._end, "aborted": self._fetch, "ids": self._load}[self._source.kind]
        timing: list[tuple[float, float]] = []
        units, total = work(number, timing)
        return Timing(*timing[0], units), total

    def _end(self, number: int, timing: list[tuple[float, float]]) -> tuple[int, int]:
        log, total = self._log, 0
        first = number * self._count
        markers = [_marker(first + i, 0, commit=True) for i in range(self._count)]
        with timed(timing):
            for marker in markers:
                log.append(marker, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR, transaction_version=0)
                log.offsets.advance_high_watermark(log.log_end_offset)
                total += log.last_stable_offset
        return self._count, total

    def _fetch(self, number: int, timing: list[tuple[float, float]]) -> tuple[int, int]:
        log, total = self._log, 0
        offsets = self.offsets(number)
        with timed(timing):
            for offset in offsets:
                fetched = read(log, offset, max_bytes=FETCH_BYTES)
                fetched.records.release()
                total += len(fetched.aborted_transactions or ())
        return self._count, total

    def _load(self, number: int, timing: list[tuple[float, float]]) -> tuple[int, int]:
        state = TransactionPartition(0)
        with timed(timing):
            records, _ = loaded_records((record.key, record.value) for record in records_of_log(self._log))
            for record in records:
                state.replay(record)
        return len(state.metadata), sum(known.producer_epoch for known in state.metadata.values())

    def close(self) -> None:
        """Close the log."""
        self._log.local.close_files()


class JavaLogSide(_Side):
    """Kafka's own classes; CPU time is that of the working thread."""

    name = "java"

    def __init__(self, source: Transactions, count: int) -> None:
        super().__init__(source, count)
        self._process = JavaProcess(MEMORY)

    def warm(self) -> None:
        """Recover the log, and run until the compiler has done most of its work. Open transactions are used
        up by that: then the other side has as many rounds."""
        self._process.ask("open-log", directory=self._source.place(self.name))
        for number in range(1, 1 if self._source.kind == "open" else WARM_ROUNDS):
            self._timed(number)
        for _ in range(WARM_ROUNDS if self._source.kind == "open" else 1):
            self.run()

    def _timed(self, number: int) -> tuple[Timing, int]:
        options: dict[str, object] = {"kind": self._source.kind}
        if self._source.kind == "open":
            options |= {"first": number * self._count, "count": self._count}
        if self._source.kind == "aborted":
            options |= {"bytes": FETCH_BYTES, "offsets": ",".join(map(str, self.offsets(number)))}
        answer = self._process.ask("use-log", **options)
        return Timing(answer["cpu_ns"] / 1e9, answer["wall_ns"] / 1e9, answer["units"]), answer["sum"]

    def close(self) -> None:
        """End the JVM."""
        self._process.close()
