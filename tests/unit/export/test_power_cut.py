"""The records of an export after a power cut: lost and kept writes in every order, after every change."""

from __future__ import annotations

import json

import pytest

from tests.conftest import LONG
from tests.unit.export.outputs import everything
from tests.unit.logdir.logs import batch, marker
from txnkafka.export import ExportOptions, ExportReport, export
from txnkafka.logdir import LogDir
from txnkafka.testing.crash_states import CrashState, crash_states
from txnkafka.testing.disk import Disk
from txnkafka.testing.memory_files import MemoryFiles

OUTPUT = "/out"
PRODUCER = {"transactional": True, "producer_id": 1, "producer_epoch": 0}
FIRST = {0: [batch(0, 5), batch(5, 2, **PRODUCER), marker(7, "commit", 1)], 8: [batch(8, 3)]}
# The log of the second round. The batch at 16 is damaged.
BAD = bytearray(batch(16, 2))
BAD[-1] ^= 1
SECOND = {11: [batch(11, 5), bytes(BAD)], 18: [batch(18, 2)]}


def disk_of(segments: dict[int, list[bytes]], base: MemoryFiles | None = None) -> Disk:
    """Return the disk of ``base`` with a log directory of partition t-0, durable."""
    files = MemoryFiles() if base is None else MemoryFiles(None, base.disk())
    for folder in ("/data", "/data/t-0"):
        if not files.exists(folder):
            files.make_directory(folder)
    for offset, batches in segments.items():
        files.create(f"/data/t-0/{offset:020}.log").write(0, batches)
    return files.disk()


def run(files: MemoryFiles, *, incremental: bool) -> ExportReport:
    log_dir = LogDir("/data", file_system=files)
    options = ExportOptions(to="jsonl", paths=("/data",), file_bytes=150)
    partitions = log_dir.topic_partitions
    return export(
        log_dir, partitions, OUTPUT, options, locate=everything, incremental=incremental, files=files
    )


def visible(files: MemoryFiles, folder: str = OUTPUT) -> dict[str, bytes]:
    """Return the files that readers of the data see."""
    found: dict[str, bytes] = {}
    for each in files.list(folder) if files.exists(folder) else ():
        path = f"{folder}/{each.name}"
        if each.is_directory and not each.name.startswith("_"):
            found |= visible(files, path)
        elif not each.is_directory:
            found[path] = files.read(path, 1 << 20)
    return found


def in_the_books(files: MemoryFiles) -> set[str]:
    """Return the files of the units that count."""
    found: set[str] = set()
    top = f"{OUTPUT}/_txnkafka"
    for round_ in files.list(top) if files.exists(top) else ():
        units = f"{top}/{round_.name}/units"
        for each in files.list(units) if files.exists(units) else ():
            record = json.loads(files.read(f"{units}/{each.name}", 1 << 20))
            found |= {f"{OUTPUT}/{path}" for path, *_ in record["files"]}
    return found


def check(
    state: CrashState, before: dict[str, bytes], expected: dict[str, bytes], report: ExportReport
) -> None:
    """Readers see whole files only, and all of them if the export had ended; then another run gives the same
    result as without the power cut."""
    files = MemoryFiles(None, state.disk)
    seen = visible(files)
    assert seen.items() >= before.items(), state.name
    assert seen == {path: expected.get(path) for path in seen}, state.name
    assert {*seen} <= in_the_books(files), state.name
    incremental = bool(before)
    again = run(files, incremental=incremental)
    assert visible(files) == expected, state.name
    # a third round stops at the same place as the second, and has no rows
    compared = ("stopped", "left_out") if incremental else ("round", "rows", "files", "bytes")
    assert [getattr(again, name) for name in compared] == [getattr(report, name) for name in compared]
    # everything counts: another run changes nothing
    assert run(files, incremental=incremental).new_rows == 0, state.name
    assert visible(files) == expected, state.name


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_books_after_a_power_cut(seed: int) -> None:
    files = MemoryFiles(None, disk_of(FIRST))
    report = run(files, incremental=False)
    expected = visible(files)
    assert (report.rows, report.files, len(expected)) == (10, 2, 2)
    seen = 0
    for state in crash_states(files, limit=None if LONG else 500, seed=seed):
        check(state, {}, expected, report)
        if state.changes == len(files.journal):  # the export had returned
            assert visible(MemoryFiles(None, state.disk)) == expected, state.name
        seen += 1
    assert seen > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_books_of_a_second_round_after_a_power_cut(seed: int) -> None:
    """The second round begins at the end of the first one, and stops at a damaged batch."""
    first = MemoryFiles(None, disk_of(FIRST))
    run(first, incremental=False)
    before = visible(first)
    files = MemoryFiles(None, disk_of(SECOND, first))
    report = run(files, incremental=True)
    expected = visible(files)
    assert (report.round, report.rows, len(report.stopped)) == (1, 5, 1)
    assert len(expected) == len(before) + 1
    for state in crash_states(files, limit=None if LONG else 500, seed=seed):
        check(state, before, expected, report)


@pytest.mark.slow
def test_a_second_power_cut_while_going_on() -> None:
    files = MemoryFiles(None, disk_of(FIRST))
    report = run(files, incremental=False)
    expected = visible(files)
    for state in crash_states(files, limit=400 if LONG else 60):
        going_on = MemoryFiles(None, state.disk)
        run(going_on, incremental=False)
        for second in crash_states(going_on, limit=20 if LONG else 12):
            check(second, {}, expected, report)
