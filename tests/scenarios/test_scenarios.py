"""Every scenario prints what is checked in; ``TXNKAFKA_REWRITE=1`` rewrites it, to be reviewed as text."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import pytest

from tests.expected_text import HINT, REWRITE
from tests.scenarios.interpreter import Interpreter
from tests.scenarios.scenario_file import rewritten

HERE = Path(__file__).parent
SCENARIOS = sorted(HERE.glob("*.txt"))


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
