"""Faults in the middle of a workload: a call fails, the process is killed, a forked child uses the
directory."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.crash.partition_promises import CONFIG, opened
from txnkafka.broker.log_manager import LogManager
from txnkafka.config import LogConfig
from txnkafka.env import DataFiles, this_process
from txnkafka.errors import KafkaError
from txnkafka.testing.fault_plan import FaultPlan

__all__ = ["failing", "in_a_child", "killed", "reopened"]


@contextmanager
def failing(plan: FaultPlan, call: str, number: int = 1, *, error: int = errno.ENOSPC) -> Iterator[None]:
    """Fail the ``number``-th call of that name; half of a failed write is written."""
    plan.call, plan.counted, plan.fails, plan.error, plan.short = call, 0, number, error, True
    try:
        yield
    finally:
        plan.fails = 0


def killed(directory: LogManager, files: DataFiles, config: LogConfig = CONFIG) -> LogManager:
    """Kill the process, and open the directory in a new one."""
    directory.data._give_back()
    return opened(files, config)


def reopened(directory: LogManager, files: DataFiles, config: LogConfig = CONFIG) -> LogManager:
    """Close the directory, which raises if one of its logs failed, and open it again."""
    with suppress(KafkaError):
        directory.close()
    return opened(files, config)


@contextmanager
def in_a_child() -> Iterator[None]:
    """Run the block as in a forked child: in another process with the memory of its parent."""
    process = this_process()
    process.is_here = False
    try:
        yield
    finally:
        process.is_here = True
