"""Generated writers: the Python source of one function a struct, for one version of a message.

Numbers that stand side by side are one call of ``pack``. Strings and bytes are calls of WRITERS; arrays,
structs and tagged fields are closures of ``part_writers``, one for each field. A field that the version lacks
must have its default unless it is ignorable. The source of EndTxnResponse version 4:

    def write_EndTxnResponse(out, gather, value):
        try:
            out += pack_0(value.throttle_time_ms, value.error_code)
        except number_errors:
            raise wrong_number(numbers_0, value) from None
        out.append(0)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

from txnkafka.wire.codegen.fields import ArrayOf, MessageField, Type, fields_of
from txnkafka.wire.codegen.generated import run_source
from txnkafka.wire.codegen.part_writers import (
    WritePart,
    array_writer,
    number_writer,
    sized_part_writer,
    struct_writer,
    write_tagged_fields,
)
from txnkafka.wire.codegen.primitive_writers import (
    WRITERS,
    sized_writer,
    unsupported,
    uuid_bytes,
    wrong_number,
)
from txnkafka.wire.codegen.reader_source import TAB, UUID_LAYOUT, layout_of, name_of
from txnkafka.wire.schema import BOOL, UUID, Scalar, Struct

__all__ = ["StructWriter", "VersionWriters"]

NUMBER_ERRORS: Final = (struct.error, OverflowError)


def pack_layout_of(kind: Type) -> str:
    """The layout of ``layout_of``; of bools one that refuses None, which ``?`` packs as false."""
    return "b" if kind is BOOL else layout_of(kind)


class VersionWriters:
    """Makes the writers of the structs of one version, each once."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version, self.flexible = version, flexible
        self._writers: dict[type | Struct, WritePart] = {}

    def writer(self, kind: type | Struct) -> WritePart:
        """The function that writes a struct, and the writers of all structs in it."""
        if kind not in self._writers:
            function = self.struct(kind)
            name = name_of(kind)
            title = f"{name} version {self.version}"
            self._writers[kind] = run_source(function.source, f"write_{name}", title, function.names)
        return self._writers[kind]

    def struct(self, kind: type | Struct) -> StructWriter:
        """The source of one function."""
        return StructWriter(self, kind)

    def part(self, field: MessageField) -> WritePart:
        """The writer of a field on its own."""
        kind, name, nullable = field.schema.type, field.name, field.is_nullable(self.version)
        if isinstance(kind, ArrayOf):
            return self.array(kind, name, nullable)
        if isinstance(kind, Scalar):
            return self.scalar(kind, name, nullable)
        null = 0xFF if field.schema.tag is None else 0
        return struct_writer(self.writer(kind), name, nullable=nullable, null=null)

    def array(self, kind: ArrayOf, name: str, nullable: bool) -> WritePart:
        """The writer of an array."""
        return array_writer(self.element(kind.element), name, flexible=self.flexible, nullable=nullable)

    def element(self, kind: Type) -> WritePart:
        """The writer of an element of an array."""
        if isinstance(kind, ArrayOf):
            return self.array(kind, "", nullable=False)
        return self.scalar(kind, "") if isinstance(kind, Scalar) else self.writer(kind)

    def scalar(self, kind: Scalar, name: str, nullable: bool = False) -> WritePart:
        """The writer of a number, a string or bytes on its own."""
        if layout := pack_layout_of(kind):
            return number_writer(">" + layout, kind.name, name)
        return sized_part_writer(WRITERS[self.sized(kind, nullable)], name)

    def sized(self, kind: Scalar, nullable: bool) -> str:
        """The name, in WRITERS, of the writer of a string, of bytes or of records."""
        return sized_writer(kind.name, self.flexible, nullable)


