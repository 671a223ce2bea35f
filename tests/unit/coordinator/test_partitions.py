"""Which partition of a coordinator's topic an id belongs to."""

from __future__ import annotations

import pytest

from txnkafka.coordinator import partition_for, string_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("shop", 3529462),
        ("transactional-id", 510590431),
        ("\U0001f600", 1772899),
        ("\u00fcn\u00efcode-\u2603", 1471483744),
        ("polygenelubricants", 0),
    ],
)
def test_string_hash(text: str, expected: int) -> None:
    """What Java's ``Utils.abs(text.hashCode())`` gives; the last text's hash is the smallest int."""
    assert string_hash(text) == expected


def test_the_partition_is_the_rest_of_the_hash() -> None:
    assert [partition_for("transactional-id", count) for count in (1, 4, 50)] == [0, 3, 31]
