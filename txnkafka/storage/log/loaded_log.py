"""A log as loaded by recovery, before any append.

Source: ``LoadedLogOffsets``, ``LogLoader.load``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka._core.producer_table import ProducerTable
    from txnkafka.storage.log.leader_epochs import LeaderEpochs
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.producer_snapshots import ProducerSnapshots
    from txnkafka.storage.log.repair_step import RepairStep


@dataclass(frozen=True)
class LoadedLog:
    """The segments of a log (ascending, at least one, none of their files open) and the state derived from
    them.

    All data below ``log_end_offset`` is durable: recovery point and high watermark equal the log end.
    ``epoch_file_is_current`` is False if the epochs on the disk differ from ``epochs``. ``producers`` is the
    state at the log end, as of ``loaded_ms``. ``repairs`` lists the changes made by recovery."""

    segments: Sequence[LogSegment]
    log_start_offset: int
    log_end_offset: int
    epochs: LeaderEpochs
    epoch_file_is_current: bool
    producers: ProducerTable
    snapshots: ProducerSnapshots
    loaded_ms: int
    repairs: Sequence[RepairStep]