class StructWriter:
    """Collects the source of one function, and the names that it uses."""

    def __init__(self, writers: VersionWriters, kind: type | Struct) -> None:
        self._writers, self._runs = writers, 0
        self._lines = [f"def write_{name_of(kind)}(out, gather, value):"]
        self.names: dict[str, Any] = {
            **WRITERS,
            "number_errors": NUMBER_ERRORS,
            "unsupported": unsupported,
            "uuid_bytes": uuid_bytes,
            "write_tagged_fields": write_tagged_fields,
            "wrong_number": wrong_number,
        }
        fields = fields_of(kind)
        present = [field for field in fields if field.is_in(writers.version)]
        self._add_checks(present)
        positional = [field for field in present if field.schema.tag is None]
        tagged = [field for field in present if field.schema.tag is not None]
        self._add_absent(field for field in fields if field not in present and not field.schema.ignorable)
        for is_run, run in groupby(positional, lambda field: bool(layout_of(field.schema.type))):
            if is_run:
                self._add_run(list(run))
            else:
                self._add_calls(run)
        if writers.flexible:
            self._add_tagged(tagged)
        if len(self._lines) == 1:
            self._add("pass")

    @property
    def source(self) -> str:
        """The function."""
        return "\n".join([*self._lines, ""])

    def _add(self, *lines: str) -> None:
        self._lines += (TAB + line for line in lines)

    def _add_checks(self, present: list[MessageField]) -> None:
        """A message class has its fields."""

    def _add_absent(self, fields: Iterable[MessageField]) -> None:
        for field in fields:
            self._add(
                f"if {self._differs(field)}:",
                f'{TAB}raise unsupported("{field.name}", value.{field.name})',
            )

    def _differs(self, field: MessageField) -> str:
        """The test whether a field has another value than its default."""
        value = f"value.{field.name}"
        if field.default is None:
            return f"{value} is not None"
        if field.default == () or field.default == b"":
            return f"{value} is None or len({value})"
        self.names[f"{field.name}_default"] = field.default
        return f"{value} != {field.name}_default"

    def _add_run(self, run: list[MessageField]) -> None:
        layouts = [pack_layout_of(field.schema.type) for field in run]
        number = self._runs
        self._runs += 1
        self.names[f"pack_{number}"] = struct.Struct(">" + "".join(layouts)).pack
        self.names[f"numbers_{number}"] = tuple(
            (field.name, ">" + pack_layout_of(kind), kind.name)
            for field in run
            if isinstance(kind := field.schema.type, Scalar) and kind is not UUID
        )
        values = map(self._packed, run)
        self._add(
            "try:",
            f"{TAB}out += pack_{number}({', '.join(values)})",
            "except number_errors:",
            f"{TAB}raise wrong_number(numbers_{number}, value) from None",
        )

    def _value(self, name: str) -> str:
        """How the value of a field is got."""
        return f"value.{name}"

    def _packed(self, field: MessageField) -> str:
        """What of a field is packed."""
        value = self._value(field.name)
        is_uuid = layout_of(field.schema.type) == UUID_LAYOUT
        return f'uuid_bytes({value}, "{field.name}")' if is_uuid else value

    def _add_calls(self, fields: Iterable[MessageField]) -> None:
        for field in fields:
            kind, name, value = field.schema.type, field.name, self._value(field.name)
            if isinstance(kind, Scalar):
                nullable = field.is_nullable(self._writers.version)
                writer = self._writers.sized(kind, nullable)
                self._add(f'{writer}(out, gather, {value}, "{name}")')
            else:
                self.names[f"write_{name}"] = self._writers.part(field)
                self._add(f"write_{name}(out, gather, {value})")

    def _add_tagged(self, tagged: list[MessageField]) -> None:
        if not tagged:
            self._add("out.append(0)")
            return
        self._add("tagged = []")
        for field in sorted(tagged, key=lambda field: field.schema.tag or 0):
            self.names[f"write_{field.name}"] = self._writers.part(field)
            self._add(
                f"if {self._differs(field)}:",
                f"{TAB}tagged.append(({field.schema.tag}, write_{field.name}, value.{field.name}))",
            )
        self._add("write_tagged_fields(out, tagged)")
