"""The programs in examples/ work, also when the power is cut or a call fails."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from examples import transfer
from txnkafka import KafkaError, LogDir
from txnkafka.env import DataFiles
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

PROGRAM = Path(transfer.__file__)
STATES = 12  # of the disk, after each failing call


def changes(log_dir: LogDir, isolation_level: str) -> list[list[tuple[bytes | None, bytes | None]]]:
    """Return the accounts and amounts that a reader gets, by partition."""
    return [
        [
            (record.key, record.value)
            for record in log_dir.partition(*partition).records(isolation_level=isolation_level)
        ]
        for partition in transfer.ACCOUNTS
    ]


def committed(files: DataFiles) -> list[list[tuple[bytes | None, bytes | None]]]:
    return changes(LogDir("/data", file_system=files), "read_committed")


def test_a_transfer_is_two_committed_records(tmp_path: Path) -> None:
    for names in (("alice", "bob", "10"), ("bob", "carol", "3")):
        subprocess.run([sys.executable, PROGRAM, tmp_path / "data", *names], cwd=tmp_path, check=True)
    expected = [[(b"alice", b"-10"), (b"bob", b"-3")], [(b"bob", b"+10"), (b"carol", b"+3")]]
    assert changes(LogDir(tmp_path / "data"), "read_committed") == expected
    assert changes(LogDir(tmp_path / "data"), "read_uncommitted") == expected


def test_a_program_that_stops_before_its_decision_has_aborted(tmp_path: Path) -> None:
    data = transfer.opened(str(tmp_path), transfer.LocalDataFiles())
    for partition in transfer.ACCOUNTS:
        transfer.append(data.logs[partition], 0, "alice", 10)
    data.close()
    log_dir = LogDir(tmp_path)
    assert changes(log_dir, "read_committed") == [[], []]
    assert changes(log_dir, "read_uncommitted") == [[(b"alice", b"+10")]] * 2
    transfer.main(str(tmp_path), "alice", "bob", "5")
    log_dir = LogDir(tmp_path)
    assert changes(log_dir, "read_committed") == [[(b"alice", b"-5")], [(b"bob", b"+5")]]
    assert [len(each) for each in changes(log_dir, "read_uncommitted")] == [2, 2]


@pytest.mark.slow
def test_a_power_cut_leaves_both_records_or_none() -> None:
    files = MemoryFiles()
    data = transfer.opened("/data", files)
    begin = len(files.journal)
    transfer.transfer(data, "alice", "bob", 10)
    done = len(files.journal)
    outcomes = set()
    for state in crash_states(files, begin=begin, news=[done]):
        left = MemoryFiles(base=state.disk)
        again = transfer.opened("/data", left)
        assert [log.producers.open_count for log in again.logs.values()] == [0, 0, 0], state.name
        found = committed(left)
        assert found in ([[], []], [[(b"alice", b"-10")], [(b"bob", b"+10")]]), state.name
        assert state.changes < done or found[0], f"a committed transfer is lost: {state.name}"
        outcomes.add(len(found[0]))
        transfer.transfer(again, "bob", "alice", 1)
        assert [len(each) for each in committed(left)] == [len(found[0]) + 1] * 2, state.name
    assert outcomes == {0, 1}


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_call_that_fails_leaves_both_records_or_none(*, power_cut: bool) -> None:
    number, failed = 1, True
    while failed:
        files = MemoryFiles()
        transfer.opened("/data", files).close()
        plan = FaultPlan(number)
        succeeded = one_transfer(FaultyFiles(files, plan))
        failed = bool(plan.failed)
        ends = crash_states(files, begin=len(files.journal), limit=STATES)
        for state in list(ends) if power_cut else [None]:
            left = MemoryFiles(base=state.disk) if state else files
            transfer.opened("/data", left).close()
            found = committed(left)
            assert found in ([[], []], [[(b"alice", b"-10")], [(b"bob", b"+10")]]), (plan.failed, state)
            assert found[0] or not succeeded, plan.failed
        number += 1
    assert number > 20


def one_transfer(files: DataFiles) -> bool:
    """Return whether it reported success."""
    try:
        data = transfer.opened("/data", files)
    except (OSError, KafkaError):
        return False
    succeeded = False
    with suppress(OSError, KafkaError), ExitStack() as stack:
        stack.callback(data.close)
        transfer.transfer(data, "alice", "bob", 10)
        succeeded = True
    return succeeded
