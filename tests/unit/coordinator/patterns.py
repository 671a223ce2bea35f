"""Patterns, and texts for them."""

from __future__ import annotations

from typing import Final

__all__ = ["MATCHING", "PATTERNS", "REFUSED", "TAKEN", "TEXTS"]

PATTERNS: Final = [
    "", "a", "ab", "a|b", "a*", "a+b?", "(ab)+", "(?:a|b)*c", "(?P<name>a)b", "[abc]x", "[^abc]",
    "[a-c-]+", r"\d+", r"\w*", r"[\d_]+", r"\D", ".", ".*", "^ab$", "(^a|b)$", r"\.", r"a\-b", "a{2}",
    "a{2,}", "a{1,3}b", "x{,2}", "a{b", "(a*)*", "(a|a)*b", "a??b", "a*?", "[]a]", "(|a)b", r"\x41",
    r"[\x41-\x43]+", "orders-[0-9]+", "a||b", "(a{0,3}){2}", r"\Ab", "[.]", "a$b", "[a\\]]",
    "(?i:a)b", r"\bab\b", r"a\Bb", "(?s).", r"a\b-\bb", "(?i:[a-c]+)", "(?m:^a)",
]  # fmt: skip
"""Those that mean the same to Python, in its way of writing."""
TEXTS: Final = [
    "", "a", "b", "ab", "abc", "aab", "aaab", "ba", "c", "x", "xx", "ax", "1", "12", "_", "a-b", "-",
    ".", "A", "ABC", "orders-7", "a{b", "]", "é", "x{,2}", "\n", "bb", "abab", "Ab",
]  # fmt: skip
MATCHING: Final = [  # with a text that matches, and one that does not
    ("[[:alpha:]]+", "abc", "a1"), ("[[:^digit:]_]+", "a_", "1"), (r"a\z", "a", "ab"),
    ("(?<name>a)", "a", "b"), (r"\x{1F600}", "\U0001f600", "a"), ("[^a]", "\n", "a"),
    ("(?i)orders", "ORDERS", "orderz"), ("a(?i)b|c", "C", "AB"), ("(a(?i)b)c", "aBc", "aBC"),
    ("(?i)k[^s]", "\u212aa", "kS"), ("(?i)\u00e9", "\u00c9", "e"), ("(?i)[a-c]+(?-i)d", "aBd", "aBD"),
    ("(?m)a$\n^b", "a\nb", "ab"), ("(?s).+", "a\nb", ""), (r"\pL+\p{Nd}", "\u00e91", "1\u00e9"),
    (r"\PL", "1", "a"), (r"\p{^Lu}", "a", "A"), (r"[^\pL\d]", "-", "a"), (r"\Qa.b*\E+", "a.b**", "axb"),
    (r"[\d-z]+", "1-z", "y"), (r"\141\60", "a0", "a"), ("[[:a]", "[", "b"), ("a(?i)*", "aa", "A"),
    ("a{01}", "a{01}", "a"), (r"(?i)\W", "-", "s"), ("(?i:A)b", "ab", "AB"), (r"[\-a]", "-", "b"),
    ("(?U)a+", "aa", "b"), (r"\p{Any}", "\u00e9", ""), ("[[:blank:]]", "\t", "\n"),
]  # fmt: skip
REFUSED: Final = [
    "(", ")", "[", "[a", "*", "a**", "a{2}{3}", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", r"(a)\1", r"\k<a>",
    "(?>a)", "a++", "[b-a]", "[[:none:]]", "\\", r"\x4", r"\x{}", r"\x{110000}", "a{1001}", "a{3,2}",
    "(?P<a", "(?P<->a)", "x{2}*", "(a{2}", "(?i", "(?-)", "(?i-)a", "(?--i)", "(?x)a", "(?i)*", "a|*",
    r"\p{Nope}", r"\pa", r"\8", r"[\b]", "(?P<>a)", "[]", r"[a-\d]",
]  # fmt: skip
"""Those that RE2 refuses."""
TAKEN: Final = [(r"a\C", "ab"), ("(?P<a>b)(?P<a>c)", "bc"), ("a{+", "a{{"), ("{{2}a", "{{a")]
"""Those that RE2 accepts and RE2/J refuses (DIVERGENCES.md), each with a text that matches."""
