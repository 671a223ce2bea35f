"""Who may change a data directory: its owner, from opening to closing, and nobody else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.storage.client import NOW, data
from txnkafka.broker.log_manager import LogManager
from txnkafka.config import LogConfig
from txnkafka.env import LocalDataFiles
from txnkafka.errors import FlushUnderWayError, KafkaStorageError, LogDirError
from txnkafka.model import TopicPartition
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.ownership import check_data_directory
from txnkafka.storage.recovery.log_end import Repair
from txnkafka.storage.work import perform
from txnkafka.testing.memory_files import MemoryFiles

FIRST, NEW = TopicPartition("t", 0), TopicPartition("n", 0)
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"


def opened(files: MemoryFiles) -> LogManager:
    return LogManager(DataDirectory(files, "/data", lambda topic: LogConfig(), now_ms=NOW))


# After the close

CHANGES: dict[str, Callable[[LogManager], object]] = {
    "create": lambda manager: manager.create(NEW, TOPIC_ID, now_ms=NOW),
    "creation": lambda manager: manager.data.creation({NEW: TOPIC_ID}, now_ms=NOW),
    "delete": lambda manager: manager.delete(FIRST),
    "delete of the directory": lambda manager: manager.data.delete(FIRST),
    "setting_aside": lambda manager: manager.setting_aside(FIRST),
    "truncate": lambda manager: manager.truncate(FIRST, 1, now_ms=NOW),
    "delete_records": lambda manager: manager.delete_records(FIRST, 1),
    "flush": lambda manager: manager.flush(),
    "maintain": lambda manager: manager.maintain(NOW + 10**12),
    "upkeep": lambda manager: list(manager.upkeep(manager.logs[FIRST], NOW + 10**12)),
    "clean": lambda manager: manager.clean(NOW),
    "checkpoint": lambda manager: manager.data.checkpoint(),
    "work of checkpoints": lambda manager: perform(manager.data.checkpoints.work(manager.logs)),
    "write_cleaner_offsets": lambda manager: manager.data.checkpoints.write_cleaner_offsets(),
    "roll of a log": lambda manager: manager.logs[FIRST].roll(NOW),
    "flush of a log": lambda manager: manager.logs[FIRST].flush(),
    "begin_flush of a log": lambda manager: manager.logs[FIRST].begin_flush(),
    "append to a log": lambda manager: manager.logs[FIRST].append(data(), now_ms=NOW),
}
ENDS: dict[str, Callable[[LogManager], None]] = {
    "close": LogManager.close,
    "close of the directory": lambda manager: manager.data.close(),
    "abandon": lambda manager: manager.data.abandon(),
}


def filled(files: MemoryFiles) -> LogManager:
    manager = opened(files)
    manager.create(FIRST, TOPIC_ID, now_ms=NOW).append(data(), now_ms=NOW)
    manager.flush()
    return manager


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_closed_directory_is_not_changed(change: str, end: str) -> None:
    """It belongs to the next owner, whose partitions and checkpoints would be deleted and replaced."""
    files = MemoryFiles()
    closed = filled(files)
    ENDS[end](closed)
    owner = opened(files)
    before = len(files.journal)
    with pytest.raises(KafkaStorageError, match="is closed"):
        CHANGES[change](closed)
    assert len(files.journal) == before
    assert owner.logs[FIRST].append(data(), now_ms=NOW).first_offset == 2


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("again", ENDS)
def test_a_second_close_changes_nothing(end: str, again: str) -> None:
    """It wrote the marker of a clean stop into the directory of the next owner."""
    files = MemoryFiles()
    closed = filled(files)
    ENDS[end](closed)
    owner = opened(files)
    before = len(files.journal)
    ENDS[again](closed)
    assert len(files.journal) == before
    owner.close()


def test_a_close_that_is_refused_releases_no_call() -> None:
    """A deletion is under way: nothing is flushed, so that no append may be acknowledged."""
    manager = filled(MemoryFiles())
    log = manager.create(NEW, TOPIC_ID, now_ms=NOW)
    deletion = manager.deletion(FIRST)
    log.append(data(), now_ms=NOW)
    told: list[Exception | None] = []
    manager.flushes.when_durable(log, told.append)
    with pytest.raises(FlushUnderWayError, match="finish it"):
        manager.close()
    assert told == []
    perform(deletion)
    manager.close()
    assert told == [None]


# Closing


def test_a_with_block_closes() -> None:
    files = MemoryFiles()
    with opened(files) as manager:
        manager.create(FIRST, TOPIC_ID, now_ms=NOW).append(data(), now_ms=NOW)
    assert manager.data.is_closed
    with opened(files).data as directory:
        assert directory.logs[FIRST].log_end_offset == 2
    assert directory.is_closed


def test_a_with_block_closes_after_an_error() -> None:
    directory = opened(MemoryFiles()).data
    with pytest.raises(ZeroDivisionError), directory:
        raise ZeroDivisionError
    assert directory.is_closed


def test_a_directory_that_was_not_closed_is_warned_of(tmp_path: Path) -> None:
    """The lock stays: the logs may be in use without the directory."""
    path = str(tmp_path / "data")
    directory = DataDirectory(LocalDataFiles(), path, lambda topic: LogConfig(), now_ms=NOW)
    with pytest.warns(ResourceWarning, match="data was not closed: it stays locked until the process ends"):
        del directory
    with pytest.raises(LogDirError, match="in this process: close its Broker or DataDirectory first"):
        DataDirectory(LocalDataFiles(), path, lambda topic: LogConfig(), now_ms=NOW)


# What is taken


def in_directory(path: Path, *names: str) -> Path:
    """Create files, and directories where a name ends with a slash."""
    for name in names:
        file = path / name
        (file if name.endswith("/") else file.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            file.touch()
    return path


def everything_in(path: Path) -> list[str]:
    return sorted(str(each.relative_to(path)) for each in path.rglob("*"))


LOG = "00000000000000000000.log"


@pytest.mark.parametrize(
    ("names", "foreign"),
    [
        (["setup.py"], "setup.py"),
        (["hosts", "cfg/", "app-1/notes.txt"], "app-1/notes.txt, cfg, hosts"),
        (["dbus-1/system.d/", "polkit-1/rules.d/"], "dbus-1/system.d, polkit-1/rules.d"),
        (["app-1/"], "app-1/"),
        (["app-1"], "app-1"),
        (["app-1/.DS_Store"], "app-1/"),
        (["app-1/a", "app-1/b", "app-1/c", "app-1/d"], "app-1/a, app-1/b, app-1/c and 1 more"),
        ([f"orders-0/{LOG}", "app-1/notes.txt"], "app-1/notes.txt"),
        ([f"orders-0/{LOG}", "orders-0/notes.txt"], "orders-0/notes.txt"),
        ([f"orders-0/{LOG}", "notes.txt"], "notes.txt"),
        ([f"orders-0/{LOG}", "backup-1.old-delete/notes.txt"], "backup-1.old-delete/notes.txt"),
        ([".bashrc", ".config/"], ".bashrc, .config"),
        (["photos-checkpoint"], "photos-checkpoint"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("repair", [None, Repair(), Repair(full=True, truncate_corrupt=True)])
def test_a_directory_of_something_else_is_not_taken(
    tmp_path: Path, names: list[str], foreign: str, repair: Repair | None
) -> None:
    """Directories may be named like partitions by chance. Nothing is written, no lock file either."""
    before = everything_in(in_directory(tmp_path, *names))
    with pytest.raises(LogDirError, match=f"not a data directory, .* found: {re.escape(foreign)}\\. Name"):
        DataDirectory(LocalDataFiles(), str(tmp_path), lambda topic: LogConfig(), now_ms=NOW, repair=repair)
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize(
    "names",
    [
        [],
        [".lock", ".snapshot/", "lost+found/"],
        ["src/", "meta.properties"],
        ["orders-0/", "meta.properties"],
        ["recovery-point-offset-checkpoint", "meta.properties.tmp"],
        [f"orders-0/{LOG}", "orders-0/leader-epoch-checkpoint.tmp", "bills-0/partition.metadata"],
        [f"__cluster_metadata-0/{LOG}", "__cluster_metadata-0/quorum-state",
         "__cluster_metadata-0/00000000000000000009-0000000001.checkpoint.part"],
        [f"orders-0.0123-delete/{LOG}.deleted", f"bills-0.0123-future/{LOG}"],
    ],
)  # fmt: skip
def test_a_data_directory(tmp_path: Path, names: list[str]) -> None:
    """A new file system, what a crash has left, a directory of partitions."""
    in_directory(tmp_path, *names)
    check_data_directory(LocalDataFiles(), str(tmp_path))
    check_data_directory(LocalDataFiles(), str(tmp_path / "new"))


def test_directories_that_nobody_writes_to_are_not_looked_into(tmp_path: Path) -> None:
    """A link is refused as a partition."""
    in_directory(tmp_path, f"logs/orders-0/{LOG}", "elsewhere/notes.txt")
    (tmp_path / "logs" / "app-1").symlink_to(tmp_path / "elsewhere")
    check_data_directory(LocalDataFiles(), str(tmp_path / "logs"))
