"""The outside world: files and time. Everything else gets them from here, so that tests can put others in
their place."""

from __future__ import annotations

from txnkafka.env.address import open_file_system
from txnkafka.env.clock import Clock, SystemClock
from txnkafka.env.data_files import DataFile, DataFiles, LocalDataFiles, Lock
from txnkafka.env.filesystem import DirectoryEntry, FileSystem, LocalFileSystem, ReadableFile
from txnkafka.env.output import LocalOutput, OutputFile, OutputFiles, unique_name, write_durably

__all__ = [
    "Clock",
    "DataFile",
    "DataFiles",
    "DirectoryEntry",
    "FileSystem",
    "LocalDataFiles",
    "LocalFileSystem",
    "LocalOutput",
    "Lock",
    "OutputFile",
    "OutputFiles",
    "ReadableFile",
    "SystemClock",
    "open_file_system",
    "unique_name",
    "write_durably",
]
