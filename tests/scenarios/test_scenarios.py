"""Every scenario prints what is checked in; ``TXNKAFKA_REWRITE=1`` rewrites it, to be reviewed as text."""

from __future__ import annotations

import re
from difflib import unified_diff
from pathlib import Path

import pytest

from tests.expected_text import HINT, REWRITE
from tests.scenarios.interpreter import Interpreter
from tests.scenarios.scenario_file import rewritten

HERE = Path(__file__).parent
SCENARIOS = sorted(HERE.glob("*.txt"))

KNOWN_BUGS = """
    KAFKA-14402 KAFKA-17754 KAFKA-14884 KAFKA-14904 KAFKA-14920 KAFKA-18575 KAFKA-18654 KAFKA-19999
    KAFKA-20090 KAFKA-18660 KAFKA-19367 KAFKA-20357 KAFKA-20310 KAFKA-9666 KAFKA-5283 KAFKA-7692
    KAFKA-7693 KAFKA-6119 KAFKA-9600 KAFKA-10080 KAFKA-9777 KAFKA-16352 KAFKA-9749 KAFKA-5351
    KAFKA-7519 KAFKA-13099 KAFKA-14880 KAFKA-9065 KAFKA-9307 KAFKA-5202 KAFKA-19690 KAFKA-18957
    KAFKA-13412 KAFKA-5376 KAFKA-10778
"""


def difference(before: str, after: str) -> list[str]:
    """The lines that were expected (-), and those that were printed (+)."""
    return list(unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = rewritten(text, Interpreter().run)
    if REWRITE:
        path.write_text(found, encoding="utf-8")
        text = found
    lines = difference(text, found)
    assert not lines, "\n".join([*lines, HINT])


def test_a_difference_is_shown_by_its_lines() -> None:
    assert difference("a\nb\nc\n", "a\nx\nc\n") == ["@@ -2 +2 @@", "-b", "+x"]


def test_known_bugs_of_coordinators_have_a_scenario() -> None:
    texts = " ".join(path.read_text(encoding="utf-8") for path in SCENARIOS)
    named = set(re.findall(r"KAFKA-\d+", texts))
    assert set(KNOWN_BUGS.split()) - named == set()
    for path in SCENARIOS:
        if path.stem.startswith("kafka-"):
            assert path.stem.split("-")[1] in path.read_text(encoding="utf-8").split("\n\n")[0], path.name
