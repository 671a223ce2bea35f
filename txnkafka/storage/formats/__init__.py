"""The formats of the files in a log directory: names and contents. Parsers are pure functions over bytes."""

from txnkafka.storage.formats.checkpoint import (
    CleanShutdown,
    EpochEntry,
    PartitionMetadata,
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_offset_checkpoint,
    parse_partition_metadata,
)
from txnkafka.storage.formats.index import (
    IndexProblem,
    OffsetIndex,
    OffsetPosition,
    TimeIndex,
    TimestampOffset,
)
from txnkafka.storage.formats.layout import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOCK_FILE,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    PartitionDirectory,
    SegmentFile,
    file_name,
    parse_partition_directory,
    parse_segment_file,
)
from txnkafka.storage.formats.meta_properties import MetaProperties, parse_meta_properties
from txnkafka.storage.formats.producer_snapshot import iter_producer_snapshot, parse_producer_snapshot
from txnkafka.storage.formats.topic_id import parse_topic_id, topic_id_from_bytes, topic_id_to_bytes
from txnkafka.storage.formats.txn_index import AbortedTxn, TxnIndexProblem, iter_txn_index, parse_txn_index

__all__ = [
    "CLEANER_OFFSET_CHECKPOINT",
    "CLEAN_SHUTDOWN_FILE",
    "HIGH_WATERMARK_CHECKPOINT",
    "LEADER_EPOCH_CHECKPOINT",
    "LOCK_FILE",
    "LOG_START_OFFSET_CHECKPOINT",
    "META_PROPERTIES",
    "PARTITION_METADATA",
    "RECOVERY_POINT_CHECKPOINT",
    "AbortedTxn",
    "CleanShutdown",
    "EpochEntry",
    "IndexProblem",
    "MetaProperties",
    "OffsetIndex",
    "OffsetPosition",
    "PartitionDirectory",
    "PartitionMetadata",
    "SegmentFile",
    "TimeIndex",
    "TimestampOffset",
    "TxnIndexProblem",
    "file_name",
    "iter_producer_snapshot",
    "iter_txn_index",
    "parse_clean_shutdown",
    "parse_leader_epoch_checkpoint",
    "parse_meta_properties",
    "parse_offset_checkpoint",
    "parse_partition_directory",
    "parse_partition_metadata",
    "parse_producer_snapshot",
    "parse_segment_file",
    "parse_topic_id",
    "parse_txn_index",
    "topic_id_from_bytes",
    "topic_id_to_bytes",
]
