"""Reference workloads on a data directory, with records of their acknowledgements.

A workload is a function of files, a clock and promises. Its check opens the remaining files as any start
does, so that the power can be cut during recovery, too.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.crash import log_workloads, owner_workloads, roll_workloads
from tests.crash.compaction import check_compactions, compactions
from tests.crash.explore import Check, Promises, Workload
from tests.crash.partition_promises import check_logs
from txnkafka.env import Clock, DataFiles, make_directories, write_durably

__all__ = ["REFERENCES", "Reference", "left_to_long"]


def small_files(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Replaces small files as a whole, in a new directory: the checkpoints of a broker."""
    make_directories(files, "/data/kafka")
    for number in range(4):
        content = b"0\n%d\n" % number
        for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
            promises.attempt((name, content))
            write_durably(files, f"/data/kafka/{name}", content)
            promises.acknowledge((name, content))


def check_small_files(files: DataFiles, promises: Promises) -> None:
    """Each file has the last acknowledged content, or a later attempted one."""
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        attempted = [content for each, content in promises.attempted if each == name]
        acknowledged = [content for each, content in promises.acknowledged if each == name]
        path = f"/data/kafka/{name}"
        if acknowledged or files.exists(path):
            oldest = attempted.index(acknowledged[-1]) if acknowledged else 0
            assert files.read(path, 100) in attempted[oldest:], path


class Reference(NamedTuple):
    """A workload with its check, and the least number of its crash states and failed calls. ``make test``
    takes about ``quick`` of the states; ``twice`` and ``fails`` say whether it cuts the power twice, and
    whether it fails each call. ``make long`` does both for every workload, with all states."""

    workload: Workload
    check: Check
    states: int = 500
    failures: int = 400
    quick: int = 700
    twice: bool = False
    fails: bool = False


REFERENCES = [
    Reference(small_files, check_small_files, states=60, failures=200, twice=True, fails=True),
    Reference(log_workloads.appends, check_logs, quick=1200, twice=True, fails=True),
    Reference(log_workloads.appends_together, check_logs, quick=1000, twice=True),
    Reference(log_workloads.rolls, check_logs, quick=1200, twice=True, fails=True),
    Reference(log_workloads.transactions, check_logs, quick=1200, twice=True, fails=True),
    Reference(log_workloads.truncations, check_logs, quick=1200, twice=True, fails=True),
    Reference(log_workloads.deleted_records, check_logs, quick=1200, twice=True, fails=True),
    Reference(log_workloads.preallocated, check_logs, quick=1200, twice=True, fails=True),
    Reference(log_workloads.retention, check_logs, quick=1200, twice=True, fails=True),
    Reference(log_workloads.clean_restarts, check_logs, quick=1200, twice=True, fails=True),
    Reference(log_workloads.large_batches, check_logs, states=200, failures=150),
    Reference(log_workloads.full_disk, check_logs, quick=1200, fails=True),
    Reference(log_workloads.deletions, check_logs, quick=1200, twice=True),
    Reference(compactions, check_compactions, quick=1000, twice=True),
    Reference(roll_workloads.rolls_without_flush, check_logs, fails=True),
    Reference(roll_workloads.rolls_and_clean_stop, check_logs),
    Reference(roll_workloads.rolls_that_cannot_create, check_logs, quick=700),
    Reference(roll_workloads.rolls_that_cannot_write, check_logs, quick=700),
    Reference(roll_workloads.rolls_that_cannot_preallocate, check_logs, quick=700),
    Reference(roll_workloads.rolls_that_cannot_sync, check_logs),
    Reference(roll_workloads.rolls_that_cannot_sync_names, check_logs),
    Reference(roll_workloads.rolls_that_cannot_keep_epochs, check_logs),
    Reference(roll_workloads.full_disk_before_a_roll, check_logs),
    Reference(roll_workloads.full_disk_and_clean_stop, check_logs),
    Reference(roll_workloads.full_disk_preallocated, check_logs),
    Reference(owner_workloads.kills, check_logs, twice=True),
    Reference(owner_workloads.failed_syncs, check_logs),
    Reference(owner_workloads.group_commits, check_logs, fails=True),
    Reference(owner_workloads.maintained, check_logs),
    Reference(owner_workloads.timestamps, check_logs),
    Reference(owner_workloads.epochs, check_logs),
    Reference(owner_workloads.long_transactions, check_logs),
    Reference(owner_workloads.kept_by_size, check_logs, fails=True),
    Reference(owner_workloads.producers_of_deleted, check_logs, fails=True),
    Reference(owner_workloads.records_of_all_deleted, check_logs),
    Reference(owner_workloads.cuts_to_nothing, check_logs),
    Reference(owner_workloads.delayed_deletions, check_logs),
    Reference(owner_workloads.retried_changes, check_logs),
    Reference(owner_workloads.creations_that_fail, check_logs, states=50, failures=300),
    Reference(owner_workloads.children, check_logs),
]


def left_to_long() -> str:
    """Return what ``make test`` leaves out of these workloads, in a few lines."""
    once = [reference.workload.__name__ for reference in REFERENCES if not reference.twice]
    whole = [reference.workload.__name__ for reference in REFERENCES if not reference.fails]
    return (
        f"{len(REFERENCES)} workloads. Left to make long: thousands of crash states instead of hundreds;\n"
        f"  a second power cut of {', '.join(once)};\n"
        f"  calls that fail of {', '.join(whole)}"
    )
