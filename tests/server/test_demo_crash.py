"""The scene of the demo with a killed broker, and its check."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.crash import FIRST, SECOND, after_a_kill, check_once
from demo.steps import Demo
from txnkafka import LogDir


def test_the_scene(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    after_a_kill(Demo(), tmp_path, str(tmp_path / "data"))
    printed = capsys.readouterr().out
    assert "8 payments, each exactly once" in printed
    view = LogDir(tmp_path / "data").partition("payments", 0)
    assert view.count(isolation_level="read_uncommitted") == len(FIRST + SECOND + SECOND)
    assert [each.outcome for each in view.transactions()] == ["committed", "aborted", "committed"]


@pytest.mark.parametrize(
    "payments",
    [FIRST, [*FIRST, *SECOND, *SECOND], [*SECOND, *FIRST], [*FIRST, *SECOND[:-1], SECOND[0]]],
    ids=["lost", "twice", "another-order", "lost-and-twice"],
)
def test_the_check_refuses(payments: list[bytes | None]) -> None:
    with pytest.raises(SystemExit, match=r"the consumer has [0-9]+ payments; lost: "):
        check_once("the consumer", payments)
