"""The outside world: files and time. Everything else gets them from here, so that tests can put others in
their place."""

from __future__ import annotations

from txnkafka.env.address import AnyPath, is_remote, list_of_paths, open_file_system
from txnkafka.env.clock import Clock, SystemClock
from txnkafka.env.data_files import Bytes, DataFile, DataFiles, LocalDataFiles, Lock
from txnkafka.env.durable import make_directories, remove_tree, unique_name, write_durably
from txnkafka.env.filesystem import DirectoryEntry, FileSystem, LocalFileSystem, ReadableFile

__all__ = [
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
    "ReadableFile",
    "SystemClock",
    "is_remote",
    "list_of_paths",
    "make_directories",
    "open_file_system",
    "remove_tree",
    "unique_name",
    "write_durably",
]
