"""Somebody who writes to one partition, through our log or a broker, and knows what he has written."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.conformance.wire import Wire
from tests.conformance.written import Batch, Marker, Record, Written
from txnkafka import TopicPartition
from txnkafka._core.encode import end_txn_marker
from txnkafka.env import SystemClock
from txnkafka.errors import KafkaError
from txnkafka.record.builder import build_batch
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["CODECS", "EPOCH", "Author"]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
EPOCH = 5
OUT_OF_ORDER = 45


class Author:
    """Writes with producers of epoch 5. ``to`` says where from now on."""

    def __init__(
        self, partition: TopicPartition, *, log_append_time: bool = False, keyed: bool = False
    ) -> None:
        self.partition = partition
        self.written = Written()
        self._rng = random.Random(str(partition))
        self._keyed = keyed
        self._type = "LogAppendTime" if log_append_time else "CreateTime"
        self._place: PartitionLog | Wire | None = None
        self._sequences: dict[int, int] = {}
        self._last: dict[int, tuple[bytes, int]] = {}

    def to(self, place: PartitionLog | Wire) -> Author:
        """Write there."""
        self._place = place
        return self

    @property
    def log(self) -> PartitionLog:
        """Our log that is written to."""
        assert isinstance(self._place, PartitionLog)
        return self._place

    def send(
        self, producer_id: int = -1, *, count: int = 3, transactional: bool = False, codec: str = "none"
    ) -> None:
        """A batch that is taken."""
        now_ms = SystemClock().now_ms()
        rows = [self._row(now_ms - self._rng.randrange(1000)) for _ in range(count)]
        batch = self._batch(rows, producer_id, self._sequences.get(producer_id, 0), transactional, codec)
        code, first = self._append(batch, now_ms)
        assert (code, first) == (0, self.written.end), self.partition
        self._last[producer_id] = batch, first
        self._sequences[producer_id] = self._sequences.get(producer_id, 0) + count
        stamped = now_ms if self._type == "LogAppendTime" else None
        records = [
            Record(first + delta, stamped or timestamp, self._type, key, value, tuple(headers))
            for delta, (key, value, timestamp, headers) in enumerate(rows)
        ]
        self.written.add(Batch(first, first + count - 1, records, producer_id, transactional))

    def end(self, producer_id: int, *, commit: bool) -> None:
        """The end of a transaction."""
        offset = self.written.end
        if isinstance(self._place, Wire):
            code = self._place.write_marker(
                self.partition, producer_id, EPOCH, commit=commit, coordinator_epoch=1
            )
            assert code == 0, self.partition
        else:
            marker = end_txn_marker(
                base_offset=0,
                timestamp=SystemClock().now_ms(),
                producer_id=producer_id,
                producer_epoch=EPOCH,
                coordinator_epoch=1,
                commit=commit,
            )
            assert self._append(marker, SystemClock().now_ms(), AppendOrigin.COORDINATOR) == (0, offset)
        self.written.add(Marker(offset, producer_id, commit))

    def cut(self, cut: Callable[[int], object], offset: int) -> None:
        """Let the log be cut there; its producers go on from what is left."""
        cut(offset)
        self.follow(self.log)

    def follow(self, log: PartitionLog) -> None:
        """Go on from what is left in this log."""
        self._place = log
        self.written.cut(log.log_end_offset)
        known = {each.producer_id: each for each in self.log.producers.entries()}
        self._sequences = {each: known[each].last_sequence + 1 for each in known}
        self._last = {each: last for each, last in self._last.items() if last[1] < self.written.end}

    def is_open(self, producer_id: int) -> bool:
        """Whether the producer has a transaction that has not ended."""
        return self.written.is_open(producer_id)

    def check_sequences(self) -> int:
        """What a producer has sent last is known, what would leave a gap is refused. Returns how many
        producers there are."""
        for producer_id, (batch, first) in self._last.items():
            if producer_id < 0 or not self._is_newest(producer_id, first):
                continue
            repeated = self._append(batch, SystemClock().now_ms())
            assert repeated == self._repeated(producer_id, batch, first), self.partition
            gap = self._batch([self._row(0)], producer_id, self._sequences[producer_id] + 1, batch[22] & 16)
            assert self._append(gap, SystemClock().now_ms())[0] == OUT_OF_ORDER, self.partition
        return len([each for each in self._last if each >= 0])

    def _repeated(self, producer_id: int, batch: bytes, first: int) -> tuple[int, int]:
        """The answer to a batch that is there. We refuse one of a transaction that has ended
        (DIVERGENCES.md)."""
        is_ended = batch[22] & 16 and not self.is_open(producer_id)
        return (OUT_OF_ORDER, -1) if is_ended and isinstance(self._place, PartitionLog) else (0, first)

    def _is_newest(self, producer_id: int, first: int) -> bool:
        batches = [each for each in self.written.entries if isinstance(each, Batch)]
        return [each.offset for each in batches if each.producer_id == producer_id][-1] == first

    def _row(self, timestamp: int) -> tuple[bytes | None, bytes | None, int, list[tuple[str, bytes | None]]]:
        rng = self._rng
        headers: list[tuple[str, bytes | None]] = [("trace", rng.randbytes(3)), ("", None)]
        value = rng.choice((None, b"", rng.randbytes(rng.randrange(60)) * 2, b"text " * rng.randrange(40)))
        key = rng.choice((None, b"", b"key-%d" % rng.randrange(20)))
        key = b"key" if self._keyed and key is None else key
        return key, value, timestamp, headers if rng.random() < 0.2 else []

    def _batch(
        self, rows: object, producer_id: int, sequence: int, transactional: object, codec: str = "none"
    ) -> bytes:
        producer = {"producer_id": producer_id, "producer_epoch": EPOCH, "base_sequence": sequence}
        fields = producer if producer_id >= 0 else {}
        return bytes(
            build_batch(
                rows,
                compression=codec,
                transactional=bool(transactional),
                **fields,  # type: ignore[arg-type]
            )
        )

    def _append(
        self, batch: bytes, now_ms: int, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> tuple[int, int]:
        if isinstance(self._place, Wire):
            return self._place.produce(
                self.partition, batch, transactional_id="any" if batch[22] & 16 else None
            )
        epoch = max(0, self.log.epochs.latest or 0)
        try:
            info = self.log.append(
                batch, now_ms=now_ms, leader_epoch=epoch, origin=origin, transaction_version=0
            )
        except KafkaError as error:
            return error.code, -1
        return 0, info.first_offset
