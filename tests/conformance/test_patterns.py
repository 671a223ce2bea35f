"""RE2/J takes the same patterns as ours, and they match the same."""

from __future__ import annotations

import random
import re
import subprocess
from typing import Final

from tests.conformance.kafka_log import OPTIONS, compiled
from tests.unit.coordinator.patterns import MATCHING, PATTERNS, REFUSED, TAKEN, TEXTS
from txnkafka.coordinator.re2_pattern import PatternError, Re2Pattern

SEED: Final = 20
RANDOM: Final = 40_000
PARTS: Final = (
    "a", "b", "k", "S", "-", "_", ".", "*", "+", "?", "|", "(", ")", "(?:", "(?i)", "(?i:", "(?-i)", "(?s)",
    "(?m)", "(?im-s:", "(?-", "(?U)", "[", "]", "[^", "-", "^", "$", r"\b", r"\B", r"\A", r"\z", r"\d", r"\D",
    r"\w", r"\W", r"\s", r"\pL", r"\PL", r"\p{Lu}", r"\p{^Lu}", r"\p{", r"\Q", r"\E", "{", "}", "{2}",
    "{0,2}",
    "{1,}", "{01}", ",", "[[:alpha:]", "[:digit:]", "[:^word:]", r"\x41", r"\x{e9}", r"\141", r"\0", r"\1",
    r"\n", "\u00e9", "\u00c9", "\u017f", r"\-", "(?P<x>", "(?<y>", r"\C", "0",
)  # fmt: skip
CHARACTERS: Final = "abkKsS\u017f\u212a\u00df\u1e9e\u00e9\u00c9\u0131\u0130iI\u03c3\u03c2\u03a30_-. \nA|]"
OURS_ALONE: Final = ("too large", "at most")  # RE2/J has larger limits
TAKEN_BY_RE2: Final = re.compile(r"\\C|<([a-z]+)>.*<\1>|\{\{[12]\}|\{\{0,2\}|\{\{1,\}|\{[*+?]", re.DOTALL)


def cases() -> list[tuple[str, str]]:
    chosen = random.Random(SEED)
    found = [(pattern, text) for pattern in (*PATTERNS, *REFUSED) for text in TEXTS]
    found += [(pattern, text) for pattern, *both in MATCHING for text in both]
    found += TAKEN
    for _ in range(RANDOM):
        pattern = "".join(chosen.choices(PARTS, k=chosen.randrange(1, 8)))
        found.append((pattern, "".join(chosen.choices(CHARACTERS, k=chosen.randrange(5)))))
    return found


def answer(pattern: str, text: str) -> str:
    try:
        return str(Re2Pattern(pattern).fullmatch(text)).lower()
    except PatternError as error:
        return "limit" if any(part in str(error) for part in OURS_ALONE) else "invalid"


def test_patterns_match_the_same() -> None:
    command = ["java", *OPTIONS, "-cp", compiled(), "Patterns"]
    lines = "".join(
        " ".join(f":{word.encode('utf-16-be').hex()}" for word in case) + "\n" for case in cases()
    )
    run = subprocess.run(command, input=lines, check=True, stdout=subprocess.PIPE, text=True)
    answers = run.stdout.split()
    differing = [
        (*case, ours, theirs)
        for case, theirs in zip(cases(), answers, strict=True)
        if (ours := answer(*case)) not in ("limit", theirs)
        and not (theirs == "invalid" and TAKEN_BY_RE2.search(case[0]))
    ]
    assert differing == []
    begin = len(cases()) - RANDOM - len(TAKEN)
    assert set(answers[begin : begin + len(TAKEN)]) == {"invalid"}
    assert min(answers.count(word) for word in ("true", "false", "invalid")) > RANDOM // 100
