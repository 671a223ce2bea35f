"""Writes snapshots of the metadata log while the broker runs, and deletes the log before old ones.

A snapshot is made from the previous one and the log, piece by piece, when no other work waits; it does not
use the image of the broker.

Source: ``SnapshotGenerator``, ``KafkaRaftLog.maybeClean``.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from txnkafka.broker.jobs import Job
from txnkafka.broker.registry.metadata_replay import MetadataReplay
from txnkafka.broker.registry.metadata_snapshot import SnapshotId, remove_leftovers, write_snapshot
from txnkafka.coordinator.registry.image_records import image_records
from txnkafka.storage.log.segment_deletion import FileRemoval
from txnkafka.storage.log.truncation import delete_records, retention
from txnkafka.storage.work import run_some

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from txnkafka.broker.services import Services
    from txnkafka.storage.formats.segment_reader import LogFileReader
    from txnkafka.storage.work import Work

LOG = logging.getLogger("txnkafka.broker")
PIECE_COST: Final = 512 << 10
_NEVER: Final = 2**63 - 1


class MetadataSnapshots:
    """The snapshots of a broker's metadata log, as background work of ``broker.jobs``."""

    def __init__(self, services: Services, now_ms: int) -> None:
        self._services = services
        self._last_ms = now_ms  # the begin of the last snapshot
        self._steps: Generator[int] | None = None
        self._snapshot = SnapshotId(0, 0)
        services.jobs.add_background(self._job)

    def advance(self, ticks: int) -> int:
        """Begin a snapshot when it is due; return the ticks at which to call again."""
        config, metadata = self._services.config, self._services.metadata
        interval = config.metadata_log_max_snapshot_interval_ms
        due_ms = self._last_ms + interval if interval else _NEVER
        if self._steps is not None or metadata.log.fenced is not None:
            return _NEVER
        is_long = metadata.size_since_snapshot >= config.metadata_log_max_record_bytes_between_snapshots
        if ticks < due_ms and not is_long:
            return due_ms
        self._last_ms = ticks
        if metadata.size_since_snapshot:
            self._start()
        return ticks + interval if interval else _NEVER

    def _start(self) -> None:
        metadata = self._services.metadata
        log, end = metadata.log, metadata.log.recovery_point
        self._snapshot = SnapshotId(end, metadata.epoch)
        metadata.size_since_snapshot = 0
        previous = metadata.snapshots[-1] if metadata.snapshots else None
        readers = [segment.view() for segment in log.segments if segment.size and segment.base_offset < end]
        self._steps = self._write(self._snapshot, previous, readers)

    def _write(
        self, snapshot: SnapshotId, previous: SnapshotId | None, readers: Sequence[LogFileReader]
    ) -> Generator[int]:
        log, state = self._services.metadata.log, MetadataReplay()
        yield from state.load(log.files, log.directory, previous)
        for reader in readers:
            yield from state.read(reader, snapshot.end_offset)
        yield from write_snapshot(
            log.files, log.directory, snapshot, image_records(state.image), voters=state.voters,
            timestamp=state.timestamp,
        )  # fmt: skip

    # The pieces of a snapshot

    def _job(self) -> Job | None:
        if self._steps is None:
            return None
        piece = Piece(self._steps)
        return Job(lambda: piece, lambda error: self._done(piece, error))

    def _done(self, piece: Piece, error: Exception | None) -> None:
        if error is None and not piece.is_last:
            return
        self._steps = None
        self._services.look_again()
        if error is not None:
            LOG.error("a snapshot of the metadata log could not be written: %s", error)
        else:
            self._finished()

    def _finished(self) -> None:
        """Add the finished snapshot; schedule the deletion of older ones and of the log before them
        (``metadata.max.retention``)."""
        metadata, services = self._services.metadata, self._services
        LOG.info("%s is written", metadata.log.files.join(metadata.log.directory, self._snapshot.name))
        metadata.snapshots.append(self._snapshot)
        services.jobs.add(self._deletion, _logged)

    def _deletion(self) -> Work | None:
        metadata, config = self._services.metadata, self._services.config
        doomed = metadata.old_snapshots(
            config.metadata_max_retention_bytes, config.metadata_max_retention_ms, self._services.now_ms
        )
        if not doomed:
            return None
        del metadata.snapshots[: len(doomed)]
        delete_records(metadata.log, metadata.snapshots[0].end_offset)
        segments = retention(metadata.log, self._services.now_ms)
        if segments is not None:
            self._services.jobs.add(lambda: segments, _logged)
        paths = [metadata.log.files.join(metadata.log.directory, snapshot.name) for snapshot in doomed]
        return FileRemoval(metadata.log.files, paths, lambda left: None)

    def close(self) -> None:
        """Abandon the snapshot in progress; none of its pieces may be running."""
        steps, self._steps = self._steps, None
        if steps is not None:
            steps.close()
            log = self._services.metadata.log
            with suppress(OSError):  # the next start removes it
                remove_leftovers(log.files, log.directory)


class Piece:
    """Some steps of a snapshot; ``is_last`` after the last one."""

    def __init__(self, steps: Generator[int]) -> None:
        self._steps = steps
        self.is_last = False

    def run(self) -> None:
        """Run the steps. Raises KafkaError and OSError."""
        self.is_last = run_some(self._steps, PIECE_COST)

    def finish(self, error: Exception | None) -> None:
        """Do nothing."""


def _logged(error: Exception | None) -> None:
    if error is not None:
        LOG.error("old parts of the metadata log could not be deleted: %s", error)
