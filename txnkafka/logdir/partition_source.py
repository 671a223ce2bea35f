"""Where a partition lies, as its log directory knows it before anything of it is read."""

from __future__ import annotations

from typing import NamedTuple

from txnkafka.env import FileSystem
from txnkafka.model import TopicPartition

__all__ = ["PartitionSource"]


class PartitionSource(NamedTuple):
    """Where a partition lies and what its log directory's checkpoints say of it; None is "not known".

    ``is_named``: the name of the directory says which partition it is; otherwise ``topic_partition`` is made
    up of that name and 0.
    """

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
    being_written: bool = False
    mapped: bool = True
    only_base_offset: int | None = None
    is_named: bool = True
