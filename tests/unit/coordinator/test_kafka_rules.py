"""``kafka_rules.txt`` says for each rule of Apache Kafka's tests which tests here hold it; they exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

RULES = Path(__file__).with_name("kafka_rules.txt")
TESTS = Path(__file__).parents[2]
NUMBERS = {*range(1, 183), *range(201, 226)}


def rules(text: str) -> dict[int, list[str]]:
    """The lines below each rule. Raises ValueError for a rule that stands there twice."""
    found: dict[int, list[str]] = {}
    number = 0
    for line in text.splitlines():
        if match := re.match(r"(\d+) \S", line):
            number = int(match[1])
            if number in found:
                raise ValueError(f"rule {number} stands there twice")
            found[number] = []
        elif line.startswith("  "):
            found[number].append(line.strip())
    return found


@cache
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def fault_of(line: str) -> str:
    """Why a line below a rule is none: an empty text when it is one."""
    if line.startswith("= "):
        return "" if len(line.split()) > 5 else "that is no reason"
    file, _, name = line.partition("::")
    path = TESTS / file
    if not path.is_file():
        return f"there is no {file}"
    if path.suffix == ".txt":
        return "" if path.parent.name == "scenarios" and not name else "that is no scenario"
    return "" if name.startswith("test_") and name in functions(path) else f"there is no {name!r} in {file}"


def test_every_rule_has_a_test_or_a_reason() -> None:
    found = rules(RULES.read_text(encoding="utf-8"))
    assert set(found) == NUMBERS
    assert list(found) == sorted(found)
    assert [number for number, lines in found.items() if not lines] == []
    assert [(number, fault) for number in found for line in found[number] if (fault := fault_of(line))] == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("= no", "that is no reason"),
        ("unit/coordinator/test_no.py::test_a", "there is no unit/coordinator/test_no.py"),
        ("unit/coordinator/test_kafka_rules.py::test_a", "there is no 'test_a' in"),
        ("unit/coordinator/test_kafka_rules.py::rules", "there is no 'rules' in"),
        ("unit/coordinator/kafka_rules.txt", "that is no scenario"),
        ("scenarios/no.txt", "there is no scenarios/no.txt"),
    ],
)
def test_what_names_no_test(line: str, fault: str) -> None:
    assert fault_of(line).startswith(fault)


def test_a_rule_that_stands_there_twice() -> None:
    with pytest.raises(ValueError, match="rule 3 stands there twice"):
        rules("3 a\n  = b\n3 c\n")
