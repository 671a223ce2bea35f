"""Predicates by definition: SQL's three-valued logic, one record at a time, without simplification.

True, False and None (unknown) are combined by AND, OR and NOT; a record is chosen when the result is True.
The tree is written as plain tuples: ("and", …), ("or", …), ("not", one), (operator, operand, *values), where
an operand is a column's name, ("length", name) or ("header", name).
"""

from __future__ import annotations

import fnmatch
import re
from typing import Any

__all__ = ["chosen", "written"]


def chosen(tree: Any, record: dict[str, Any]) -> bool:
    """Return whether a record with these columns is chosen."""
    return _value(tree, record) is True


def _value(tree: Any, record: dict[str, Any]) -> bool | None:
    word = tree[0]
    if word == "not":
        inner = _value(tree[1], record)
        return None if inner is None else not inner
    if word in ("and", "or"):
        values = [_value(part, record) for part in tree[1:]]
        decisive = word == "or"
        if decisive in values:
            return decisive
        return None if None in values else not decisive
    left = _operand(tree[1], record)
    if word == "is null":
        return left is None
    return None if left is None else _compare(word, left, tree[2:])


def _operand(operand: Any, record: dict[str, Any]) -> Any:
    if isinstance(operand, str):
        return record[operand]
    what, name = operand
    if what == "length":
        return None if record[name] is None else len(record[name])
    values = [value for key, value in record["headers"] if key == name.encode()]
    return values[-1] if values else None


def _compare(word: str, left: Any, values: tuple[Any, ...]) -> bool:
    if word == "in":
        return left in values
    right = values[0]
    if word == "like":
        return _like(left, right)
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[word]


def _like(left: Any, pattern: Any) -> bool:
    """Patterns here have % and _, and no characters that are special in file patterns."""
    text, wild = (each.decode("latin-1") if isinstance(each, bytes) else each for each in (left, pattern))
    return re.fullmatch(fnmatch.translate(wild.replace("%", "*").replace("_", "?")), text) is not None


def written(tree: Any) -> str:
    """Return the tree as text."""
    word = tree[0]
    if word == "not":
        return f"NOT ({written(tree[1])})"
    if word in ("and", "or"):
        return f" {word.upper()} ".join(f"({written(part)})" for part in tree[1:])
    operand = tree[1] if isinstance(tree[1], str) else f"{tree[1][0]}({_name(tree[1])})"
    if word == "is null":
        return f"{operand} is null"
    values = [_literal(value) for value in tree[2:]]
    return f"{operand} {word} " + (f"({', '.join(values)})" if word == "in" else values[0])


def _name(operand: tuple[str, str]) -> str:
    return _literal(operand[1]) if operand[0] == "header" else operand[1]


def _literal(value: Any) -> str:
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
