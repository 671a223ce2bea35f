"""Patterns for topics and transactional ids: RE2 matches as Python's re does, in linear time."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from tests.unit.coordinator.patterns import MATCHING, PATTERNS, REFUSED, TAKEN, TEXTS
from txnkafka.coordinator.re2_pattern import PatternError, Re2Pattern


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_as_python(pattern: str) -> None:
    made, expected = Re2Pattern(pattern), re.compile(pattern, re.ASCII)
    for text in TEXTS:
        if pattern == "x{,2}":  # a repeat in Python, characters in RE2
            assert made.fullmatch(text) == (text == pattern)
        elif text != "\n" or "$" not in pattern:
            assert made.fullmatch(text) == bool(expected.fullmatch(text)), text


@pytest.mark.parametrize(("pattern", "matching", "other"), MATCHING)
def test_what_is_only_in_re2(pattern: str, matching: str, other: str) -> None:
    assert Re2Pattern(pattern).fullmatch(matching)
    assert not Re2Pattern(pattern).fullmatch(other)


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        Re2Pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a{1000}){1000}", "invalid repetition size"), (r"(?:\pL{0,1000})", "pattern too large"),
        ("a" * 1001, "at most 1000 characters"), ("(", r"missing \)"),
    ],
)  # fmt: skip
def test_refusals_name_their_reason(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        Re2Pattern(pattern)


@pytest.mark.parametrize(("pattern", "matching"), TAKEN)
def test_patterns_that_re2j_refuses(pattern: str, matching: str) -> None:
    assert Re2Pattern(pattern).fullmatch(matching)


def test_flags_end_with_their_group() -> None:
    assert Re2Pattern("(?:(?i)a)b").fullmatch("Ab")
    assert not Re2Pattern("(?:(?i)a)b").fullmatch("AB")
    assert Re2Pattern("((?i)a|b)c").fullmatch("Bc")


def test_case_is_that_of_unicode() -> None:
    made = Re2Pattern("(?i)[k\u00e9\u00df]+")
    assert made.fullmatch("kK\u212a\u00e9\u00c9\u00df\u1e9e")
    assert not made.fullmatch("ss")
    assert not Re2Pattern("(?i)i").fullmatch("\u0131")


def test_a_pattern_that_explodes_elsewhere_does_not_here() -> None:
    made = Re2Pattern("(a*)*(a|aa)*b" * 5)
    for _ in range(10):
        assert not made.fullmatch("a" * 200)


def test_steps_are_states_times_characters() -> None:
    small, large = Re2Pattern("a"), Re2Pattern("a{100}")
    assert large.steps("") > 20 * small.steps("")
    assert small.steps("a" * 9) == 10 * small.steps("")


SMALL = st.text(st.sampled_from("ab|*+?()[]^$.-\\d{2,}"), max_size=12)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(SMALL, st.text(st.sampled_from("ab-2"), max_size=6))
def test_random_patterns(pattern: str, text: str) -> None:
    """Where both take a pattern, both mean the same by it."""
    assume("{," not in pattern and "[[" not in pattern and "--" not in pattern)
    try:
        made, expected = Re2Pattern(pattern), re.compile(pattern, re.ASCII)
    except (PatternError, re.error):
        reject()
    assert made.fullmatch(text) == bool(expected.fullmatch(text))
