"""Verifies log directories: compares every file in them with the logs, and checks the logs themselves.

Each segment is read once. The files that brokers derive from the log (indexes, snapshots, checkpoints) are
compared with it; if they differ, the log is right, as in a broker's recovery. Nothing is repaired: each
finding has a remedy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import NamedTuple

from txnkafka.errors import KafkaError
from txnkafka.logdir.directory import LogDir
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.partition import PartitionView
from txnkafka.logdir.verify.directory import (
    check_directories,
    check_epochs_exist,
    check_names,
    check_offsets,
    check_topic_ids,
    read_epochs,
)
from txnkafka.logdir.verify.findings import Findings, Stopped
from txnkafka.logdir.verify.log import LEVELS as LEVELS
from txnkafka.logdir.verify.log import LogCheck, Progress
from txnkafka.model import TopicPartition

UNREADABLE_PARTITION, UNREADABLE_FILE = "unreadable-partition", "unreadable-file"


class VerifyReport(NamedTuple):
    """The numbers of checked objects, and the findings. Control records do not count as records."""

    partitions: int
    segments: int
    batches: int
    records: int
    findings: list[Finding]

    @property
    def is_sound(self) -> bool:
        """True if no finding is worse than a note."""
        return all(finding.severity == "note" for finding in self.findings)

    @property
    def is_complete(self) -> bool:
        """False when a partition or a file could not be read and therefore was not checked."""
        return not any(finding.code in (UNREADABLE_PARTITION, UNREADABLE_FILE) for finding in self.findings)


def verify(
    log_dir: LogDir,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    level: str = "crc",
    fail_fast: bool = False,
    on_finding: Callable[[Finding], None] | None = None,
    on_partition: Callable[[PartitionView], None] | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Check ``partitions`` (all when None) and the directories around them.

    ``level``: ``header`` checks only batch headers, ``crc`` also every checksum, ``records`` also decodes
    every record. ``fail_fast`` stops at the first finding worse than a note. ``on_finding`` is called with
    each finding after the check of its partition, causes first and in the order of ``partitions``;
    ``on_partition`` with each partition before its check; ``progress`` with a file and the number of bytes
    checked since the last call. The threads of ``log_dir`` check a partition each, except with ``fail_fast``;
    ``progress`` is called by any of them, one call at a time. Raises ValueError for an unknown ``level``."""
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
    run = _Run(Findings(fail_fast=fail_fast, on_finding=on_finding), level, progress or _no_progress)
    chosen = log_dir.topic_partitions if partitions is None else list(partitions)
    try:
        run.directories(log_dir, chosen)
        views = _announced(log_dir, chosen, on_partition)
        if fail_fast or log_dir.threads == 1 or len(chosen) < 2:
            for view in views:
                run.partition(view)
        else:
            for part in _in_threads(views, level, progress or _no_progress, log_dir.threads):
                run.take(part)
        run.findings.finish()
    except Stopped:
        pass
    return VerifyReport(run.partitions, run.segments, run.batches, run.records, run.findings.found)


def verify_directories(log_dir: LogDir, partitions: Iterable[TopicPartition]) -> list[Finding]:
    """Return the findings of ``verify`` about the files around the logs of ``partitions``: the part that
    needs all partitions together."""
    run = _Run(Findings(), "header", _no_progress)
    run.directories(log_dir, list(partitions))
    run.findings.finish()
    return run.findings.found


def verify_partition(view: PartitionView, *, level: str = "crc") -> list[Finding]:
    """Return the findings of ``verify`` in one partition."""
    run = _Run(Findings(), level, _no_progress)
    run.partition(view)
    run.findings.finish()
    return run.findings.found


def _no_progress(path: str, size: int) -> None:
    pass


def _announced(
    log_dir: LogDir, chosen: Iterable[TopicPartition], on_partition: Callable[[PartitionView], None] | None
) -> Iterator[PartitionView]:
    for topic_partition in chosen:
        view = log_dir.partition(*topic_partition)
        if on_partition is not None:
            on_partition(view)
        yield view


def _in_threads(
    views: Iterable[PartitionView], level: str, progress: Progress, threads: int
) -> Iterator[_Run]:
    """Check each partition in one of ``threads`` threads; yield the results in the order of ``views``."""
    lock = Lock()

    def read(path: str, size: int) -> None:
        with lock:
            progress(path, size)

    def check(view: PartitionView) -> _Run:
        part = _Run(Findings(), level, read)
        part.partition(view)
        return part

    waiting: deque[Future[_Run]] = deque()
    executor = ThreadPoolExecutor(threads, "txnkafka-verify")
    try:
        for view in views:
            waiting.append(executor.submit(check, view))
            if len(waiting) == 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        executor.shutdown(cancel_futures=True)


class _Run:
    def __init__(self, findings: Findings, level: str, progress: Progress) -> None:
        self.findings = findings
        self.partitions = self.segments = self.batches = self.records = 0
        self._level = level
        self._progress = progress

    def directories(self, log_dir: LogDir, chosen: list[TopicPartition]) -> None:
        check_directories(log_dir, self.findings)
        check_topic_ids([log_dir.partition(*name).source for name in chosen], self.findings)
        self.findings.settle()

    def take(self, part: _Run) -> None:
        """Add the result for a partition that another thread has checked."""
        self.partitions += part.partitions
        self.segments += part.segments
        self.batches += part.batches
        self.records += part.records
        self.findings.take_all(part.findings)

    def partition(self, view: PartitionView) -> None:
        """Check a partition. An unreadable partition becomes a finding, so that the others are still
        checked."""
        self.partitions += 1
        try:
            self._partition(view)
        except (KafkaError, OSError) as error:
            self.findings.add(UNREADABLE_PARTITION, view.path, str(error))
        self.findings.settle()

    def _partition(self, view: PartitionView) -> None:
        source, files = view.source, view.files
        self.segments += len(files.segments)
        check_names(source, files, self.findings)
        epochs = read_epochs(source, self.findings)
        log = LogCheck(source, files, self.findings, self._level, self._progress)
        try:
            log.run(epochs)
        finally:
            self.batches += log.batches
            self.records += log.records
        if log.has_leader_epochs:
            check_epochs_exist(source, self.findings)
        if not log.is_complete:
            return
        check_offsets(source, log.end_offset, self.findings)
        if source.only_base_offset is None:
            self._missing_snapshots(log, files.snapshots)

    def _missing_snapshots(self, log: LogCheck, snapshots: dict[int, str]) -> None:
        source = log.source
        if not log.producers.has_producers or source.being_written:
            return
        path = f"{source.path}/{log.end_offset:020}.snapshot"
        if not snapshots:
            if len(log.segments) == 1 and not source.clean_shutdown:
                return  # the first snapshot is written when the first segment is full
            severity = "note"
            text = "there is no producer snapshot, but the log has producers"
            if source.clean_shutdown:
                severity = "error" if log.producers.has_open_transactions else "warning"
                text += ": after a clean shutdown the broker assumes that there are none, forgets open "
                text += "transactions and shows their records"
            self.findings.add("missing-snapshot", path, text, severity=severity)
        elif source.clean_shutdown and log.end_offset not in snapshots and not log.damaged_end:
            text = f"the newest is that of offset {max(snapshots)}; the broker replays the log from there"
            self.findings.add("missing-snapshot", path, text)
