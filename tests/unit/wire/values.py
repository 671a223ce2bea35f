"""Random values of a table as its reader gives them, for Hypothesis."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

from hypothesis import strategies as st

from txnkafka.wire.reader import UNKNOWN_TAGGED_FIELDS
from txnkafka.wire.schema import Array, Field, Message, Scalar, Struct, Type, in_versions

INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
}
TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
OTHERS = {
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "string": TEXT,
    "bytes": st.binary(max_size=200),
    "records": st.binary(max_size=200),
    "uuid": st.binary(min_size=16, max_size=16).map(lambda data: urlsafe_b64encode(data)[:22].decode()),
}


def values_of(message: Message, version: int) -> st.SearchStrategy[dict[str, Any]]:
    """Fields of a message, with unknown tagged fields where the version is flexible."""
    return _struct(message.fields, version, in_versions(version, message.flexible))


def _struct(fields: tuple[Field, ...], version: int, flexible: bool) -> st.SearchStrategy[dict[str, Any]]:
    present = [field for field in fields if in_versions(version, field.versions)]
    known = {field.name: _field(field, version, flexible) for field in present}
    if not flexible:
        return st.fixed_dictionaries(known)
    tags = st.dictionaries(st.integers(100, 2**31 - 1), st.binary(max_size=9), min_size=1, max_size=3)
    unknown = tags.map(lambda found: sorted(found.items()))
    return st.fixed_dictionaries(known, optional={UNKNOWN_TAGGED_FIELDS: unknown})


def _field(field: Field, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    values = _value(field.type, version, flexible)
    return st.none() | values if in_versions(version, field.nullable) else values


def _value(kind: Type, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    if isinstance(kind, Struct):
        return _struct(kind.fields, version, flexible)
    if isinstance(kind, Array):
        return st.lists(_value(kind.element, version, flexible), max_size=3)
    return _scalar(kind)


def _scalar(kind: Scalar) -> st.SearchStrategy[Any]:
    if kind.name in INTEGERS:
        return st.integers(*INTEGERS[kind.name])
    return OTHERS[kind.name]
