"""Access to the outside world: files, time and randomness. All other packages go through this one, so that
tests can replace it."""

from __future__ import annotations

from txnkafka.env.address import AnyPath, absolute_path, is_remote, list_of_paths, open_file_system
from txnkafka.env.address_password import without_password
from txnkafka.env.clock import Clock, SystemClock, running_seconds
from txnkafka.env.data_files import Bytes, DataFile, DataFiles, LocalDataFiles, Lock, Volume
from txnkafka.env.durable import (
    make_directories,
    remove_tree,
    replace_file,
    sync_new_directories,
    write_durably,
)
from txnkafka.env.file_lock import LINK
from txnkafka.env.filesystem import DirectoryEntry, FileSystem, LocalFileSystem, MappedBytes, ReadableFile
from txnkafka.env.process import Process, is_of_another_user, this_process, thread_count
from txnkafka.env.randomness import Random, random_below, random_from, unique_name

__all__ = [
    "LINK",
    "AnyPath",
    "Bytes",
    "Clock",
    "DataFile",
    "DataFiles",
    "DirectoryEntry",
    "FileSystem",
    "LocalDataFiles",
    "LocalFileSystem",
    "Lock",
    "MappedBytes",
    "Process",
    "Random",
    "ReadableFile",
    "SystemClock",
    "Volume",
    "absolute_path",
    "is_of_another_user",
    "is_remote",
    "list_of_paths",
    "make_directories",
    "open_file_system",
    "random_below",
    "random_from",
    "remove_tree",
    "replace_file",
    "running_seconds",
    "sync_new_directories",
    "this_process",
    "thread_count",
    "unique_name",
    "without_password",
    "write_durably",
]
