"""The obvious reader and writer of messages: of classes of ``wire.fields``, and of structs in tables of
``wire.schema``, which are dictionaries and lists. Held against the compiled ones."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from txnkafka.wire.fields import ArrayOf, MessageField, Type, fields_of
from txnkafka.wire.schema import Field, Scalar, SchemaError, Struct, default_of

__all__ = ["ModelReader", "model_write"]

UNKNOWN = "unknown_tagged_fields"


class ModelReader:
    """Reads one struct, from a position on."""

    def __init__(self, version: int, flexible: bool, data: bytes, position: int, limit: int) -> None:
        self.version, self.flexible = version, flexible
        self.data, self.position, self.end = data, position, len(data)
        self.left = self.limit = limit

    def struct(self, kind: type | Struct) -> Any:
        """An object of a class, or a dictionary."""
        present = [field for field in fields_of(kind) if field.is_in(self.version)]
        found = {f.name: self.field(f, kind) for f in present if f.schema.tag is None}
        if isinstance(kind, Struct):
            known = {field.name: field for field in kind.fields}
            found |= {f.name: self.default(known[f.name]) for f in present if f.schema.tag is not None}
        if self.flexible:
            tagged = {field.schema.tag: field for field in present if field.schema.tag is not None}
            found |= self.tagged_fields(kind, tagged)
        return found if isinstance(kind, Struct) else kind(**found)

    def default(self, field: Field) -> Any:
        """The value of a tagged field that is absent."""
        return default_of(field, self.version)()

    def field(self, field: MessageField, owner: type | Struct) -> Any:
        """A field, with its name in errors."""
        try:
            nullable = field.is_nullable(self.version)
            if nullable and not isinstance(field.schema.type, Scalar | ArrayOf):
                null = -1 if field.schema.tag is None else 0
                at = self.position
                (presence,) = struct.unpack("b", self.take(1))
                if presence not in (1, null):
                    raise SchemaError(
                        f"a struct that may be null begins with 1 or {null}, not {presence}", at
                    )
                if presence == null:
                    return None
            return self.value(field.schema.type, nullable, list if isinstance(owner, Struct) else tuple)
        except SchemaError as error:
            raise error.inside(field.name) from None

    def value(self, kind: Type, nullable: bool, collected: Any) -> Any:
        """A value of any type."""
        if isinstance(kind, ArrayOf):
            return self.array(kind, nullable, collected)
        if not isinstance(kind, Scalar):
            return self.struct(kind)
        if kind.layout:
            return struct.unpack(">" + kind.layout, self.take(struct.calcsize(">" + kind.layout)))[0]
        if kind.name == "uuid":
            return urlsafe_b64encode(self.take(16))[:22].decode()
        size = self.length(kind.name == "string", nullable)
        if size is None:
            return None
        at = self.position
        data = self.take(size)
        if kind.name != "string":
            return data
        if size > 32767:
            raise SchemaError(f"string has {size} bytes, more than 32767", at)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise SchemaError("string is not UTF-8", at + error.start) from None

    def array(self, kind: ArrayOf, nullable: bool, collected: Any) -> Any:
        """Elements, of which there are no more than fit."""
        at = self.position
        count = self.length(False, nullable)
        if count is None:
            return None
        if count * self.minimum_size(kind.element) > self.end - self.position:
            left = self.end - self.position
            raise SchemaError(f"{count} elements do not fit into the {left} bytes left", at)
        self.count(count * self.values(kind.element), at)
        found: list[Any] = []
        try:
            for _ in range(count):
                found.append(self.value(kind.element, False, collected))
        except SchemaError as error:
            raise error.inside(f"[{len(found)}]") from None
        return collected(found)

    def tagged_fields(self, kind: type | Struct, known: dict[int | None, MessageField]) -> dict[str, Any]:
        """The tagged fields that are there."""
        found: dict[str, Any] = {}
        unknown: list[tuple[int, bytes]] = []
        start, end, last = self.position, self.end, -1
        count = self.uvarint()
        if 2 * count > end - self.position:
            left = end - self.position
            raise SchemaError(f"{count} tagged fields do not fit into the {left} bytes left", start)
        is_table = isinstance(kind, Struct)
        self.count(count * 3 if is_table else count, start)
        for _ in range(count):
            at = self.position
            tag, size = self.uvarint(), self.uvarint()
            if tag <= last:
                raise SchemaError(f"tag {tag} follows tag {last}", at)
            last, stop = tag, self.position + size
            if tag not in known:
                unknown.append((tag, self.take(size)))
                continue
            if stop > end:
                self.take(size)
            self.end = stop
            found[known[tag].name] = self.field(known[tag], kind)
            self.end = end
            if self.position != stop:
                reason = f"{stop - self.position} bytes are left over in the tagged field"
                raise SchemaError(reason, self.position).inside(known[tag].name)
        return found | {UNKNOWN: unknown} if unknown and is_table else found

    # Bytes

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if size > self.end - self.position:
            raise SchemaError(f"needs {size} bytes, {self.end - self.position} are left", self.position)
        self.position += size
        return self.data[self.position - size : self.position]

    def uvarint(self) -> int:
        """A number of at most 32 bits in at most 5 bytes."""
        start, value = self.position, 0
        for i in range(5):
            if self.position == self.end:
                raise SchemaError("varint is cut off", start)
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                if value >> 32:
                    raise SchemaError("varint has more than 32 bits", start)
                return value
        raise SchemaError("varint has more than 5 bytes", start)

    def length(self, is_string: bool, nullable: bool) -> int | None:
        """A length or count, None for null."""
        at = self.position
        if self.flexible:
            length = self.uvarint() - 1
        else:
            (length,) = struct.unpack(">h" if is_string else ">i", self.take(2 if is_string else 4))
            if length < -1:
                raise SchemaError(f"length {length} is negative", at)
        if length < 0 and not nullable:
            raise SchemaError("is null, which this version does not allow", at)
        return None if length < 0 else length

    def count(self, values: int, at: int) -> None:
        """Count values of the message."""
        self.left -= values
        if self.left < 0:
            raise SchemaError(f"the message has more than {self.limit} values", at)

    def minimum_size(self, kind: Type, nullable: bool = False) -> int:
        """The least bytes of an element."""
        if isinstance(kind, Scalar) and (kind.layout or kind.name == "uuid"):
            return struct.calcsize(">" + (kind.layout or "16s"))
        if isinstance(kind, Scalar | ArrayOf):
            is_string = isinstance(kind, Scalar) and kind.name == "string"
            return 1 if self.flexible else 2 if is_string else 4
        if nullable:
            return 1
        present = (f for f in fields_of(kind) if f.is_in(self.version) and f.schema.tag is None)
        return max(1, self.flexible + sum(
            self.minimum_size(f.schema.type, f.is_nullable(self.version)) for f in present
        ))  # fmt: skip

    def values(self, kind: Type) -> int:
        """The most objects that an element becomes."""
        if isinstance(kind, Scalar | ArrayOf):
            return 1
        return 1 + sum(self.values(f.schema.type) for f in fields_of(kind) if f.is_in(self.version))


# Writing of values that fit


def model_write(kind: type | Struct, version: int, flexible: bool, value: Any) -> bytes:
    """The bytes of a struct whose values fit, records in their place."""
    get = value.get if isinstance(kind, Struct) else lambda name: getattr(value, name)
    present = [field for field in fields_of(kind) if field.is_in(version)]
    out = b"".join(_field(f, version, flexible, get(f.name)) for f in present if f.schema.tag is None)
    if not flexible:
        return out
    tagged: list[tuple[int, bytes]] = list(value.get(UNKNOWN, ())) if isinstance(kind, Struct) else []
    for field in present:
        if field.schema.tag is not None and get(field.name) != _default(kind, field, version):
            tagged.append((field.schema.tag, _field(field, version, flexible, get(field.name))))
    parts = [_uvarint(tag) + _uvarint(len(data)) + data for tag, data in sorted(tagged)]
    return out + _uvarint(len(parts)) + b"".join(parts)


def _default(kind: type | Struct, field: MessageField, version: int) -> Any:
    if not isinstance(kind, Struct):
        return field.default
    (found,) = (each for each in kind.fields if each.name == field.name)
    return default_of(found, version)()


def _field(field: MessageField, version: int, flexible: bool, value: Any) -> bytes:
    if not isinstance(field.schema.type, Scalar | ArrayOf) and field.is_nullable(version):
        if value is None:
            return b"\xff" if field.schema.tag is None else b"\0"
        return b"\1" + model_write(field.schema.type, version, flexible, value)
    return _value(field.schema.type, version, flexible, value)


def _value(kind: Type, version: int, flexible: bool, value: Any) -> bytes:
    if isinstance(kind, ArrayOf):
        elements = b"".join(_value(kind.element, version, flexible, each) for each in value or ())
        return _length(">i", flexible, value) + elements
    if not isinstance(kind, Scalar):
        return model_write(kind, version, flexible, value)
    if kind.layout:
        return struct.pack(">" + kind.layout, value)
    if kind.name == "uuid":
        return urlsafe_b64decode(value + "==")
    data = value.encode() if isinstance(value, str) else value
    return _length(">h" if kind.name == "string" else ">i", flexible, data) + bytes(data or b"")


def _length(layout: str, flexible: bool, value: Any) -> bytes:
    length = -1 if value is None else len(value)
    return _uvarint(length + 1) if flexible else struct.pack(layout, length)


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
