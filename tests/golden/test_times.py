"""Lookups by timestamp, compared with the answers of ListOffsets, and those that ListOffsets missed.

The right answer follows from the records and markers: the first one, in offset order, that is not older.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.golden.cases import ISOLATION_LEVELS
from tests.golden.directories import ANSWERED, Directory

NOTHING = {"offset": -1, "timestamp": -1, "leader_epoch": None}

# The broker searches only the first segment that may have a record that young, and finds none there.
OVERLOOKED = {
    (
        "kafka_2_8",
        "trimmed-0",
    ): "that segment is below the log start offset: deleted records in a file that still exists",
    (
        "kafka_3_3",
        "trimmed-0",
    ): "that segment is below the log start offset: deleted records in a file that still exists",
    (
        "kafka_3_9",
        "trimmed-0",
    ): "that segment is below the log start offset: deleted records in a file that still exists",
    (
        "legacy_on_4",
        "upgraded-0",
    ): "that segment has no timestamps, so its age is that of the file",
}

Json = Any


def asked(directory: Directory) -> list[dict[str, Json]]:
    answers = directory.case.facts(directory.partition).get("offsets_for_times", [])
    return [each for each in answers if each["spec"].isdigit()]


# The broker was asked about these, and missed nothing.
COMPARABLE = [
    each for each in ANSWERED if asked(each) and (each.case.name, str(each.partition)) not in OVERLOOKED
]


def found(directory: Directory, timestamp: int, isolation_level: str) -> dict[str, Json]:
    answer = directory.view().offset_for_timestamp(timestamp, isolation_level)
    return NOTHING if answer is None else answer._asdict()


def dated(directory: Directory) -> Iterator[dict[str, Json]]:
    """Yield everything with an offset and a time: the consumer's records, and the dump tool's markers."""
    yield from directory.case.expected_records(directory.partition, "read_uncommitted")
    for name, dump in directory.case.dump(directory.partition).items():
        if name.endswith(".log"):
            for row in dump["rows"]:
                batch = dict(zip(dump["columns"], row, strict=True))
                if batch["isControl"]:
                    yield {
                        "offset": batch["baseOffset"],
                        "timestamp": batch["CreateTime"],
                        "leader_epoch": batch["partitionLeaderEpoch"],
                    }


def test_the_broker_was_asked_about_most() -> None:
    assert (len(ANSWERED), len(COMPARABLE)) == (182, 156)


@pytest.mark.parametrize("directory", COMPARABLE, ids=str)
def test_offsets_for_times(directory: Directory) -> None:
    for answer in asked(directory):
        for level in ISOLATION_LEVELS:
            assert found(directory, int(answer["spec"]), level) == answer[level], (answer["spec"], level)


def test_what_the_broker_overlooks() -> None:
    for directory in ANSWERED:
        if (directory.case.name, str(directory.partition)) not in OVERLOOKED:
            continue
        facts = directory.case.facts(directory.partition)
        there = sorted(dated(directory), key=lambda each: each["offset"])
        assert any(answer["read_uncommitted"] == NOTHING for answer in asked(directory))
        for answer in asked(directory):
            timestamp = int(answer["spec"])
            first = next(
                (
                    {name: each[name] for name in NOTHING}
                    for each in there
                    if each["timestamp"] >= timestamp and each["offset"] >= facts["log_start_offset"]
                ),
                NOTHING,
            )
            for level, end in zip(ISOLATION_LEVELS, (facts["lso"], facts["high_watermark"]), strict=True):
                assert found(directory, timestamp, level) == (first if first["offset"] < end else NOTHING)
