"""The limits that Spark passes to a source, and how a source takes part in AvailableNow: both new in Spark
4.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from txnkafka.spark.stream.limits import TriggerLimits

    class SupportsTriggerAvailableNow:
        """Marks a reader that has ``prepareForTriggerAvailableNow``."""
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:

        class SupportsTriggerAvailableNow:
            """Earlier versions do not use it."""


def read_limit(limits: TriggerLimits) -> Any:
    """Return a limit of Spark's, which it passes back unless the trigger wants all that is available. The
    source applies all its limits then; only the class counts."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows

    if limits.max_offsets is not None:
        return ReadMaxRows(limits.max_offsets)
    if limits.max_bytes is not None:
        return ReadMaxBytes(limits.max_bytes)
    return ReadAllAvailable() if limits.min_offsets is None else ReadMinRows(limits.min_offsets)


def wants_all(limit: object) -> bool:
    """Return whether a trigger wants all that is available; False in versions that pass no limit."""
    return type(limit).__name__ == "ReadAllAvailable"
