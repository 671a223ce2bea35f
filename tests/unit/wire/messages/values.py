"""Random messages: for Hypothesis, and of a seed for what needs many at once."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.unit.wire.messages.kafka_apis import Message
from txnkafka.wire.fields import ArrayOf, MessageField, Type, fields_of
from txnkafka.wire.schema import Scalar

__all__ = ["Chooser", "messages_of", "random_message"]

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
OTHERS = {
    "bool": st.booleans(),
    "string": st.text(st.characters(codec="utf-8"), max_size=40),
    "bytes": st.binary(max_size=200),
    "records": st.binary(max_size=200).map(memoryview),
    "uuid": st.binary(min_size=16, max_size=16).map(lambda data: uuid_text(data)),
    "uint16": st.integers(0, (1 << 16) - 1),
    "float64": st.floats(allow_nan=False),
}
TEXTS = ("", "t", "orders", "\u00fcn\u00efcode-\u2603-\U0001f600", "x" * 130)


def uuid_text(data: bytes) -> str:
    return urlsafe_b64encode(data)[:22].decode()


def messages_of(message: Message) -> st.SearchStrategy[Any]:
    """Messages whose fields are those of one version."""
    return _struct(message.cls, message.version)


def _struct(cls: type, version: int) -> st.SearchStrategy[Any]:
    present = [field for field in fields_of(cls) if field.is_in(version)]
    values = {field.name: _field(field, version) for field in present}
    return st.fixed_dictionaries(values).map(lambda chosen: cls(**chosen))


def _field(field: MessageField, version: int) -> st.SearchStrategy[Any]:
    values = _value(field.schema.type, version)
    return st.none() | values if field.is_nullable(version) else values


def _value(kind: Type, version: int) -> st.SearchStrategy[Any]:
    if isinstance(kind, ArrayOf):
        return st.lists(_value(kind.element, version), max_size=3).map(tuple)
    if not isinstance(kind, Scalar):
        return _struct(kind, version)
    if kind.name in BITS:
        return st.integers(-(1 << BITS[kind.name] - 1), (1 << BITS[kind.name] - 1) - 1)
    return OTHERS[kind.name]


class Chooser:
    """Random values. ``level`` 0 takes null, empty arrays and defaults of tagged fields where it can."""

    def __init__(self, seed: str, level: int) -> None:
        self.random, self.level = Random(seed), level

    def struct(self, cls: type, version: int) -> Any:
        """A struct with the fields of a version."""
        present = [field for field in fields_of(cls) if field.is_in(version)]
        shown = [field for field in present if field.schema.tag is None or self.level]
        return cls(**{field.name: self.field(field, version) for field in shown})

    def field(self, field: MessageField, version: int) -> Any:
        """A value, or null where it is allowed."""
        if field.is_nullable(version) and self.random.randrange(self.level + 2) < 1:
            return None
        kind = field.schema.type
        if isinstance(kind, ArrayOf):
            count = self.random.randrange(1, 3) if self.level else 0
            return tuple(self.value(kind.element, version, field) for _ in range(count))
        return self.value(kind, version, field)

    def value(self, kind: Scalar | type, version: int, field: MessageField) -> Any:
        """An element, or the value of a field."""
        return self.scalar(kind, field) if isinstance(kind, Scalar) else self.struct(kind, version)

    def scalar(self, kind: Scalar, field: MessageField) -> Any:
        """A value of a type without parts."""
        if kind.name in BITS:
            bits = BITS[kind.name]
            value = self.random.getrandbits(self.random.choice((3, bits)))
            return value - (1 << bits) if value >> (bits - 1) else value
        if kind.name == "bool":
            return self.random.random() < 0.5
        if kind.name == "uuid":
            return uuid_text(self.random.randbytes(16))
        if kind.name == "uint16":
            return self.random.getrandbits(16)
        if kind.name == "float64":
            return self.random.choice((0.0, -1.5, 1e300))
        if kind.name == "string":
            return self.random.choice(TEXTS)
        return self.random.randbytes(self.random.choice((0, 5, 200)))


def random_message(message: Message, number: int = 4) -> Any:
    """One of a row of messages of this version; the first ones are sparse."""
    return Chooser(f"{message} {number}", min(number, 4)).struct(message.cls, message.version)
