"""The state of a metadata log up to an offset: its snapshot and the records after it.

Source: ``MetadataLoader``, ``KRaftControlRecordStateMachine``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.broker.registry.metadata_snapshot import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    Control,
    control_type,
    read_checkpoint,
    read_records,
)
from txnkafka.coordinator.registry.cluster_image import ClusterImage
from txnkafka.coordinator.registry.metadata_records import decode_control_body, decode_metadata
from txnkafka.errors import KafkaError, LogDirError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.broker.registry.metadata_snapshot import SnapshotId
    from txnkafka.coordinator.registry.metadata_records import LogRecord
    from txnkafka.env import DataFiles
    from txnkafka.record.batch import Record
    from txnkafka.storage.formats.segment_reader import LogFileReader

_RECORD_COST: Final = 2 << 10  # cost of one record, in bytes of a large one


class MetadataReplay:
    """The state: ``image``, and ``voters``, the last control records of the quorum if the log has them
    (KIP-853).

    ``timestamp`` belongs to the last record; ``size`` is the bytes of the records after the snapshot.
    ``formatted`` has the metadata records of ``0-0.checkpoint``, which ``kafka-storage format`` of Apache
    Kafka 4.4 leaves for the first start: they are not part of the state until the first start writes them to
    the log."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.timestamp = -1
        self.size = 0
        self.formatted: list[LogRecord] = []
        self._voters: dict[int, Control] = {}
        self._next_offset = 0

    @property
    def voters(self) -> list[Control]:
        """Key and value of KRAFT_VERSION and KRAFT_VOTERS; empty if the voters are in the configuration."""
        return [self._voters[kind] for kind in (KRAFT_VERSION, KRAFT_VOTERS) if kind in self._voters]

    @property
    def kraft_version(self) -> int:
        """The level of the feature ``kraft.version``: 1 if the voters are in the log."""
        level: int = self._body(KRAFT_VERSION).get("kraft_version", 0)
        return level

    @property
    def voter_ids(self) -> list[int]:
        """The node ids of the voters in the log."""
        return [voter["voter_id"] for voter in self._body(KRAFT_VOTERS).get("voters", ())]

    def _body(self, kind: int) -> dict[str, Any]:
        control = self._voters.get(kind)
        return {} if control is None else decode_control_body(kind, control[1]).value or {}

    def load(self, files: DataFiles, directory: str, snapshot: SnapshotId | None) -> Iterator[int]:
        """Load a snapshot; yield the cost of each record. Raises LogDirError, KafkaError, OSError."""
        if snapshot is None:
            return
        path = files.join(directory, snapshot.name)
        for record in read_checkpoint(files, path):
            if snapshot.end_offset or control_type(record) is not None:
                self._replay(record, path)
            else:
                self.formatted.append(decode_metadata(record.value))
            yield _RECORD_COST
        self._next_offset, self.size = snapshot.end_offset, 0

    def read(self, segment: LogFileReader, end_offset: int | None = None) -> Iterator[int]:
        """Replay the records of a segment below ``end_offset``; yield the cost of each. Raises
        CorruptRecordError, LogDirError for missing offsets, KafkaError, OSError."""
        for record in read_records(segment):
            if end_offset is not None and record.offset >= end_offset:
                return
            self.check_follows(record.offset, segment.path)
            if record.offset >= self._next_offset:
                self._replay(record, segment.path)
                self._next_offset = record.offset + 1
                yield _RECORD_COST

    def check_follows(self, offset: int, path: str) -> None:
        """Raise LogDirError if offsets before ``offset`` are missing, at which a record or segment begins,
        or the log ends: changes of the cluster are lost."""
        if offset > self._next_offset:
            raise LogDirError(
                f"{path}: the offsets {self._next_offset} to {offset - 1} of the metadata log are missing"
            )

    def _replay(self, record: Record, path: str) -> None:
        kind = control_type(record)
        if kind is not None:
            if kind in (KRAFT_VERSION, KRAFT_VOTERS):
                self._voters[kind] = record.key or b"", record.value or b""
            return
        self.timestamp = record.timestamp
        self.size += len(record.value or b"")
        try:
            self.image.replay(decode_metadata(record.value))
        except KafkaError as error:
            raise KafkaError(f"{path}: offset {record.offset}: {error}") from None
