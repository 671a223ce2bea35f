"""Generated readers of tables (``wire.schema``): structs become dictionaries, arrays lists.

Absent tagged fields have their defaults, and unknown ones are kept. The source of one struct, of which the
last field is tagged:

    def read_struct(data, position, end, left):
        if position + 8 > end:
            raise short_run(run_0, position, end)
        producer_id, = unpack_0(data, position)
        position += 8
        tagged, position = read_all_tagged_fields(data, position, end, left, tags)
        return {
            "producer_id": producer_id,
            "next_producer_id": -1,
            **tagged,
        }, position
"""

from __future__ import annotations

from functools import cache

from txnkafka.wire.codegen.fields import MessageField
from txnkafka.wire.codegen.part_readers import Collected, ReadPart, read_all_tagged_fields
from txnkafka.wire.codegen.reader_source import TAB, StructReader, VersionReaders
from txnkafka.wire.schema import Message, SchemaError, Struct, default_of, in_versions

__all__ = ["TableReaders", "reader_of"]


@cache
def reader_of(message: Message, version: int) -> ReadPart:
    """The reader of one version. Raises ``SchemaError`` where the table has no such version."""
    if not in_versions(version, message.versions):
        raise SchemaError(f"{message.name} version {version} is not known (known: {message.versions})", 0)
    readers = TableReaders(version, in_versions(version, message.flexible))
    return readers.reader(Struct(message.fields))


class TableReaders(VersionReaders):
    """Makes the readers of the structs of one version of a table, each once."""

    collected: Collected = list

    def struct(self, kind: type | Struct) -> StructReader:
        """The source of one function."""
        return TableReader(self, kind)


class TableReader(StructReader):
    """Collects the source of one function of a table."""

    def __init__(self, readers: VersionReaders, kind: type | Struct) -> None:
        assert isinstance(kind, Struct)
        self._fields = {field.name: field for field in kind.fields}
        super().__init__(readers, kind)

    def _add_tagged(self, tagged: list[MessageField]) -> None:
        tags = {field.schema.tag: (field.name, self._readers.part(field)) for field in tagged}
        self.names |= {"tags": tags, "read_all_tagged_fields": read_all_tagged_fields}
        self._add("tagged, position = read_all_tagged_fields(data, position, end, left, tags)")

    def _add_return(self, positional: list[MessageField], tagged: list[MessageField]) -> None:
        self._add("return {")
        self._add(*(f'{TAB}"{field.name}": {field.name},' for field in positional))
        self._add(*(f'{TAB}"{field.name}": {self._default(field)},' for field in tagged))
        self._add(*[f"{TAB}**tagged,"] * self._readers.flexible, "}, position")

    def _default(self, field: MessageField) -> str:
        return repr(default_of(self._fields[field.name], self._readers.version)())
