"""``MetadataLog``: the owner of ``__cluster_metadata-0``, the registry of a cluster of one node.

The log is Kafka's own (KRaft), so that an Apache Kafka that is started on the directory knows every topic and
every producer id that was given out. Opening it elects the node in the next epoch: ``quorum-state`` first,
then a LEADER_CHANGE record, then what an earlier stop has left open.

Source: ``KafkaRaftClient``, ``QuorumController``, ``FileQuorumStateStore``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from txnkafka._core.encode import encode_batch
from txnkafka.config import LogConfig
from txnkafka.coordinator import metadata_records
from txnkafka.coordinator.cluster_image import ClusterImage
from txnkafka.coordinator.metadata_records import decode_metadata, encode_leader_change, encode_metadata
from txnkafka.env import make_directories, replace_file
from txnkafka.errors import KafkaError, LogDirError
from txnkafka.model import TopicPartition
from txnkafka.storage.formats.checkpoint import format_partition_metadata
from txnkafka.storage.formats.layout import PARTITION_METADATA
from txnkafka.storage.log.log_records import records_of_log
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.recovery.log_loader import Start, open_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.coordinator.metadata_records import LogRecord
    from txnkafka.env import DataFiles
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["METADATA_PARTITION", "MetadataLog"]

METADATA_PARTITION: Final = TopicPartition("__cluster_metadata", 0)
_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"  # Uuid.METADATA_TOPIC_ID
_CONFIG: Final = LogConfig(
    segment_bytes=1 << 30, retention_ms=-1, retention_bytes=-1, cleanup_policy="delete",
    max_message_bytes=8 << 20,
)  # fmt: skip
_QUORUM_STATE: Final = "quorum-state"
_QUORUM_STATE_LIMIT: Final = 64 << 10
_LARGEST_EPOCH: Final = (1 << 31) - 1


class MetadataLog:
    """The open log and its ``image``. ``epoch`` is that of this start. For one thread at a time.

    Raises KafkaError when the log has a record that is not understood, LogDirError when the quorum state is
    damaged, OSError.
    """

    def __init__(self, files: DataFiles, data_path: str, node_id: int, *, now_ms: int) -> None:
        directory = files.join(data_path, str(METADATA_PARTITION))
        make_directories(files, directory)
        metadata_path = files.join(directory, PARTITION_METADATA)
        if not files.exists(metadata_path):
            replace_file(files, metadata_path, format_partition_metadata(_TOPIC_ID))
        self.node_id = node_id
        self.image = ClusterImage()
        # Kafka trusts nothing here either: every start looks at the whole log
        self.log: PartitionLog = open_log(
            files, directory, METADATA_PARTITION, _CONFIG, Start(clean_shutdown=False), now_ms=now_ms
        ).log
        for record in records_of_log(self.log):
            self._replay(decode_metadata(record.value), record.offset)
        self.epoch = self._elect(now_ms)
        if self.image.has_open_transaction:
            self._append_now([metadata_records.abort_transaction("Controller failover")], now_ms)
        if not self.image.features:
            self._append_now(_bootstrap(), now_ms)
        self.log.flush()

    def _replay(self, record: LogRecord, offset: int) -> None:
        try:
            self.image.replay(record)
        except KafkaError as error:
            raise KafkaError(f"{self.log.directory}: offset {offset}: {error}") from None

    def _elect(self, now_ms: int) -> int:
        """Begin the next epoch, as the only voter."""
        epoch = max(self._stored_epoch(), self.log.epochs.latest or 0) + 1
        if epoch > _LARGEST_EPOCH:
            raise LogDirError(f"{self.log.directory} has had the last epoch there can be")
        state = {
            "clusterId": "",
            "leaderId": self.node_id,
            "leaderEpoch": epoch,
            "votedId": -1,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": self.node_id}],
            "data_version": 0,
        }
        path = self.log.files.join(self.log.directory, _QUORUM_STATE)
        replace_file(self.log.files, path, json.dumps(state).encode())
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
            raise LogDirError(f"{path} does not say in which epoch the node was: {error!r}") from error
        if not isinstance(epoch, int) or not 0 <= epoch <= _LARGEST_EPOCH:
            raise LogDirError(f"{path} says the epoch {str(epoch)[:40]}, which is none")
        return epoch

    def append(self, records: Sequence[LogRecord], now_ms: int) -> None:
        """Append records as one batch: they become durable together, with the next flush of ``log``. The
        image changes when ``apply`` is called after that. Raises KafkaStorageError."""
        values = [(None, bytes(encode_metadata(record)), now_ms) for record in records]
        self._append(values, self.epoch, now_ms)

    def apply(self, records: Sequence[LogRecord]) -> None:
        """Let the image change: the records are durable."""
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
        batch = encode_batch([(*value, []) for value in values], control=control)
        self.log.append(batch, now_ms=now_ms, leader_epoch=epoch, origin=AppendOrigin.COORDINATOR)

    def close(self) -> None:
        """Make everything durable. Raises KafkaStorageError."""
        self.log.close()


def _bootstrap() -> list[LogRecord]:
    """What the first start of a cluster writes."""
    features = metadata_records.BOOTSTRAP_FEATURES.items()
    return [
        metadata_records.begin_transaction("Bootstrap records"),
        *(metadata_records.feature_level(name, level) for name, level in features),
        metadata_records.config(4, "", "min.insync.replicas", "1"),
        metadata_records.end_transaction(),
    ]
