"""The text of scenarios: what is a block, what is no scenario, and that a difference is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.interpreter import Interpreter
from tests.scenarios.scenario_file import blocks, rewritten

TEXT = """\
# A comment.

start
topic t
A init id=x
----
topic t: NONE
A init: NONE, producer 0 epoch 0
# Another one.
A send t-0 "a b"
log t-0
----
A send: t-0 NONE, offset 0
0: producer 0 epoch 0 sequence 0 transactional "a b"
last stable offset 0, high watermark 1, end 1
"""


def test_a_scenario_that_says_what_happens_stays_as_it_is() -> None:
    assert rewritten(TEXT, Interpreter().run) == TEXT


def test_only_what_is_printed_is_rewritten() -> None:
    wrong = TEXT.replace("offset 0\n0: producer 0", "offset 9\nsomething else\n0: producer 7")
    assert wrong != TEXT
    assert rewritten(wrong, Interpreter().run) == TEXT


def test_the_blocks_of_a_text() -> None:
    first, second = blocks(TEXT)
    assert (first.comment, first.commands) == (["# A comment.", ""], ["start", "topic t", "A init id=x"])
    assert (second.comment, second.commands[0]) == (["# Another one."], 'A send t-0 "a b"')
    assert len(second.printed) == 3


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("start\n", "'start' has no ruler below it"),
        ("start\n\nlog t-0\n----\n", "line 2: 'start' has no ruler"),
        ("----\n", "line 1: a ruler without a command"),
        ("start\n----\n----\n", "line 3: a ruler without a command"),
    ],
)
def test_what_is_no_scenario(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        blocks(text)


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("log t-0", "a scenario begins with start"),
        ("dance", "there is no command 'dance'"),
        ("A dance", "a producer cannot dance"),
        ("wait 61", "'61' is no time"),
        ("log t", "'t' is no partition"),
    ],
)
def test_what_is_no_command(command: str, what: str) -> None:
    interpreter = Interpreter()
    if command != "log t-0":
        interpreter.run("start")
    with pytest.raises(ValueError, match=what):
        interpreter.run(command)


def test_a_request_is_answered_once() -> None:
    """The interpreter notices a second answer."""
    from tests.scenarios.producer import Request

    interpreter = Interpreter()
    interpreter.run("start")
    twice = Request(lambda broker, reply: (reply(1), reply(2)), str)
    with pytest.raises(AssertionError, match="twice is answered twice"):
        interpreter.ask("twice", twice)


def test_every_scenario_says_what_it_is_about() -> None:
    for path in Path(__file__).parent.glob("*.txt"):
        assert path.read_text(encoding="utf-8").startswith("# "), path.name
