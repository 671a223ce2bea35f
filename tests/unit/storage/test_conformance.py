"""Every line of the conformance list for logs is a test whose name begins with it, or has its reason here.

The list was drawn from Apache Kafka's own tests at version 4.3.1 (ProducerStateManagerTest, UnifiedLogTest,
TransactionIndexTest, LogCleanerTest, the tests of record batches, LogValidatorTest) and numbered from 1 to
133. Tests carry group and number, as in ``test_ul_39_…``; one line may have several.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
NUMBERED = {"psm": range(1, 39), "ul": range(39, 76), "ti": range(76, 82), "lv": range(121, 134)}
"""Producer state, log, transaction index, validation of what is appended."""
OTHERS = {
    "lc": (range(82, 98), "unit/storage/cleaner/test_cleaner.py", "what the cleaner keeps and removes"),
    "rb": (range(98, 109), "unit/core", "batches and records, written and damaged"),
    "mr": (range(109, 118), "unit/core", "what a builder writes and refuses"),
    "cr": (range(118, 121), "unit/record/test_control.py", "control records"),
}
"""Groups of lines that are not in names of tests, and where they are tested as a whole."""

NOT_HERE = {
    57: "there are no followers: the one replica is the leader",
    58: "a batch that was compacted is replayed by its header: the cleaner's tests and tests/golden",
    59: "the same for empty batches",
    72: "there are no followers",
    75: "such a segment is refused by name; Kafka splits it at a start, and no longer writes such segments",
    122: "an append has one batch: bytes after it are refused (test_append.py)",
    123: "rows of the table of checks in test_append.py",
    124: "a row of the table of checks in test_append.py",
    128: "offset deltas that are not 0 to n - 1 are refused, compressed or not (test_append.py)",
    130: "old formats are not written: Kafka 4 refuses them, too",
    131: "old formats are not written",
    132: "old formats are not written",
    133: "an append has one batch",
}

NAME = re.compile(r"def test_(psm|ul|ti|lv)_(\d+)_")


def named() -> set[tuple[str, int]]:
    texts = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    return {(match[1], int(match[2])) for text in texts for match in NAME.finditer(text)}


def unaccounted(found: set[tuple[str, int]]) -> list[str]:
    lines = [(group, number) for group, numbers in NUMBERED.items() for number in numbers]
    return [
        f"{group} {number}"
        for group, number in lines
        if not {(group, number)} & found and number not in NOT_HERE
    ]


def test_every_line_is_a_test_or_has_a_reason() -> None:
    assert unaccounted(named()) == []
    assert [where for _, where, _ in OTHERS.values() if not (TESTS / where).exists()] == []
    numbers = [*NUMBERED.values(), *(numbers for numbers, _, _ in OTHERS.values())]
    assert sorted(number for each in numbers for number in each) == list(range(1, 134))


def test_no_line_is_both_and_numbers_are_of_their_group() -> None:
    assert [line for line in named() if line[1] in NOT_HERE] == []
    assert [line for line in named() if line[1] not in NUMBERED[line[0]]] == []


@pytest.mark.parametrize("line", [("psm", 1), ("ul", 39), ("ti", 81)])
def test_a_removed_test_is_detected(line: tuple[str, int]) -> None:
    assert unaccounted(named() - {line}) == [f"{line[0]} {line[1]}"]
