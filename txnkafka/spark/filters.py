"""Converts Spark's filters to predicates, for the pushdown of Spark 4.1 and later.

A filter is accepted only if a predicate has exactly the same meaning; Spark evaluates the others itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from txnkafka.record.predicate import Comparison, Literal, Operand, Predicate, conjunction, negated
from txnkafka.spark.schema import COLUMN_TYPES

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)
_COMPARISONS: Final = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_PATTERNS: Final = {"StringStartsWith": "{}%", "StringEndsWith": "%{}", "StringContains": "%{}%"}


def split_filters(filters: Iterable[Any]) -> tuple[Predicate, list[Any]]:
    """Return the predicate of all accepted filters, and the other filters."""
    taken, left = [], []
    for pushed in filters:
        predicate = predicate_of(pushed)
        taken.append(predicate)
        if predicate is None:
            left.append(pushed)
    return conjunction(taken), left


def predicate_of(found: Any) -> Predicate | None:
    """Return the predicate of one of Spark's filters; None when there is no equivalent."""
    kind = type(found).__name__
    if kind == "Not":
        inner = predicate_of(found.child)
        return None if inner is None else negated(inner)
    operand = _operand(getattr(found, "attribute", ()))
    if operand is None:
        return None
    if kind in ("IsNull", "IsNotNull"):
        return Comparison(operand, "is null" if kind == "IsNull" else "is not null")
    if kind in _PATTERNS and operand.kind is str:
        return Comparison(operand, "like", (_PATTERNS[kind].format(_escaped(found.value)),))
    given = found.value if kind == "In" else [getattr(found, "value", None)]
    values = tuple(_literal(value, operand) for value in given)
    if None in values or not values or kind not in (*_COMPARISONS, "In"):
        return None
    return Comparison(operand, _COMPARISONS.get(kind, "in"), values)  # type: ignore[arg-type]  # no None


def _operand(attribute: Any) -> Operand | None:
    """Return the operand for a column; None for a field of a column and for the list of headers."""
    if len(attribute) != 1 or attribute[0] not in COLUMN_TYPES or attribute[0] == "headers":
        return None
    return Operand(attribute[0])


def _literal(value: Any, operand: Operand) -> Literal | None:
    if isinstance(value, bool):
        return None
    if operand.column == "timestamp":
        return _milliseconds(value) if isinstance(value, datetime) else None
    if operand.kind is bytes:
        return bytes(value) if isinstance(value, bytes | bytearray) else None
    if operand.kind is int:
        return value if isinstance(value, int) else None
    return value if isinstance(value, str) else None


def _milliseconds(time: datetime) -> int | None:
    """Return milliseconds; None for a time between two milliseconds, which is left to Spark."""
    if time.tzinfo is None:
        return None
    milliseconds, rest = divmod(time - EPOCH, MILLISECOND)
    return None if rest else milliseconds


def _escaped(text: str) -> str:
    return "".join(f"\\{character}" if character in "%_\\" else character for character in text)
