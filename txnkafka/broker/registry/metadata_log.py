"""``MetadataLog``: the owner of ``__cluster_metadata-0``, the registry of a cluster of one node.

The log has Kafka's own format (KRaft), so that an Apache Kafka started on the directory knows every topic and
every assigned producer id. Opening it elects the node in the next epoch: first ``quorum-state``, then a
LEADER_CHANGE record, then the rest of a change that an earlier stop left open.

Source: ``KafkaRaftClient``, ``QuorumController``, ``FileQuorumStateStore``.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Final

from txnkafka._core.encode import encode_batch
from txnkafka.broker.registry.metadata_replay import MetadataReplay
from txnkafka.broker.registry.metadata_snapshot import (
    control_type,
    find_snapshots,
    read_checkpoint,
    remove_leftovers,
)
from txnkafka.config import LogConfig
from txnkafka.coordinator.registry import metadata_records
from txnkafka.coordinator.registry.features import UNKNOWN_LEVEL_REMEDY, unknown_levels
from txnkafka.coordinator.registry.metadata_records import (
    decode_metadata,
    encode_leader_change,
    encode_metadata,
    encode_voter,
)
from txnkafka.env import make_directories, replace_file
from txnkafka.errors import KafkaError, LogDirError
from txnkafka.model import TopicPartition
from txnkafka.storage.formats.checkpoint import format_partition_metadata
from txnkafka.storage.formats.layout import (
    BOOTSTRAP_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    file_name,
    parse_segment_file,
)
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.recovery.log_loader import Start, open_log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txnkafka.broker.registry.metadata_snapshot import SnapshotId
    from txnkafka.coordinator.registry.metadata_records import LogRecord
    from txnkafka.env import DataFiles
    from txnkafka.storage.log.partition_log import PartitionLog

LOG = logging.getLogger("txnkafka.broker")
METADATA_PARTITION: Final = TopicPartition("__cluster_metadata", 0)
CONTROLLER: Final = ("CONTROLLER", "127.0.0.1", 9093)
"""Name and address of the controller listener for the next owner, unless another one is recorded."""
_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"  # Uuid.METADATA_TOPIC_ID
_CONFIG: Final = LogConfig(
    segment_bytes=1 << 30, retention_ms=-1, retention_bytes=-1, cleanup_policy="delete",
    max_message_bytes=8 << 20,
)  # fmt: skip
_QUORUM_STATE: Final = "quorum-state"
_FEATURE_LEVEL: Final = "feature_level_record"
_NO_DIRECTORY: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_QUORUM_STATE_LIMIT: Final = 64 << 10
_LARGEST_EPOCH: Final = (1 << 31) - 1


class MetadataLog:
    """The open log and its ``image``. For one thread at a time.

    ``epoch`` is the epoch of this start, ``snapshots`` are the existing ones, oldest first,
    ``size_since_snapshot`` the bytes of records after the last one; ``kraft_version`` is 1 if the voters are
    in the log.

    Raises KafkaError when the log has an unknown record, LogDirError when the quorum state or a snapshot is
    damaged, OSError."""

    def __init__(self, files: DataFiles, data_path: str, node_id: int, *, now_ms: int) -> None:
        directory = files.join(data_path, str(METADATA_PARTITION))
        make_directories(files, directory)
        metadata_path = files.join(directory, PARTITION_METADATA)
        if not files.exists(metadata_path):
            replace_file(files, metadata_path, format_partition_metadata(_TOPIC_ID))
        remove_leftovers(files, directory)
        self.node_id = node_id
        self.snapshots = find_snapshots(files, directory)
        newest = self.snapshots[-1] if self.snapshots else None
        self.log = _opened(files, directory, newest, now_ms)
        state = self._replayed(newest)
        self.image, self.size_since_snapshot = state.image, state.size
        self.kraft_version = state.kraft_version
        formatted = [] if self.image.features else formatted_records(files, data_path, state)
        self._check_levels(self.image.features or formatted_levels(formatted))
        self.epoch = self._elect(state, now_ms)
        if self.image.has_open_transaction:
            self._append_now([metadata_records.abort_transaction("Controller failover")], now_ms)
        if not self.image.features:
            self._append_now(_bootstrap(formatted), now_ms)
        self._fence_brokers(now_ms)
        self.log.flush()

    def _fence_brokers(self, now_ms: int) -> None:
        """Record that a killed Apache Kafka does not run any more; otherwise the next one would wait for
        the end of its session."""
        running = [
            record.value
            for record in self.image.kept.of("register_broker_record")
            if record.value is not None and not record.value["fenced"]
        ]
        if running:
            self._append_now(
                [
                    metadata_records.broker_fenced(value["broker_id"], value["broker_epoch"])
                    for value in running
                ],
                now_ms,
            )

    def _replayed(self, newest: SnapshotId | None) -> MetadataReplay:
        """Load the newest snapshot and the log after it."""
        state, log = MetadataReplay(), self.log
        begin = 0 if newest is None else newest.end_offset
        if log.log_start_offset > begin:
            raise LogDirError(
                f"{log.directory} begins at offset {log.log_start_offset}, and has no snapshot: "
                "topics are missing; restore the directory"
            )
        for _ in state.load(log.files, log.directory, newest):
            pass
        for segment in log.segments:
            for _ in state.read(segment.view()) if segment.size else ():
                pass
        state.check_follows(log.log_end_offset, log.directory)
        self._check_alone(state)
        return state

    def _check_alone(self, state: MetadataReplay) -> None:
        """Raise KafkaError if other nodes belong to the cluster: their partitions would be served without
        their records."""
        directory = self.log.directory
        others = [voter for voter in state.voter_ids if voter != self.node_id]
        if others:
            raise KafkaError(f"{directory} belongs to a cluster: node {others[0]} is also a voter")
        for topic in state.image.topics.values():
            for number, partition in topic.partitions.items():
                others = [node for node in partition.replicas if node != self.node_id]
                if others:
                    raise KafkaError(
                        f"{directory} belongs to a cluster, or meta.properties to another node: "
                        f"{topic.name}-{number} has a replica on node {others[0]}, this is {self.node_id}"
                    )

    def _check_levels(self, features: Mapping[str, int]) -> None:
        for fault in unknown_levels(features):
            raise KafkaError(f"{self.log.directory}: {fault}. To read and write it, {UNKNOWN_LEVEL_REMEDY}")

    def old_snapshots(self, retention_bytes: int, retention_ms: int, now_ms: int) -> list[SnapshotId]:
        """Return the snapshots that exceed the retention time, or with the log the retention size; never
        the newest. Raises OSError."""
        log = self.log
        doomed: list[SnapshotId] = []
        entries = {entry.name: entry for entry in log.files.list(log.directory)}
        known = [snapshot for snapshot in self.snapshots if snapshot.name in entries]
        total = sum(segment.size for segment in log.segments)
        total += sum(entries[snapshot.name].size for snapshot in known)
        for snapshot in known[:-1]:
            entry = entries[snapshot.name]
            is_old = 0 <= retention_ms < now_ms - entry.modified_ms
            if not is_old and not 0 <= retention_bytes < total:
                break
            total -= entry.size
            doomed.append(snapshot)
        return doomed

    def _elect(self, state: MetadataReplay, now_ms: int) -> int:
        """Begin the next epoch, as the only voter."""
        of_snapshots = max((snapshot.epoch for snapshot in self.snapshots), default=0)
        epoch = max(self._stored_epoch(), self.log.epochs.latest or 0, of_snapshots) + 1
        if epoch > _LARGEST_EPOCH:
            raise LogDirError(f"{self.log.directory} has used the largest epoch, {_LARGEST_EPOCH}")
        quorum: dict[str, object] = {"leaderId": self.node_id, "leaderEpoch": epoch, "votedId": -1}
        if state.kraft_version:
            quorum |= {"votedDirectoryId": _NO_DIRECTORY, "data_version": 1}
        else:
            voters = [{"voterId": self.node_id}]
            quorum |= {"clusterId": "", "appliedOffset": 0, "currentVoters": voters, "data_version": 0}
        path = self.log.files.join(self.log.directory, _QUORUM_STATE)
        replace_file(self.log.files, path, json.dumps(quorum).encode())
        key, value = encode_leader_change(self.node_id, [self.node_id])
        self._append([(key, value, now_ms)], epoch, now_ms, control=True)
        return epoch

    def _stored_epoch(self) -> int:
        path = self.log.files.join(self.log.directory, _QUORUM_STATE)
        if not self.log.files.exists(path):
            return 0
        try:
            epoch = json.loads(self.log.files.read(path, _QUORUM_STATE_LIMIT))["leaderEpoch"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise LogDirError(f"{path} has no valid epoch: {error!r}") from error
        if not isinstance(epoch, int) or not 0 <= epoch <= _LARGEST_EPOCH:
            raise LogDirError(f"{path} has the invalid epoch {str(epoch)[:40]}")
        return epoch

    def append(self, records: Sequence[LogRecord], now_ms: int) -> None:
        """Append records as one batch: they become durable together, with the next flush of ``log``. Call
        ``apply`` after that to change the image. Raises KafkaStorageError."""
        values = [(None, bytes(encode_metadata(record)), now_ms) for record in records]
        self._append(values, self.epoch, now_ms)

    def append_voter(self, directory_id: str, now_ms: int) -> None:
        """Append the records that raise ``kraft.version`` to 1: from now on the log has the voter, this
        node with its directory. Raises KafkaStorageError."""
        voter = encode_voter(self.node_id, directory_id, *CONTROLLER)
        self._append([(key, value, now_ms) for key, value in voter], self.epoch, now_ms, control=True)

    def apply(self, records: Sequence[LogRecord]) -> None:
        """Apply durable records to the image."""
        for record in records:
            self.image.replay(record)

    def _append_now(self, records: Sequence[LogRecord], now_ms: int) -> None:
        self.append(records, now_ms)
        self.apply(records)

    def _append(
        self,
        values: Sequence[tuple[bytes | None, bytes, int]],
        epoch: int,
        now_ms: int,
        *,
        control: bool = False,
    ) -> None:
        self.size_since_snapshot += sum(len(value) for _, value, _ in values)
        batch = encode_batch([(*value, []) for value in values], control=control)
        self.log.append(batch, now_ms=now_ms, leader_epoch=epoch, origin=AppendOrigin.COORDINATOR)

    def close(self) -> None:
        """Make everything durable. Raises KafkaStorageError."""
        self.log.close()


def _opened(files: DataFiles, directory: str, newest: SnapshotId | None, now_ms: int) -> PartitionLog:
    """Open the log. A log that ends before the newest snapshot is emptied, and begins at the snapshot's
    end."""
    named = files, directory, METADATA_PARTITION, _CONFIG
    # Kafka also checks the whole log at every start
    start = Start(clean_shutdown=False)
    log = open_log(*named, start, now_ms=now_ms).log
    if newest is None or newest.end_offset <= log.log_end_offset:
        return log
    LOG.warning(
        "%s ends at offset %d, before its snapshot: the log continues at %d",
        directory, log.log_end_offset, newest.end_offset,
    )  # fmt: skip
    log.release()
    for entry in files.list(directory):
        if parse_segment_file(entry.name) or entry.name == LEADER_EPOCH_CHECKPOINT:
            files.remove(files.join(directory, entry.name))
    files.create(files.join(directory, file_name(newest.end_offset, "log"))).close()
    files.sync_directory(directory)
    return open_log(*named, start, now_ms=now_ms).log


def formatted_records(files: DataFiles, data_path: str, state: MetadataReplay) -> list[LogRecord]:
    """Return the records that ``kafka-storage format`` has left for the first start: from
    ``0-0.checkpoint``, which the state was loaded from, or before Apache Kafka 4.4 from
    ``bootstrap.checkpoint``. Raises LogDirError, OSError."""
    path = files.join(data_path, BOOTSTRAP_CHECKPOINT)
    if state.formatted or not files.exists(path):
        return state.formatted
    found = [record for record in read_checkpoint(files, path) if control_type(record) is None]
    return [decode_metadata(record.value) for record in found]


def formatted_levels(records: Sequence[LogRecord]) -> dict[str, int]:
    """Return the feature levels among the records for the first start."""
    values = [record.value or {} for record in records if record.type == _FEATURE_LEVEL]
    return {value["name"]: value["feature_level"] for value in values if value}


def _bootstrap(formatted: Sequence[LogRecord]) -> list[LogRecord]:
    """Return the records of a cluster's first start: those left by ``kafka-storage format``, or the
    defaults."""
    defaults = [
        metadata_records.feature_level(name, level)
        for name, level in metadata_records.BOOTSTRAP_FEATURES.items()
    ]
    return [
        metadata_records.begin_transaction("Bootstrap records"),
        *(formatted or defaults),
        metadata_records.config(4, "", "min.insync.replicas", "1"),
        metadata_records.end_transaction(),
    ]
