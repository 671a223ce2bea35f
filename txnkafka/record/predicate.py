"""Predicates over records (``where``) as data, and the bounds that follow from them without reading.

A predicate is a tree of ``And`` and ``Or`` over ``Comparison``; NOT is pushed down to the comparisons when
the tree is built. As in SQL a comparison with a null is neither true nor false, except IS NULL, and a record
is selected only when the whole predicate is true. ``predicate_columns`` evaluates predicates on columns,
``predicate_text`` parses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final, NamedTuple, TypeAlias

from txnkafka.model import TopicPartition
from txnkafka.shown import plain_name

Literal: TypeAlias = int | str | bytes
INT64_MIN: Final = -(1 << 63)
INT64_END: Final = 1 << 63


class Operand(NamedTuple):
    """The operand of a comparison: a column (timestamps are milliseconds), the length of key or value, or the
    last header of a name."""

    column: str
    length: bool = False
    header: str | None = None

    @property
    def kind(self) -> type:
        """The type of the literals to compare with."""
        if self.length or self.column in ("partition", "offset", "timestamp", "timestampType"):
            return int
        return str if self.column == "topic" else bytes

    def __str__(self) -> str:
        if self.header is not None:
            return f"header({_quoted(self.header)})"
        return f"length({self.column})" if self.length else self.column


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison.

    ``operator`` is one of = != < <= > >= (one value), in, not in (any number of values), like, not like (one
    pattern), is null, is not null (no value)."""

    operand: Operand
    operator: str
    values: tuple[Literal, ...] = ()

    def __str__(self) -> str:
        if not self.values:
            return f"{self.operand} {self.operator}"
        values = ", ".join(map(_quoted, self.values))
        return f"{self.operand} {self.operator} " + (
            f"({values})" if self.operator.endswith("in") else values
        )


