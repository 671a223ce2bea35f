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
from txnkafka.wire.codegen.reader_source import UUID_LAYOUT, layout_of
from txnkafka.wire.schema import BOOL, UUID, Scalar

__all__ = ["VersionWriters"]

TAB: Final = "    "
NUMBER_ERRORS: Final = (struct.error, OverflowError)


def pack_layout_of(kind: Type) -> str:
    """The layout of ``layout_of``; of bools one that refuses None, which ``?`` packs as false."""
    return "b" if kind is BOOL else layout_of(kind)


class VersionWriters:
    """Makes the writers of the structs of one version, each once."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version, self.flexible = version, flexible
        self._writers: dict[type, WritePart] = {}

    def writer(self, cls: type) -> WritePart:
        """The function that writes a struct, and the writers of all structs in it."""
        if cls not in self._writers:
            function = StructWriter(self, cls)
            title = f"{cls.__name__} version {self.version}"
            self._writers[cls] = run_source(function.source, f"write_{cls.__name__}", title, function.names)
        return self._writers[cls]

    def part(self, field: MessageField) -> WritePart:
        """The writer of a field on its own."""
        kind, name, nullable = field.schema.type, field.name, field.is_nullable(self.version)
        if isinstance(kind, ArrayOf):
            element = kind.element
            write = self._scalar(element, "") if isinstance(element, Scalar) else self.writer(element)
            return array_writer(write, name, flexible=self.flexible, nullable=nullable)
        if isinstance(kind, Scalar):
            return self._scalar(kind, name, nullable)
        return struct_writer(self.writer(kind), name, nullable=nullable)

    def _scalar(self, kind: Scalar, name: str, nullable: bool = False) -> WritePart:
        if layout := pack_layout_of(kind):
            return number_writer(">" + layout, kind.name, name)
        return sized_part_writer(WRITERS[sized_writer(kind.name, self.flexible, nullable)], name)


class StructWriter:
    """Collects the source of one function, and the names that it uses."""

    def __init__(self, writers: VersionWriters, cls: type) -> None:
        self._writers, self._cls, self._runs = writers, cls, 0
        self._lines = [f"def write_{cls.__name__}(out, gather, value):"]
        self.names: dict[str, Any] = {
            **WRITERS,
            "number_errors": NUMBER_ERRORS,
            "unsupported": unsupported,
            "uuid_bytes": uuid_bytes,
            "write_tagged_fields": write_tagged_fields,
            "wrong_number": wrong_number,
        }
        fields = fields_of(cls)
        present = [field for field in fields if field.is_in(writers.version)]
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
        values = (
            f'uuid_bytes(value.{field.name}, "{field.name}")'
            if layout == UUID_LAYOUT
            else f"value.{field.name}"
            for field, layout in zip(run, layouts, strict=True)
        )
        self._add(
            "try:",
            f"{TAB}out += pack_{number}({', '.join(values)})",
            "except number_errors:",
            f"{TAB}raise wrong_number(numbers_{number}, value) from None",
        )

    def _add_calls(self, fields: Iterable[MessageField]) -> None:
        for field in fields:
            kind, name = field.schema.type, field.name
            if isinstance(kind, Scalar):
                nullable = field.is_nullable(self._writers.version)
                writer = sized_writer(kind.name, self._writers.flexible, nullable)
                self._add(f'{writer}(out, gather, value.{name}, "{name}")')
            else:
                self.names[f"write_{name}"] = self._writers.part(field)
                self._add(f"write_{name}(out, gather, value.{name})")

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
