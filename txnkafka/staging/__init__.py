"""Parts of a job that are made anywhere, again and in any order, and of which each takes effect once."""

from __future__ import annotations

from txnkafka.staging.attempt import Attempt, begin_attempt, record_attempt
from txnkafka.staging.publish import publish
from txnkafka.staging.staging_area import StagedPart, StagingArea

__all__ = ["Attempt", "StagedPart", "StagingArea", "begin_attempt", "publish", "record_attempt"]
