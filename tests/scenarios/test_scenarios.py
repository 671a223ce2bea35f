"""Every scenario prints what is checked in; ``TXNKAFKA_REWRITE=1`` writes it anew, to be reviewed as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.expected_text import same_text
from tests.scenarios.interpreter import Interpreter
from tests.scenarios.scenario_file import rewritten

HERE = Path(__file__).parent
SCENARIOS = sorted(HERE.glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario(path: Path) -> None:
    same_text(path, rewritten(path.read_text(encoding="utf-8"), Interpreter().run))
