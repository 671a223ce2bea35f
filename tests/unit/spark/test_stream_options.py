"""Options of a stream: its limits, where it may start, and what only a batch has."""

from __future__ import annotations

import pytest

from txnkafka import TopicPartition
from txnkafka.spark.source import TxnKafkaDataSource
from txnkafka.spark.source_options import SourceOptions, parse_source_options
from txnkafka.spark.stream.limits import TriggerLimits


def options(**given: str) -> SourceOptions:
    return parse_source_options({"path": "/logs", **given}, streaming=True)


def test_a_stream_starts_at_the_latest_offsets() -> None:
    found = options()
    assert (found.reading.starting_offsets, found.limits) == ("latest", TriggerLimits())
    assert options(startingOffsets="earliest").reading.starting_offsets == "earliest"
    given = options(startingOffsets='{"a": {"0": -1, "1": -2, "2": 7}}').reading.starting_offsets
    assert given == {TopicPartition("a", i): offset for i, offset in enumerate((-1, -2, 7))}
    assert options(startingTimestamp="1700000000000").reading.starting_timestamp == 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("15m", 900_000), ("15min", 900_000), ("90s", 90_000), ("250", 250), ("250ms", 250), ("3000us", 3),
     ("2h", 7_200_000), ("1d", 86_400_000)],
)  # fmt: skip
def test_a_delay_has_sparks_units(text: str, milliseconds: int) -> None:
    assert options(maxTriggerDelay=text).limits.max_delay_ms == milliseconds


def test_limits_of_a_trigger() -> None:
    found = options(maxOffsetsPerTrigger="9", minOffsetsPerTrigger="3", maxBytesPerTrigger="2m")
    assert found.limits == TriggerLimits(9, 3, max_bytes=2 << 20)
    ignored = parse_source_options({"path": "/logs", "maxOffsetsPerTrigger": "9"})
    assert ignored.limits.max_offsets == 9  # and the source says that a batch does not apply it


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"endingOffsets": "latest"}, "option endingOffsets: a stream has no end"),
        ({"endingTimestamp": "1700000000000"}, "option endingTimestamp: a stream has no end"),
        ({"endingOffsetsByTimestamp": "{}"}, "endingOffsetsByTimestamp: a stream has no end"),
        ({"table": "batches"}, "table=batches cannot be streamed: use spark.read"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be at least 1, not 0"),
        ({"maxBytesPerTrigger": "0"}, "maxBytesPerTrigger must be at least 1, not 0"),
        ({"minOffsetsPerTrigger": "-1"}, "minOffsetsPerTrigger must be at least 1, not -1"),
        (
            {"maxOffsetsPerTrigger": "2", "minOffsetsPerTrigger": "3"},
            "minOffsetsPerTrigger (3) is above maxOffsetsPerTrigger (2)",
        ),
        ({"maxTriggerDelay": "soon"}, "option maxTriggerDelay: must be a time such as 30s or 15m"),
        ({"startingOffsets": "newest"}, "starting offsets must be earliest or latest or like"),
    ],
)
def test_invalid_options_of_a_stream_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        options(**given)
    assert message in str(caught.value)


def test_the_reader_raises_the_error_of_an_option() -> None:
    """When Spark calls it: from ``streamReader`` Spark would hide the error in one of its own."""
    source = TxnKafkaDataSource({"path": "/logs", "endingOffsets": "latest"})
    reader = source.streamReader(source.schema())
    for asked in (reader.initialOffset, reader.latestOffset):  # Spark 4.0 calls the latter first
        with pytest.raises(ValueError, match="option endingOffsets: a stream has no end"):
            asked()
