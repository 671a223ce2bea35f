"""Programs for ``_core.message_reader`` and ``_core.message_writer``, from message classes and from the
tables of logs. The program of a version is made on first use, and kept.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from txnkafka._core.message_table import Part, Table
from txnkafka.wire.fields import ArrayOf, MessageField, Type, fields_of
from txnkafka.wire.schema import Field, Message, Scalar, SchemaError, Struct, default_of, in_versions

SIZES: Final = {"b": 1, "?": 1, "h": 2, "H": 2, "i": 4, "q": 8, "d": 8}


@cache
def table_of(cls: type, version: int, flexible: bool) -> Table:
    """Return the program of one version of a message class."""
    return Tables(version, flexible).table(cls)


@cache
def log_table_of(message: Message, version: int) -> Table:
    """Return the program of one version of a log's table. Raises ``SchemaError`` for an unknown version."""
    if not in_versions(version, message.versions):
        raise SchemaError(f"{message.name} version {version} is not known (known: {message.versions})")
    return Tables(version, in_versions(version, message.flexible)).table(Struct(message.fields))


class Tables:
    """Maker of the programs of the structs of one version, each once."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version, self.flexible = version, flexible
        self._tables: dict[type | Struct, Table] = {}

    def table(self, kind: type | Struct) -> Table:
        """Return the program of a struct, including all structs in it."""
        if kind not in self._tables:
            self._tables[kind] = self._class(kind) if isinstance(kind, type) else self._dictionary(kind)
        return self._tables[kind]

    def _class(self, cls: type) -> Table:
        fields = fields_of(cls)
        absent = [field for field in fields if not field.is_in(self.version)]
        refused = tuple(self._absent(field) for field in absent if not field.schema.ignorable)
        positional, tagged = self._present(fields)
        return Table(
            cls,
            flexible=self.flexible,
            positional=tuple(self.part(field) for field in positional),
            tagged=tuple(self.part(field, default=field.default) for field in tagged),
            absent=tuple(map(self._absent, absent)),
            refused=refused,
        )

    def _dictionary(self, kind: Struct) -> Table:
        positional, tagged = self._present(fields_of(kind))
        defaults = {field.name: self._default(field) for field in kind.fields if field.tag is not None}
        return Table(
            None,
            flexible=self.flexible,
            positional=tuple(self.part(field, strict=True) for field in positional),
            tagged=tuple(self.part(field, strict=True, **defaults[field.name]) for field in tagged),
        )

    def _present(self, fields: tuple[MessageField, ...]) -> tuple[list[MessageField], list[MessageField]]:
        """Return the fields of this version: positional ones, and tagged ones."""
        present = [field for field in fields if field.is_in(self.version)]
        tagged = [field for field in present if field.schema.tag is not None]
        positional = [field for field in present if field.schema.tag is None]
        return positional, sorted(tagged, key=lambda field: field.schema.tag or 0)

    def _default(self, field: Field) -> dict[str, Any]:
        make = default_of(field, self.version)
        return {"default": make(), "make_default": make if isinstance(make(), list | dict) else None}

    # Fields

    def _absent(self, field: MessageField) -> Part:
        """Return the part for a field that this version does not have, for its default."""
        return self._part(field.schema.type, field.name, default=field.default)

    def part(self, field: MessageField, **options: Any) -> Part:
        """Return the part for one field of this version."""
        nullable, tag = field.is_nullable(self.version), field.schema.tag
        return self._part(field.schema.type, field.name, nullable=nullable, tag=tag, **options)

    def _part(self, kind: Type, name: str, *, strict: bool = False, **options: Any) -> Part:
        options |= {"strict": strict, "compact": self.flexible}
        if isinstance(kind, Scalar):
            return Part(name, kind.name, **options)
        if isinstance(kind, ArrayOf):
            return Part(name, "array", element=self._element(kind.element, strict), **options)
        return Part(name, "struct", table=self.table(kind), **options)

    def _element(self, kind: Type, strict: bool) -> Part:
        sizes = {"minimum_size": self._minimum_size(kind), "values": self._values(kind)}
        return self._part(kind, "", strict=strict, **sizes)

    # Sizes

    def _minimum_size(self, kind: Type, nullable: bool = False) -> int:
        """Return the smallest number of bytes of a value; at least 1."""
        if isinstance(kind, Scalar):
            if kind.name == "uuid":
                return 16
            if kind.layout:
                return SIZES[kind.layout]
            return 1 if self.flexible else 2 if kind.name == "string" else 4
        if isinstance(kind, ArrayOf):
            return 1 if self.flexible else 4
        if nullable:
            return 1
        fields = (field for field in fields_of(kind) if field.is_in(self.version))
        sizes = (
            self._minimum_size(field.schema.type, field.is_nullable(self.version))
            for field in fields
            if field.schema.tag is None
        )
        return max(1, sum(sizes) + self.flexible)

    def _values(self, kind: Type) -> int:
        """Return the largest number of Python values of a value, without elements of arrays in it."""
        if isinstance(kind, Scalar | ArrayOf):
            return 1
        present = (field.schema.type for field in fields_of(kind) if field.is_in(self.version))
        return 1 + sum(map(self._values, present))