@dataclass(frozen=True, slots=True)
class And:
    """True when all parts are true, so also without parts."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " and ".join(f"({part})" for part in self.parts) or "true"


@dataclass(frozen=True, slots=True)
class Or:
    """True when one of the choices is true, so false without choices."""

    choices: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " or ".join(f"({part})" for part in self.choices) or "false"


Predicate: TypeAlias = Comparison | And | Or
ANY: Final = And(())
NOTHING: Final = Or(())
_NEGATED: Final = {
    "=": "!=",
    "<": ">=",
    "<=": ">",
    "in": "not in",
    "like": "not like",
    "is null": "is not null",
}
_NEGATED_BACK: Final = {value: key for key, value in _NEGATED.items()}


def _quoted(value: Literal) -> str:
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def negated(predicate: Predicate) -> Predicate:
    """Return the negation: true where the predicate is false."""
    if isinstance(predicate, And):
        return Or(tuple(map(negated, predicate.parts)))
    if isinstance(predicate, Or):
        return And(tuple(map(negated, predicate.choices)))
    other = _NEGATED.get(predicate.operator) or _NEGATED_BACK[predicate.operator]
    return replace(predicate, operator=other)


def operands_of(predicate: Predicate) -> set[Operand]:
    """Return all operands of a predicate."""
    if isinstance(predicate, Comparison):
        return {predicate.operand}
    parts = predicate.parts if isinstance(predicate, And) else predicate.choices
    return set().union(*map(operands_of, parts))


def conjunction(parts: Iterable[Predicate | None]) -> Predicate:
    """Return the conjunction of all parts that are not None, in the simplest form."""
    found: list[Predicate] = []
    for part in parts:
        if part == NOTHING:
            return NOTHING
        if isinstance(part, And):
            found += part.parts
        elif part is not None:
            found.append(part)
    return found[0] if len(found) == 1 else And(tuple(found))


def _disjunction(choices: Iterable[Predicate]) -> Predicate:
    found: list[Predicate] = []
    for choice in choices:
        if choice == ANY:
            return ANY
        found += choice.choices if isinstance(choice, Or) else (choice,)
    return found[0] if len(found) == 1 else Or(tuple(found))


class Bounds(NamedTuple):
    """Ranges [start, end) of offsets and timestamps; no record outside them matches a predicate."""

    start_offset: int = INT64_MIN
    end_offset: int = INT64_END
    start_timestamp: int = INT64_MIN
    end_timestamp: int = INT64_END

    @property
    def empty(self) -> bool:
        """True when no record can match the predicate."""
        return self.start_offset >= self.end_offset or self.start_timestamp >= self.end_timestamp

    def both(self, other: Bounds) -> Bounds:
        """Return the intersection of both bounds."""
        return Bounds(
            max(self.start_offset, other.start_offset),
            min(self.end_offset, other.end_offset),
            max(self.start_timestamp, other.start_timestamp),
            min(self.end_timestamp, other.end_timestamp),
        )

    def either(self, other: Bounds) -> Bounds:
        """Return the smallest bounds that contain both."""
        if self.empty or other.empty:
            return other if self.empty else self
        return Bounds(
            min(self.start_offset, other.start_offset),
            max(self.end_offset, other.end_offset),
            min(self.start_timestamp, other.start_timestamp),
            max(self.end_timestamp, other.end_timestamp),
        )


_NO_BOUNDS: Final = Bounds()
_EMPTY: Final = Bounds(0, 0, 0, 0)


def bounds_of(predicate: Predicate) -> Bounds:
    """Return the bounds of a predicate."""
    if isinstance(predicate, And):
        return reduce(Bounds.both, map(bounds_of, predicate.parts), _NO_BOUNDS)
    if isinstance(predicate, Or):
        return reduce(Bounds.either, map(bounds_of, predicate.choices), _EMPTY)
    if predicate.operand.column not in ("offset", "timestamp"):
        return _NO_BOUNDS
    start, end = _range(predicate)
    if predicate.operand.column == "offset":
        return Bounds(start_offset=start, end_offset=end)
    return Bounds(start_timestamp=start, end_timestamp=end)


def _range(test: Comparison) -> tuple[int, int]:
    values = [value for value in test.values if isinstance(value, int)]
    match test.operator:
        case "=" | "in":
            return min(values), max(values) + 1
        case "<":
            return INT64_MIN, values[0]
        case "<=":
            return INT64_MIN, values[0] + 1
        case ">":
            return values[0] + 1, INT64_END
        case ">=":
            return values[0], INT64_END
        case "is null":
            return 0, 0
    return INT64_MIN, INT64_END


def bind(predicate: Predicate, topic_partition: TopicPartition) -> Predicate:
    """Return the rest of a predicate for one partition, with its tests of topic and partition evaluated."""
    if isinstance(predicate, And):
        return conjunction(bind(part, topic_partition) for part in predicate.parts)
    if isinstance(predicate, Or):
        return _disjunction(bind(choice, topic_partition) for choice in predicate.choices)
    match predicate.operand.column:
        case "topic":
            return ANY if _holds(predicate, plain_name(topic_partition.topic)) else NOTHING
        case "partition":
            return ANY if _holds(predicate, topic_partition.partition) else NOTHING
    return predicate


def _holds(test: Comparison, value: str | int) -> bool:
    """Evaluate a comparison for a value that is not null."""
    negative, operator = test.operator in _NEGATED_BACK, _NEGATED_BACK.get(test.operator, test.operator)
    match operator:
        case "=" | "in":
            found = value in test.values
        case "is null":
            found = False
        case "like":
            found = re.fullmatch(like_expression(str(test.values[0])), str(value)) is not None
        case "<":
            found = value < test.values[0]  # type: ignore[operator]  # of the operand's kind, as the value
        case _:
            found = value <= test.values[0]  # type: ignore[operator]
    return found != negative


def like_expression(pattern: str) -> str:
    """Return a LIKE pattern as a regular expression: % is any text, _ any one character, a backslash
    escapes the next character. The text between two % is searched once, from left to right, without
    backtracking."""
    parts = [""]
    for piece in re.findall(r"\\.|[^\\]|\\$", pattern, re.DOTALL):
        if piece == "%":
            parts.append("")
        else:
            parts[-1] += "." if piece == "_" else re.escape(piece[-1])
    first, *others = parts
    between = "".join(f"(?>.*?{part})" for part in others[:-1] if part)
    return f"(?s){first}{between}" + "".join(f".*{part}" for part in others[-1:])
