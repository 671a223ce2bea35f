"""Patterns for transactional ids: what Python's own matcher says of the same patterns, in bounded time."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from txnkafka.coordinator.id_pattern import MOST_STEPS, IdPattern, PatternError

PATTERNS = [
    "", "a", "ab", "a|b", "a*", "a+b?", "(ab)+", "(?:a|b)*c", "(?P<name>a)b", "[abc]x", "[^abc]",
    "[a-c-]+", r"\d+", r"\w*", r"[\d_]+", r"\D", ".", ".*", "^ab$", "(^a|b)$", r"\.", r"a\-b", "a{2}",
    "a{2,}", "a{1,3}b", "x{,2}", "a{b", "(a*)*", "(a|a)*b", "a??b", "a*?", "[]a]", "(|a)b", r"\x41",
    r"[\x41-\x43]+", "orders-[0-9]+", "a||b", "(a{0,3}){2}", r"\Ab", "[.]", "a$b", "[a\\]]",
]  # fmt: skip
TEXTS = [
    "", "a", "b", "ab", "abc", "aab", "aaab", "ba", "c", "x", "xx", "ax", "1", "12", "_", "a-b", "-",
    ".", "A", "ABC", "orders-7", "a{b", "]", "é", "x{,2}", "\n", "bb", "abab",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_as_python(pattern: str) -> None:
    made, expected = IdPattern(pattern), re.compile(pattern, re.ASCII)
    for text in TEXTS:
        if pattern == "x{,2}":  # a repeat in Python, characters in RE2
            assert made.fullmatch(text) == (text == pattern)
        elif text != "\n" or "$" not in pattern:
            assert made.fullmatch(text) == bool(expected.fullmatch(text)), text


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("[[:alpha:]]+", "abc", "a1"),
        ("[[:^digit:]_]+", "a_", "1"),
        (r"a\z", "a", "ab"),
        ("(?<name>a)", "a", "b"),
        (r"\x{1F600}", "\U0001f600", "a"),
        ("[^a]", "\n", "a"),
    ],
)
def test_what_is_only_in_re2(pattern: str, matching: str, other: str) -> None:
    assert IdPattern(pattern).fullmatch(matching)
    assert not IdPattern(pattern).fullmatch(other)


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "[", "[a", "*", "a**", "a{2}{3}", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", r"(a)\1",
        "(?i)a", r"\pN", r"\k<a>", "(?>a)", "a++", "[b-a]", r"[\d-z]", "[[:none:]]", "\\", r"\x4",
        r"\x{}", r"\x{110000}", "a{1001}", "a{3,2}", "(a{1000}){1000}", "(?P<a",
        "(" * 60 + ")" * 60, "a" * 1001,
        "(?P<->a)", "x{2}*", r"\Qa\E", r"\b", "(a{2}",
    ],
)  # fmt: skip
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        IdPattern(pattern)


def test_a_pattern_that_explodes_elsewhere_does_not_here() -> None:
    made = IdPattern("(a*)*(a|aa)*b" * 5)
    for _ in range(10):
        assert not made.fullmatch("a" * 200)


def test_the_time_of_all_matches_is_bounded() -> None:
    made = IdPattern("(.?){300}x")

    def match_many() -> None:
        for number in range(MOST_STEPS):
            made.fullmatch(f"{number}" * 100)

    with pytest.raises(PatternError, match="too long"):
        match_many()


SMALL = st.text(st.sampled_from("ab|*+?()[]^$.-\\d{2,}"), max_size=12)


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
