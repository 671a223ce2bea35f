"""Keys and values in Avro's binary encoding with a fixed schema, without a header."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

from txnkafka.decoding.avro_schema import free_values, is_recursive, whole
from txnkafka.decoding.schema_file import read_schema_file
from txnkafka.env.packages import import_package
from txnkafka.errors import DecodeError, KafkaError


class AvroDecoder:
    """Decodes Avro with one schema, given as JSON text or parsed JSON. ``references`` are schemas that it
    refers to by name, dependencies first. Logical types become Python types: datetime, Decimal, UUID."""

    def __init__(self, schema: str | dict[str, Any] | list[Any], references: Iterable[str] = ()) -> None:
        """Raise KafkaError for an invalid schema, MissingPackageError without fastavro."""
        fastavro = import_package("fastavro", "Avro", "decode")
        named: dict[str, Any] = {}
        try:
            for text in references:
                fastavro.parse_schema(json.loads(text), named)
            parsed = json.loads(schema) if isinstance(schema, str) else schema
            together = whole(fastavro.parse_schema(parsed, named), named, set())
            named = {}
            self._schema = fastavro.parse_schema(together, named)
            free = free_values(self._schema, named)
            # deeply nested data overflow the stack of compiled code; Python code has a recursion limit
            reader = "fastavro._read_py" if is_recursive(self._schema, named) else "fastavro"
        except Exception as error:  # fastavro has no base class for its errors
            raise KafkaError(f"the Avro schema is invalid: {type(error).__name__}: {error}") from None
        if free:
            raise KafkaError(f"the Avro schema has {free}, which no bytes limit")
        self._read = import_package(reader, "Avro", "decode").schemaless_reader

    @classmethod
    def from_file(cls, path: str) -> AvroDecoder:
        """Read the schema from an ``.avsc`` file."""
        return cls(read_schema_file(path).decode("utf-8", "replace"))

    def __call__(self, content: bytes) -> Any:
        """Return the datum. Raises DecodeError, also for bytes after the datum: a sign of another schema."""
        source = io.BytesIO(content)
        try:
            datum = self._read(source, self._schema, None)
        except Exception as error:  # fastavro raises errors of any type for wrong bytes
            raise DecodeError(f"it does not match the Avro schema: {_reason(error)}") from None
        if source.tell() < len(content):
            raise DecodeError(
                f"it is not of the Avro schema: {len(content) - source.tell()} bytes follow the datum"
            )
        return datum


def _reason(error: Exception) -> str:
    return "it ends too early" if isinstance(error, EOFError) else f"{type(error).__name__}: {error}"
