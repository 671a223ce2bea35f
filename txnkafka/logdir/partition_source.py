"""The location of a partition, and the facts that its log directory has without reading its log."""

from __future__ import annotations

from typing import NamedTuple

from txnkafka.env import FileSystem
from txnkafka.model import TopicPartition


class PartitionSource(NamedTuple):
    """The location of a partition, and its values in the log directory's checkpoints; None means unknown.

    ``repair``: True if the broker had stopped cleanly before a repair wrote the marker and the checkpoints;
    None without a repair. ``is_named``: the directory has a partition's name; otherwise ``topic_partition``
    consists of the directory's name and 0. ``threads``: the number of threads that decode records."""

    file_system: FileSystem
    path: str
    topic_partition: TopicPartition
    state: str = "current"
    topic_id: str | None = None
    log_start_offset: int | None = None
    high_watermark: int | None = None
    recovery_point: int | None = None
    cleaned_to: int = 0
    clean_shutdown: bool = False
    repair: bool | None = None
    being_written: bool = False
    mapped: bool = True
    only_base_offset: int | None = None
    is_named: bool = True
    threads: int = 1
