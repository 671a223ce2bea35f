"""Generated readers: the Python source of one function a struct, for one version of a message.

Fields of fixed sizes that stand side by side are one run: one check of the bytes left, one call of
``unpack_from``. Strings and bytes are calls of READERS; arrays, structs and tagged fields are closures of
``part_readers``, one for each field. The source of EndTxnResponse version 5:

    def read_EndTxnResponse(data, position, end, left):
        if position + 16 > end:
            raise short_run(run_0, position, end)
        throttle_time_ms, error_code, producer_id, producer_epoch = unpack_0(data, position)
        position += 16
        position = skip_tagged_fields(data, position, end, left)
        return EndTxnResponse(
            throttle_time_ms=throttle_time_ms,
            error_code=error_code,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        ), position
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from struct import Struct as Layout
from typing import Any, Final

from txnkafka.wire.codegen.fields import ArrayOf, MessageField, Type, fields_of
from txnkafka.wire.codegen.generated import run_source
from txnkafka.wire.codegen.part_readers import (
    Collected,
    Element,
    ReadPart,
    array_reader,
    number_reader,
    numbers_reader,
    read_tagged_fields,
    sized_part,
    skip_tagged_fields,
    struct_reader,
)
from txnkafka.wire.codegen.primitive_readers import READERS, short_run, sized_reader, uuid_text
from txnkafka.wire.schema import Scalar, Struct

__all__ = ["TAB", "UUID_LAYOUT", "StructReader", "VersionReaders", "layout_of", "name_of"]

UUID_LAYOUT: Final = "16s"
TAB: Final = "    "


def layout_of(kind: Type) -> str:
    """The ``struct`` code of a type of fixed size, "" of any other."""
    if not isinstance(kind, Scalar):
        return ""
    return UUID_LAYOUT if kind.name == "uuid" else kind.layout


def name_of(kind: type | Struct) -> str:
    """The name of a struct in the source."""
    return "struct" if isinstance(kind, Struct) else kind.__name__


class VersionReaders:
    """Makes the readers of the structs of one version, each once."""

    collected: Collected = tuple

    def __init__(self, version: int, flexible: bool) -> None:
        self.version, self.flexible = version, flexible
        self._readers: dict[type | Struct, ReadPart] = {}

    def reader(self, kind: type | Struct) -> ReadPart:
        """The function that reads a struct, and the readers of all structs in it."""
        if kind not in self._readers:
            function = self.struct(kind)
            name = name_of(kind)
            title = f"{name} version {self.version}"
            self._readers[kind] = run_source(function.source, f"read_{name}", title, function.names)
        return self._readers[kind]

    def struct(self, kind: type | Struct) -> StructReader:
        """The source of one function."""
        return StructReader(self, kind)

    def part(self, field: MessageField) -> ReadPart:
        """The reader of a field on its own."""
        kind, name = field.schema.type, field.name
        nullable = field.is_nullable(self.version)
        if isinstance(kind, ArrayOf):
            return self._array(kind, name, nullable)
        if isinstance(kind, Scalar):
            return self._scalar(kind, name, nullable)
        null = -1 if field.schema.tag is None else 0
        return struct_reader(self.reader(kind), name, nullable=nullable, null=null)

    def _scalar(self, kind: Scalar, name: str, nullable: bool = False) -> ReadPart:
        if layout := layout_of(kind):
            return number_reader(">" + layout, Layout(">" + layout).size, name)
        return sized_part(READERS[sized_reader(kind.name, self.flexible, nullable)], name)

    def _array(self, kind: ArrayOf, name: str, nullable: bool) -> ReadPart:
        element = kind.element
        minimum_size, values = self._minimum_size(element), self._values(element)
        if isinstance(element, Scalar) and element.layout:
            numbers = Element(self._scalar(element, ""), minimum_size, values)
            return numbers_reader(
                numbers, element.layout, name, self.collected, flexible=self.flexible, nullable=nullable
            )
        part = Element(self._element(element), minimum_size, values)
        return array_reader(part, name, self.collected, flexible=self.flexible, nullable=nullable)

    def _element(self, kind: Type) -> ReadPart:
        if isinstance(kind, ArrayOf):
            return self._array(kind, "", nullable=False)
        return self._scalar(kind, "") if isinstance(kind, Scalar) else self.reader(kind)

    # Sizes

    def _minimum_size(self, kind: Type, nullable: bool = False) -> int:
        """The least bytes that a value takes; at least 1."""
        if layout := layout_of(kind):
            return Layout(">" + layout).size
        if isinstance(kind, Scalar):
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
        """The most Python values that a value becomes, elements of arrays in it not counted."""
        if isinstance(kind, Scalar | ArrayOf):
            return 1
        present = (field.schema.type for field in fields_of(kind) if field.is_in(self.version))
        return 1 + sum(map(self._values, present))


class StructReader:
    """Collects the source of one function, and the names that it uses."""

    def __init__(self, readers: VersionReaders, kind: type | Struct) -> None:
        self._readers, self._name, self._runs = readers, name_of(kind), 0
        self._lines = [f"def read_{self._name}(data, position, end, left):"]
        self.names: dict[str, Any] = {
            **READERS,
            self._name: kind,
            "read_tagged_fields": read_tagged_fields,
            "short_run": short_run,
            "skip_tagged_fields": skip_tagged_fields,
            "uuid_text": uuid_text,
        }
        present = [field for field in fields_of(kind) if field.is_in(readers.version)]
        positional = [field for field in present if field.schema.tag is None]
        tagged = [field for field in present if field.schema.tag is not None]
        for is_run, fields in groupby(positional, lambda field: bool(layout_of(field.schema.type))):
            if is_run:
                self._add_run(list(fields))
            else:
                self._add_calls(fields)
        if readers.flexible:
            self._add_tagged(tagged)
        self._add_return(positional, tagged)

    @property
    def source(self) -> str:
        """The function."""
        return "\n".join([*self._lines, ""])

    def _add(self, *lines: str) -> None:
        self._lines += (TAB + line for line in lines)

    def _add_run(self, run: list[MessageField]) -> None:
        layouts = [layout_of(field.schema.type) for field in run]
        layout, number = Layout(">" + "".join(layouts)), self._runs
        self._runs += 1
        sizes = tuple((run[i].name, Layout(">" + layouts[i]).size) for i in range(len(run)))
        self.names |= {f"run_{number}": sizes, f"unpack_{number}": layout.unpack_from}
        names = ", ".join(field.name for field in run)
        self._add(
            f"if position + {layout.size} > end:",
            f"{TAB}raise short_run(run_{number}, position, end)",
            f"{names}{',' * (len(run) == 1)} = unpack_{number}(data, position)",
            f"position += {layout.size}",
        )
        uuids = [field.name for field in run if layout_of(field.schema.type) == UUID_LAYOUT]
        self._add(*(f"{name} = uuid_text({name})" for name in uuids))

    def _add_calls(self, fields: Iterable[MessageField]) -> None:
        for field in fields:
            kind, name = field.schema.type, field.name
            if isinstance(kind, Scalar):
                nullable = field.is_nullable(self._readers.version)
                reader = sized_reader(kind.name, self._readers.flexible, nullable)
                self._add(f'{name}, position = {reader}(data, position, end, "{name}")')
            else:
                self.names[f"read_{name}"] = self._readers.part(field)
                self._add(f"{name}, position = read_{name}(data, position, end, left)")

    def _add_tagged(self, tagged: list[MessageField]) -> None:
        if not tagged:
            self._add("position = skip_tagged_fields(data, position, end, left)")
            return
        self.names["tags"] = {field.schema.tag: (field.name, self._readers.part(field)) for field in tagged}
        self._add("tagged, position = read_tagged_fields(data, position, end, left, tags)")

    def _add_return(self, positional: list[MessageField], tagged: list[MessageField]) -> None:
        self._add(f"return {self._name}(")
        self._add(*(f"{TAB}{field.name}={field.name}," for field in positional))
        self._add(*[f"{TAB}**tagged,"] * bool(tagged), "), position")
