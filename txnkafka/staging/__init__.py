"""Exactly-once jobs whose parts may be made anywhere, repeatedly and in any order."""

from __future__ import annotations

from txnkafka.staging.attempt import Attempt, begin_attempt, discard_attempt, record_attempt
from txnkafka.staging.publish import publish
from txnkafka.staging.staged_file import (
    Orphan,
    StagedFile,
    folder_beside,
    orphans,
    remove_staged,
    staging_beside,
)
from txnkafka.staging.staging_area import StagedPart, StagingArea

__all__ = [
    "Attempt",
    "Orphan",
    "StagedFile",
    "StagedPart",
    "StagingArea",
    "begin_attempt",
    "discard_attempt",
    "folder_beside",
    "orphans",
    "publish",
    "record_attempt",
    "remove_staged",
    "staging_beside",
]
