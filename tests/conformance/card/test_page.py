"""The page is read back as it was written, and nothing is green that is not."""

from __future__ import annotations

import pytest

from tests.conformance.card import page as page_module
from tests.conformance.card.jobs import Job
from tests.conformance.card.page import (
    GREEN,
    PROGRAM_HEAD,
    Page,
    cells_of,
    rendered,
    tool_verdict,
    unused,
    verdict,
)
from tests.conformance.card.run import Found
from tests.conformance.card.tool_jobs import ToolJob

JOB = Job("a job", lambda _: [], ["a", "refused"])
RIGHT = ["a", "refused: SOME_ERROR"]
TOOL = ToolJob("a tool", lambda _: [], "said")


@pytest.fixture(autouse=True)
def explanations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "MISSING", {"c": {"a job": "it has none"}})
    monkeypatch.setattr(page_module, "SAME", {("d", "a job"): "its own way"})
    monkeypatch.setattr(page_module, "DIFFERENT", {"later": "not served yet"})


def test_a_page_is_read_back() -> None:
    written = Page(
        {"a": "1", "b": "2"},
        {"x": {"a": GREEN, "b": "no: why"}, "y": {"a": "", "b": GREEN}},
        {"t": GREEN},
        {"p": list(PROGRAM_HEAD[1:])},
    )
    assert cells_of(rendered(written)) == written


def test_green() -> None:
    assert verdict("a", JOB, Found((RIGHT, RIGHT))) == (GREEN, "")
    assert tool_verdict(TOOL, (["it said"], ["it said"])) == (GREEN, "")


@pytest.mark.parametrize(
    ("client", "found", "cell", "problem"),
    [
        (
            "a",
            Found((RIGHT, ["a", "refused: ANOTHER"])),
            "not yet: None",
            "('a', 'a job'): ['a', 'refused: SOME",
        ),
        (
            "a",
            Found((["b"], ["b"])),
            "as on Kafka: None",
            "('a', 'a job'): both brokers gave ['b'], meant is",
        ),
        ("a", Found((["e"], ["e"]), True), "no: None", "('a', 'a job') has no call, and no reason"),
        ("c", Found((["e"], ["e"]), True), "no: it has none", ""),
        ("c", Found((RIGHT, RIGHT)), GREEN, "('c', 'a job') is green now: take its explanation away"),
        ("d", Found((["b"], ["b"])), "as on Kafka: its own way", ""),
        ("d", Found((RIGHT, RIGHT)), GREEN, "('d', 'a job') is green now: take its explanation away"),
    ],
)
def test_what_is_not_green(client: str, found: Found, cell: str, problem: str) -> None:
    shown = verdict(client, JOB, found)
    assert shown.cell == cell
    assert shown.problem.startswith(problem)
    assert bool(shown.problem) == bool(problem)


def test_a_difference_that_is_explained() -> None:
    later = JOB._replace(name="later")
    assert verdict("a", later, Found((["b"], RIGHT))) == ("not yet: not served yet", "")
    assert list(unused({"later": {"a": Found((["b"], RIGHT))}})) == []
    assert list(unused({"later": {"a": Found((RIGHT, RIGHT))}})) == ["later"]


def test_tools_that_are_not_green() -> None:
    assert "nothing like 'said'" in tool_verdict(TOOL, ([], [])).problem
    assert tool_verdict(TOOL, (["it said"], ["said it"])).problem
