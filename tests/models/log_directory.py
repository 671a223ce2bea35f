"""A valid log directory of a broker, small, with every kind of file that Kafka keeps in it.

``t-0`` has the segments 0 and 8: a committed and an aborted transaction, plain and idempotent batches, and in
the second segment an aborted transaction that began in the first and an open one. Derived files are made by
the models, not by the code under test.
"""

from __future__ import annotations

import struct
from pathlib import Path

from tests.models.builder import Batch, PlainRecord, end_marker
from tests.models.producer_state import ProducerStateManager, write_snapshot
from txnkafka._core.scan import scan

__all__ = ["LogDirectory", "abort", "commit", "data", "idempotent", "transactional"]

TIME = 1_700_000_000_000
TOPIC_ID = "LO2dyRT9TU2kZpbmI5Tv5Q"
CHECKPOINTS = {
    "replication-offset-checkpoint": 15,
    "recovery-point-offset-checkpoint": 15,
    "log-start-offset-checkpoint": 0,
}


def data(base_offset: int, count: int = 2, **fields: object) -> bytes:
    """Encode a batch of ``count`` records, whose timestamps grow by a millisecond per offset."""
    records = [PlainRecord(b"k", b"value %d" % i, TIME + base_offset + i) for i in range(count)]
    fields = {"partition_leader_epoch": 0, **fields}
    return Batch(records=records, base_offset=base_offset, **fields).encode()  # type: ignore[arg-type]


def idempotent(base_offset: int, producer_id: int, sequence: int, count: int = 2, **fields: object) -> bytes:
    """Encode the same from an idempotent producer."""
    fields = {"producer_epoch": 0, **fields}
    return data(base_offset, count, producer_id=producer_id, base_sequence=sequence, **fields)


def transactional(
    base_offset: int, producer_id: int, sequence: int, count: int = 2, **fields: object
) -> bytes:
    """Encode the same in a transaction."""
    return idempotent(base_offset, producer_id, sequence, count, transactional=True, **fields)


def commit(base_offset: int, producer_id: int, **fields: object) -> bytes:
    """Encode a COMMIT marker."""
    return _marker(1, base_offset, producer_id, fields)


def abort(base_offset: int, producer_id: int, **fields: object) -> bytes:
    """Encode an ABORT marker."""
    return _marker(0, base_offset, producer_id, fields)


def _marker(control_type: int, base_offset: int, producer_id: int, fields: dict[str, object]) -> bytes:
    where = {"base_offset": base_offset, "partition_leader_epoch": 0, "timestamp": TIME + base_offset}
    return end_marker(
        control_type,
        **{**where, "producer_id": producer_id, "producer_epoch": 0, **fields},  # type: ignore[arg-type]
    )


class LogDirectory:
    """Writes the directory; ``segments`` may be replaced before ``write``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.partition = root / "t-0"
        self.partition.mkdir(parents=True)
        self.segments: dict[int, list[bytes]] = {
            0: [
                transactional(0, 7, 0),
                commit(2, 7),
                transactional(3, 8, 0),
                abort(5, 8),
                transactional(6, 7, 2),
            ],
            8: [idempotent(8, 9, 0), abort(10, 7), data(11), transactional(13, 8, 2)],
        }

    @property
    def end_offset(self) -> int:
        last = max(self.segments)
        batches = scan(b"".join(self.segments[last]))
        return batches[len(batches) - 1].last_offset + 1 if len(batches) else last

    def file(self, base_offset: int, kind: str = "log") -> Path:
        return self.partition / f"{base_offset:020}.{kind}"

    def write(self, *, clean: bool = True) -> LogDirectory:
        """Write all files, as after a clean stop or a kill."""
        if clean:
            (self.root / ".kafka_cleanshutdown").write_bytes(b'{"version":0,"brokerEpoch":15}')
        (self.root / "meta.properties").write_bytes(b"version=1\ncluster.id=c\nnode.id=1\n")
        for name, offset in CHECKPOINTS.items():
            (self.root / name).write_text(f"0\n1\nt 0 {min(offset, self.end_offset)}\n")
        (self.partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
        (self.partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        self._segments(clean=clean)
        return self

    def _segments(self, *, clean: bool) -> None:
        state = ProducerStateManager()
        for base_offset, batches in sorted(self.segments.items()):
            if base_offset:
                self.file(base_offset, "snapshot").write_bytes(write_snapshot(state.rows()))
            log = b"".join(batches)
            self.file(base_offset).write_bytes(log)
            self._indexes(base_offset, log)
            before = len(state.completed)
            for batch in scan(log):
                state.update(batch)  # type: ignore[arg-type]  # the model's header has the same fields
            aborted = [each for each in state.completed[before:] if each[3]]
            if aborted:
                entries = (
                    struct.pack(">hqqqq", 0, producer_id, first, last, last_stable_offset)
                    for producer_id, first, last, _, last_stable_offset in aborted
                )
                self.file(base_offset, "txnindex").write_bytes(b"".join(entries))
        if clean:
            self.file(self.end_offset, "snapshot").write_bytes(write_snapshot(state.rows()))

    def _indexes(self, base_offset: int, log: bytes) -> None:
        offsets, times, largest = [], [], -1
        for batch in scan(log):
            if batch.position:
                offsets.append(struct.pack(">ii", batch.last_offset - base_offset, batch.position))
            if batch.max_timestamp > largest:
                largest = batch.max_timestamp
                times.append(struct.pack(">qi", largest, batch.last_offset - base_offset))
        self.file(base_offset, "index").write_bytes(b"".join(offsets))
        self.file(base_offset, "timeindex").write_bytes(b"".join(times))

    def patch(self, path: Path, position: int, content: bytes) -> None:
        """Overwrite bytes of a file."""
        before = path.read_bytes()
        path.write_bytes(before[:position] + content + before[position + len(content) :])

    def position(self, base_offset: int, number: int) -> int:
        """Return the position of batch ``number`` of a segment."""
        return sum(map(len, self.segments[base_offset][:number]))
