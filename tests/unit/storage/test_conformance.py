"""Every line of the conformance list for logs is a test whose name begins with it, or has its reason here.

The list was drawn from Apache Kafka's own tests (ProducerStateManagerTest, UnifiedLogTest, LogCleanerTest,
TransactionIndexTest, the tests of record batches, LogValidatorTest) at version 4.3.1 and numbered: lines 1 to 133
in groups. Tests carry group and number, ``test_ul_39_…``; more than one may.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GROUPS = {
    "psm": range(1, 39),
    "ul": range(39, 76),
    "ti": range(76, 82),
    "lc": range(82, 98),
    "rb": range(98, 109),
    "mr": range(109, 118),
    "cr": range(118, 121),
    "lv": range(121, 134),
}
TESTED_HERE = ("ul", "ti", "lv")
"""The others: psm beside the producer table (tests/unit/core, tests/unit/storage/test_producer_*.py), lc beside the
cleaner, rb, mr and cr beside the encoder and the decoders (tests/unit/core, tests/unit/record)."""

ELSEWHERE = {
    47: "also every failing call, in tests/crash",
}
NOT_HERE = {
    57: "nobody follows: there is one replica, which is the leader",
    58: "a batch that was compacted is replayed by its header: the cleaner's tests and tests/golden",
    59: "the same, of empty batches",
    72: "nobody follows",
    75: "no version writes such a segment any more; it is refused by name (tests/unit/storage/test_restart.py)",
    122: "one batch comes with each append: bytes behind it are refused (test_append.py)",
    123: "rows of the table of checks in test_append.py",
    124: "a row of the table of checks in test_append.py",
    128: "offset deltas that are not 0 to n - 1 are refused, compressed or not (DIVERGENCES.md)",
    130: "old formats are not written: Kafka 4 refuses them, too",
    131: "old formats are not written",
    132: "old formats are not written",
    133: "one batch comes with each append",
}

ROOT = Path(__file__).parents[3] / "tests"
NAME = re.compile(r"def test_(psm|ul|ti|lc|rb|mr|cr|lv)_(\d+)_")


def named() -> set[tuple[str, int]]:
    return {
        (match[1], int(match[2]))
        for path in ROOT.rglob("test_*.py")
        for match in NAME.finditer(path.read_text(encoding="utf-8"))
    }


def unaccounted(found: set[tuple[str, int]]) -> list[str]:
    lines = [(group, number) for group in TESTED_HERE for number in GROUPS[group]]
    return [f"{group} {number}" for group, number in lines if (group, number) not in found and number not in NOT_HERE]


def test_every_line_is_a_test_or_has_a_reason() -> None:
    assert unaccounted(named()) == []


def test_no_line_is_both_and_numbers_are_of_their_group() -> None:
    assert [line for line in named() if line[1] in NOT_HERE] == []
    assert [line for line in named() if line[1] not in GROUPS[line[0]]] == []


@pytest.mark.parametrize("line", [("ul", 39), ("ti", 81)])
def test_a_test_that_is_taken_away_is_missed(line: tuple[str, int]) -> None:
    assert unaccounted(named() - {line}) == [f"{line[0]} {line[1]}"]
