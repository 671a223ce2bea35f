"""Evaluates predicates on columns of decoded records with Arrow's kernels.

Only the columns that the predicate tests are created. pyarrow and numpy are imported with the first mask.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from txnkafka.env.packages import import_package
from txnkafka.record.arrow import header_columns, record_column
from txnkafka.record.predicate import And, Comparison, Operand, Predicate, operands_of

if TYPE_CHECKING:
    import pyarrow as pa

    from txnkafka._core.columns import RecordColumns

_COMPARISONS: Final = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


def needs_copies(predicate: Predicate) -> bool:
    """Return whether records must be decoded with copies of their keys and values; else their positions
    suffice."""
    return any(one.column in ("key", "value") and not one.length for one in operands_of(predicate))


def needs_headers(predicate: Predicate) -> bool:
    """Return whether records must be decoded with their headers."""
    return any(operand.header is not None for operand in operands_of(predicate))


def mask_bytes(predicate: Predicate, columns: RecordColumns) -> bytes | None:
    """Return ``mask_of`` with a byte for each record; None if all records match the predicate. Raises
    MissingPackageError without pyarrow."""
    import_package("pyarrow", "a predicate (where)", "arrow")
    mask = mask_of(predicate, columns)
    count = mask.true_count
    if count == len(columns):
        return None
    found: bytes = mask.to_numpy(zero_copy_only=False).tobytes() if count else bytes(len(columns))
    return found


def mask_of(predicate: Predicate, columns: RecordColumns) -> pa.BooleanArray:
    """Return a mask without nulls: True for each record that matches the predicate, which must be bound to
    the partition."""
    import pyarrow.compute as pc

    if isinstance(predicate, Comparison):
        return _test(predicate, columns)
    if isinstance(predicate, And):
        masks = [mask_of(part, columns) for part in predicate.parts]
        return reduce(pc.and_, masks) if masks else _constant(True, columns)
    masks = [mask_of(choice, columns) for choice in predicate.choices]
    return reduce(pc.or_, masks) if masks else _constant(False, columns)


def _constant(value: bool, columns: RecordColumns) -> pa.BooleanArray:
    import pyarrow as pa

    return pa.repeat(pa.scalar(value), len(columns))


def _test(test: Comparison, columns: RecordColumns) -> pa.BooleanArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    array = _operand(test.operand, columns)
    match test.operator:
        case "is null":
            return pc.is_null(array)
        case "is not null":
            return pc.is_valid(array)
        case "in":
            return pc.is_in(array, _values(test, array.type))
        case "not in":
            return pc.and_not(pc.is_valid(array), pc.is_in(array, _values(test, array.type)))
        case "like":
            found = _like(array, test.values[0])
        case "not like":
            found = pc.invert(_like(array, test.values[0]))
        case operator:
            literal = pa.scalar(test.values[0], pa.int64() if test.operand.kind is int else pa.binary())
            found = pc.call_function(_COMPARISONS[operator], [array, literal])
    return pc.fill_null(found, False)


def _like(array: pa.BinaryArray, pattern: Any) -> pa.BooleanArray:
    """Match a LIKE pattern. Arrow's own matcher does not treat every backslash as an escape: beside a % at
    the beginning or end it is itself, and at the end of the pattern nothing."""
    import pyarrow.compute as pc

    if b"\\" not in pattern:
        return pc.match_like(array, pattern)
    pieces = re.findall(rb"\\.|[^\\]|\\$", pattern, re.DOTALL)
    wild = {b"%": b".*", b"_": b"."}
    expression = b"".join(wild.get(piece) or rb"\x%02x" % piece[-1] for piece in pieces)
    return pc.match_substring_regex(array, rb"(?s)\A" + expression + rb"\z")


def _values(test: Comparison, kind: pa.DataType) -> pa.Array:
    """Return the values of IN that the column's type can represent; the others cannot match."""
    import pyarrow as pa

    width = {pa.int32(): 1 << 31}.get(kind, 1 << 63)
    values = [value for value in test.values if not isinstance(value, int) or -width <= value < width]
    return pa.array(values, kind)


def _operand(operand: Operand, columns: RecordColumns) -> Any:
    if operand.header is not None:
        return _header(operand.header, columns)
    if operand.length:
        return _length(operand.column, columns)
    import pyarrow as pa

    kinds = {"key": pa.binary(), "value": pa.binary(), "timestampType": pa.int32()}
    kind = (
        pa.timestamp("ms", tz="UTC")
        if operand.column == "timestamp"
        else kinds.get(operand.column, pa.int64())
    )
    array = record_column(operand.column, columns, kind)
    return array.view(pa.int64()) if operand.column == "timestamp" else array


def _length(column: str, columns: RecordColumns) -> Any:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if not columns.views:
        return pc.binary_length(record_column(column, columns, pa.binary()))
    lengths = np.asarray(columns.key_lengths if column == "key" else columns.value_lengths)
    return pa.array(lengths, pa.int32(), mask=lengths < 0)


def _header(name: str, columns: RecordColumns) -> Any:
    """Return the value of each record's last header of that name; null without one."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    names, values = header_columns(columns)
    named = np.flatnonzero(pc.equal(names, name.encode()).to_numpy(zero_copy_only=False))
    records = np.searchsorted(np.asarray(columns.header_offsets), named, side="right") - 1
    last = np.full(len(columns), -1, dtype=np.int64)
    last[records] = named  # the last of several equal headers stays
    return values.take(pa.array(last, mask=last < 0))
