"""Patterns for transactional ids: what Python's own matcher says of the same patterns, in bounded time."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from tests.unit.coordinator.patterns import MATCHING, PATTERNS, REFUSED, TEXTS
from txnkafka.coordinator.id_pattern import MOST_STEPS, IdPattern, PatternError


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_as_python(pattern: str) -> None:
    made, expected = IdPattern(pattern), re.compile(pattern, re.ASCII)
    for text in TEXTS:
        if pattern == "x{,2}":  # a repeat in Python, characters in RE2
            assert made.fullmatch(text) == (text == pattern)
        elif text != "\n" or "$" not in pattern:
            assert made.fullmatch(text) == bool(expected.fullmatch(text)), text


@pytest.mark.parametrize(("pattern", "matching", "other"), MATCHING)
def test_what_is_only_in_re2(pattern: str, matching: str, other: str) -> None:
    assert IdPattern(pattern).fullmatch(matching)
    assert not IdPattern(pattern).fullmatch(other)


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        IdPattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a{1000}){1000}", "too large"), ("(" * 40 + "(){1000}" + "){1000}" * 40, "too large"),
        ("(" * 60 + ")" * 60, "too deeply"), ("a" * 1001, "at most"), (r"\p{Greek}", "Unicode class"),
    ],
)  # fmt: skip
def test_what_re2_takes_and_we_do_not(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        IdPattern(pattern)


def test_flags_end_with_their_group() -> None:
    assert IdPattern("(?:(?i)a)b").fullmatch("Ab")
    assert not IdPattern("(?:(?i)a)b").fullmatch("AB")
    assert IdPattern("((?i)a|b)c").fullmatch("Bc")


def test_case_is_that_of_unicode() -> None:
    made = IdPattern("(?i)[k\u00e9\u00df]+")
    assert made.fullmatch("kK\u212a\u00e9\u00c9\u00df\u1e9e")
    assert not made.fullmatch("ss")
    assert not IdPattern("(?i)i").fullmatch("\u0131")


def test_a_pattern_that_explodes_elsewhere_does_not_here() -> None:
    made = IdPattern("(a*)*(a|aa)*b" * 5)
    for _ in range(10):
        assert not made.fullmatch("a" * 200)


@pytest.mark.slow
def test_the_time_of_all_matches_is_bounded() -> None:
    made = IdPattern("(.?){300}x")

    def match_many() -> None:
        for number in range(MOST_STEPS):
            made.fullmatch(f"{number}" * 100)

    with pytest.raises(PatternError, match="too long"):
        match_many()


SMALL = st.text(st.sampled_from("ab|*+?()[]^$.-\\d{2,}"), max_size=12)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(SMALL, st.text(st.sampled_from("ab-2"), max_size=6))
def test_random_patterns(pattern: str, text: str) -> None:
    """Where both take a pattern, both mean the same by it."""
    assume("{," not in pattern and "[[" not in pattern and "--" not in pattern)
    try:
        made, expected = IdPattern(pattern), re.compile(pattern, re.ASCII)
    except (PatternError, re.error):
        reject()
    assert made.fullmatch(text) == bool(expected.fullmatch(text))
