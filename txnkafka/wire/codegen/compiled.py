"""Readers and writers of message classes, made at the first use of a version and kept."""

from __future__ import annotations

from functools import cache

from txnkafka.wire.codegen.part_readers import ReadPart
from txnkafka.wire.codegen.part_writers import WritePart
from txnkafka.wire.codegen.reader_source import VersionReaders
from txnkafka.wire.codegen.writer_source import VersionWriters

__all__ = ["reader_of", "writer_of"]


@cache
def reader_of(cls: type, version: int, flexible: bool) -> ReadPart:
    """The reader of one version of a message."""
    return VersionReaders(version, flexible).reader(cls)


@cache
def writer_of(cls: type, version: int, flexible: bool) -> WritePart:
    """The writer of one version of a message."""
    return VersionWriters(version, flexible).writer(cls)
