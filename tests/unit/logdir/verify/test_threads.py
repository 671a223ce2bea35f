"""verify checks several partitions at a time: the findings and their order do not depend on the threads."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.models.log_directory import LogDirectory, idempotent
from tests.unit.logdir import faults_of_files, faults_of_logs
from tests.unit.logdir.faults import PLANTED
from txnkafka.errors import CorruptRecordError
from txnkafka.logdir import Finding, LogDir
from txnkafka.logdir.verify import report
from txnkafka.logdir.verify.findings import LISTED_PER_FILE
from txnkafka.logdir.verify.report import VerifyReport, verify

PLANTED_IN = (faults_of_logs, faults_of_files)  # imported to register their faults


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """A directory with a partition for each planted fault that is inside of a partition."""
    target = tmp_path / "data"
    target.mkdir()
    for number, (_, plant) in enumerate(PLANTED):
        planted = LogDirectory(tmp_path / f"planted-{number}")
        plant(planted)
        for path in planted.root.iterdir():
            if path.is_dir() and (path / "00000000000000000000.log").exists():
                shutil.copytree(path, target / f"fault{number:03}-0", symlinks=True)
    return target


def observed(path: Path, threads: int) -> tuple[VerifyReport, list[Finding], int]:
    """The report, the findings as they were told, and the bytes that were read."""
    told: list[Finding] = []
    sizes: list[int] = []
    found = verify(
        LogDir(str(path), threads=threads),
        on_finding=told.append,
        progress=lambda _, size: sizes.append(size),
    )
    return found, told, sum(sizes)


def test_threads_give_the_same_report(faulty: Path) -> None:
    alone = observed(faulty, 1)
    assert alone[0].partitions > 40
    assert len(alone[0].findings) > 40
    assert alone[1] == alone[0].findings
    for threads in (2, 5):
        assert observed(faulty, threads) == alone


def test_findings_that_are_only_counted(tmp_path: Path) -> None:
    """A finding beyond the first hundred of a file is counted, and the numbers are those of one thread."""
    for name in ("a-0", "b-0"):
        directory = LogDirectory(tmp_path / name)
        directory.segments = {0: [idempotent(2 * n, 9, 5) for n in range(LISTED_PER_FILE + 50)]}
        directory.write()
        shutil.copytree(directory.partition, tmp_path / "data" / name)
    alone = observed(tmp_path / "data", 1)
    messages = [finding.message for finding in alone[0].findings]
    assert [message for message in messages if message.endswith("are not listed")] == [
        "49 more like this are not listed"
    ] * 2
    assert observed(tmp_path / "data", 3) == alone


@pytest.mark.slow
def test_fail_fast_stops_at_the_first_finding(faulty: Path) -> None:
    alone, threads = (verify(LogDir(str(faulty), threads=n), fail_fast=True) for n in (1, 3))
    assert alone == threads
    assert sum(finding.severity != "note" for finding in threads.findings) == 1


@pytest.mark.slow
def test_an_exception_of_a_thread_reaches_the_caller(faulty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise MemoryError("no memory")

    monkeypatch.setattr(report, "check_names", fails)
    with pytest.raises(MemoryError):
        verify(LogDir(str(faulty), threads=3))


@pytest.mark.slow
def test_an_unreadable_partition_is_a_finding(faulty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise CorruptRecordError("damaged", file="x", position=0, offset=0)

    monkeypatch.setattr(report, "check_names", fails)
    found = verify(LogDir(str(faulty), threads=3))
    assert {finding.code for finding in found.findings} >= {"unreadable-partition"}
    assert not found.is_complete
