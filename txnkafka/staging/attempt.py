"""Attempts at a part: a worker writes one before its part may count."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from txnkafka.env import DataFiles, make_directories, remove_tree, unique_name, write_durably


class Attempt(NamedTuple):
    """An attempt at a part: ``folder`` for its files, ``name`` for its record."""

    name: str
    folder: str


def begin_attempt(files: DataFiles, staging: str, number: int) -> Attempt:
    """Create the folder of a new attempt at part ``number`` in the folder ``staging`` of a StagingArea. An
    attempt never meets what another one left."""
    name = f"{number:08}-{unique_name()}"
    folder = files.join(staging, name)
    make_directories(files, folder)
    return Attempt(name, folder)


def record_attempt(files: DataFiles, attempt: Attempt, record: bytes) -> None:
    """Record durably that the attempt is complete: from now on its part may count.

    All files of the attempt must be durable before, contents and names."""
    write_durably(files, f"{attempt.folder}.json", record)


def discard_attempt(files: DataFiles, attempt: Attempt) -> None:
    """Remove the files of an attempt that has failed before it was recorded, as far as that is possible."""
    with suppress(OSError):
        remove_tree(files, attempt.folder)
