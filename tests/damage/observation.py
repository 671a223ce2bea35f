"""What a reader gets from a directory: the records, and all errors and findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.damage.image import PARTITION, ROOT
from tests.damage.memory import MemoryFileSystem
from txnkafka import CorruptRecordError, KafkaError, LogDir
from txnkafka.logdir import Finding
from txnkafka.record.batch import Record

__all__ = ["LEVELS", "Observation", "observe"]

LEVELS = ("read_committed", "read_uncommitted")


@dataclass
class Observation:
    """Records by isolation level, and the reported errors and findings."""

    records: dict[str, list[Record]] = field(default_factory=dict)
    last_stable_offset: int = -1
    log_end_offset: int = -1
    reports: list[str] = field(default_factory=list)


def observe(files: Mapping[str, bytes], on_corrupt: str) -> Observation:
    """Open a directory and read everything, in both isolation levels.

    A KafkaError is a report; any other error is a crash and is raised to the test.
    """
    seen = Observation()
    path = ROOT if any(not name.startswith(PARTITION) for name in files) else PARTITION
    try:
        log_dir = LogDir(path, file_system=MemoryFileSystem(files))
        view = log_dir.partition("t", 0)
        seen.last_stable_offset, seen.log_end_offset = view.last_stable_offset, view.log_end_offset
    except KafkaError as error:
        seen.reports.append(str(error))
        return seen
    findings: list[Finding] = [*log_dir.findings, *view.findings]
    for level in LEVELS:
        view.plan(isolation_level=level, findings=findings)
        seen.records[level] = found = []

        def left_out(error: CorruptRecordError) -> None:
            seen.reports.append(str(error))

        try:
            found.extend(
                view.records(isolation_level=level, on_corrupt=left_out if on_corrupt == "skip" else "stop")
            )
        except KafkaError as error:
            seen.reports.append(str(error))
    view.close()
    seen.reports.extend(finding.message for finding in findings)
    return seen
