"""A data directory in a forked child, and under a limit on file sizes; each in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HEAD = """
import os, resource, signal, sys
from tests.unit.storage.client import NOW, data
from txnkafka.config import CleanerConfig, LogConfig
from txnkafka.env import LocalDataFiles
from txnkafka.errors import LogDirError
from txnkafka.model import TopicPartition
from txnkafka.broker.log_manager import LogManager
from txnkafka.storage.data_directory import DataDirectory
from tests.unit.storage.reads import read
from txnkafka.storage.log.truncation import delete_old_segments, delete_records, truncate_to

PATH, PARTITION = sys.argv[1], TopicPartition("t", 0)
CONFIG = LogConfig(segment_bytes=5000, preallocate=True)


def opened():
    return LogManager(DataDirectory(LocalDataFiles(), PATH, lambda topic: CONFIG, now_ms=NOW))


def names():
    return sorted(os.path.join(top, name) for top, _, files in os.walk(PATH) for name in files)
"""

FORK = """
directory = opened()
closed = directory.create(PARTITION, "AAAAAAAAAAEAAAAAAAAAAg", now_ms=NOW)
written = directory.create(TopicPartition("t", 1), "AAAAAAAAAAEAAAAAAAAAAg", now_ms=NOW)
written.append(data(), now_ms=NOW)  # its files are open, and it waits for a flush
before = names()

CHANGES = {
    "create": lambda: directory.create(TopicPartition("t", 2), "AAAAAAAAAAEAAAAAAAAAAg", now_ms=NOW),
    "delete": lambda: directory.delete(PARTITION),
    "truncate": lambda: directory.truncate(PARTITION, 0, now_ms=NOW),
    "delete_records": lambda: directory.delete_records(PARTITION, 0),
    "flush": directory.flush,
    "maintain": lambda: directory.maintain(NOW + 10**12),
    "clean": lambda: directory.clean(NOW),
    "checkpoint": directory.data.checkpoint,
    "write_cleaner_offsets": directory.data.checkpoints.write_cleaner_offsets,
    "close": directory.close,
}
for number, log in enumerate((closed, written)):
    CHANGES |= {
        f"append {number}": lambda log=log: log.append(data(), now_ms=NOW),
        f"roll {number}": lambda log=log: log.roll(NOW),
        f"flush {number}": log.flush,
        f"begin_flush {number}": log.begin_flush,
        f"truncate_to {number}": lambda log=log: truncate_to(log, 0, now_ms=NOW),
        f"delete_records {number}": lambda log=log: delete_records(log, 0),
        f"delete_old_segments {number}": lambda log=log: delete_old_segments(log, NOW),
        f"delete_files {number}": lambda log=log: log.local.delete(log.active, NOW),
        f"remove_deleted {number}": lambda log=log: log.local.remove_deleted(NOW + 10**12),
        f"close {number}": log.close,
    }


def not_refused():
    for name, change in CHANGES.items():
        try:
            change()
        except LogDirError as error:
            if f"is held by process {os.getppid()}" in str(error):
                continue
        yield name


child = os.fork()
if not child:
    failed = 3
    try:
        found = list(not_refused())
        print("not refused:", found)
        print("changed:", set(names()) ^ set(before))
        print("read:", read(written, 0, max_bytes=1000).high_watermark, written.log_end_offset)
        own = DataDirectory(LocalDataFiles(), PATH + "-of-the-child", lambda topic: CONFIG, now_ms=NOW)
        own.create(PARTITION, "AAAAAAAAAAEAAAAAAAAAAg", now_ms=NOW).append(data(), now_ms=NOW)
        own.close()
        failed = 0
    finally:
        sys.stdout.flush()
        os._exit(failed)
print("child:", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print("owner:", *(log.append(data(), now_ms=NOW).first_offset for log in (closed, written)))
directory.flush()
directory.close()
again = opened()
print("again:", [log.log_end_offset for log in again.logs.values()], again.data.was_clean, again.data.repairs)
"""

LIMIT = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
directory = opened()
log = directory.create(PARTITION, "AAAAAAAAAAEAAAAAAAAAAg", now_ms=NOW)
log.append(data(), now_ms=NOW)
log.flush()
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
try:
    log.roll(NOW)
except OSError as error:
    print("roll:", error.strerror, log.fenced)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
print("append:", log.append(data(), now_ms=NOW).first_offset)
log.flush()
if "checkpoint" in sys.argv:
    directory.data.checkpoint()
directory.data.abandon()  # as if the process had ended
again = opened()
print("again:", again.logs[PARTITION].log_end_offset, again.data.refused)
"""

DESCRIPTORS = """
from tests.unit.storage.client import Log
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.recovery.log_loader import Repair


def opened(repair=None):
    config = LogConfig(segment_bytes=400, index_interval_bytes=0)
    return DataDirectory(LocalDataFiles(), PATH, lambda topic: config, now_ms=NOW, repair=repair)


def remove(*suffixes):
    for name in names():
        if name.endswith(suffixes):
            os.remove(name)


directory = opened()
log = Log(directory.create(PARTITION, "AAAAAAAAAAEAAAAAAAAAAg", now_ms=NOW))
for number in range(120):
    log.transactional(7, 2 * number)
    log.end(7, commit=False)
log.log.flush()
segments = log.bases
directory.abandon()
resource.setrlimit(resource.RLIMIT_NOFILE, (40, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
for lost, repair in (
    ((".kafka_cleanshutdown", "recovery-point-offset-checkpoint"), None),
    ((".index", ".timeindex"), None),
    ((".txnindex", ".timeindex"), None),
    (("000.index",), Repair()),
    ((".index", ".txnindex"), Repair(full=True)),
):
    remove(*lost)
    directory = opened(repair)
    log = directory.logs[PARTITION]
    print(len(segments), [each.base_offset for each in log.segments] == segments, directory.refused)
    answer = read(log, 0, max_bytes=1).aborted_transactions
    print([each.last_offset for each in answer])
    directory.close()
"""


def run(program: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-P", "-c", HEAD + program, *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_child_of_a_fork_changes_nothing(tmp_path: Path) -> None:
    """A child refuses every change, but can read memory; the owner continues to work."""
    assert run(FORK, str(tmp_path / "data")) == [
        "not refused: []",
        "changed: set()",
        "read: 0 2",
        "child: 0",
        "owner: 0 2",
        "again: [2, 4] True []",
    ]


def test_a_limit_of_file_sizes_at_a_roll(tmp_path: Path) -> None:
    """The preallocation fails; batches appended to the previous segment survive, whatever recovery point is
    on the disk."""
    for arguments in ([], ["checkpoint"]):
        path = tmp_path / f"data-{len(arguments)}"
        assert run(LIMIT, str(path), *arguments) == [
            "roll: File too large None",
            "append: 2",
            "again: 4 {}",
        ]


def test_a_log_of_more_segments_than_descriptors(tmp_path: Path) -> None:
    """Recovery and repairs sync and close the files of one segment before they open those of the next."""
    assert run(DESCRIPTORS, str(tmp_path / "data")) == ["60 True {}", "[2]"] * 5
