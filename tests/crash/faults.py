"""What goes wrong in the middle of a workload: a call that fails, a process that dies, a child of a fork."""

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
    """The ``number``-th call of that name fails; of a write the first half arrives."""
    plan.call, plan.counted, plan.fails, plan.error, plan.short = call, 0, number, error, True
    try:
        yield
    finally:
        plan.fails = 0


def killed(directory: LogManager, files: DataFiles, config: LogConfig = CONFIG) -> LogManager:
    """The process ends without a word; another one opens the directory."""
    directory.data._give_back()
    return opened(files, config)


def reopened(directory: LogManager, files: DataFiles, config: LogConfig = CONFIG) -> LogManager:
    """The directory is closed, which says that a log has failed where one has, and opened again."""
    with suppress(KafkaError):
        directory.close()
    return opened(files, config)


@contextmanager
def in_a_child() -> Iterator[None]:
    """What is done here is done as if behind a fork: by a process that has inherited its parent's memory."""
    process = this_process()
    process.is_here = False
    try:
        yield
    finally:
        process.is_here = True
