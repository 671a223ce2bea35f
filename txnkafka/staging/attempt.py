"""Attempts at a part: a worker writes one before its part may count."""

from __future__ import annotations

from typing import NamedTuple

from txnkafka.env import DataFiles, make_directories, unique_name, write_durably

__all__ = ["Attempt", "begin_attempt", "record_attempt"]


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

    All files of the attempt must be durable before, contents and names.
    """
    write_durably(files, f"{attempt.folder}.json", record)
