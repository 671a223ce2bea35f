"""Exactly-once jobs whose parts may be made anywhere, repeatedly and in any order."""

from __future__ import annotations

from txnkafka.staging.attempt import Attempt, begin_attempt, discard_attempt, record_attempt
from txnkafka.staging.publish import publish
from txnkafka.staging.staging_area import StagedPart, StagingArea

__all__ = [
    "Attempt",
    "StagedPart",
    "StagingArea",
    "begin_attempt",
    "discard_attempt",
    "publish",
    "record_attempt",
]
