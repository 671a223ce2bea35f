"""Keys and values in the format of Confluent's serializers, with schemas from a registry.

    0 (one byte), the id of the schema (4 bytes, big endian), [indexes of the message, of Protobuf], content

Two GETs of the registry's REST API suffice, ``/schemas/ids/…`` and ``/subjects/…/versions/…``, so the
standard library is enough. Schemas never change, so each is fetched once.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from txnkafka.decoding.avro import AvroDecoder
from txnkafka.decoding.json_text import JsonDecoder
from txnkafka.decoding.protobuf import ProtobufDecoder
from txnkafka.env.http import HttpSource, HttpStatusError
from txnkafka.errors import DecodeError, KafkaError

MAX_SCHEMAS: Final = 1_000  # in the cache; the ids in records are not trusted
MAX_TEXT: Final = 16 << 20  # characters of all cached schemas, and of one schema's references
MAX_REFERENCES: Final = 1_000
MAX_DEPTH: Final = 64  # levels of nested references
MAX_INDEXES: Final = 64
NOT_FOUND: Final = 404

Decode = Callable[[bytes], Any]
Key = tuple[int, tuple[int, ...]]
Name = tuple[str, int]  # subject and version


class RegistryDecoder:
    """Decodes Avro, Protobuf or JSON with the schema whose id precedes the content. ``address`` is the
    registry's; no other address is ever contacted."""

    def __init__(self, address: str) -> None:
        """Raise ValueError for an address that is not http or https."""
        self._source = HttpSource(address)
        self._decoders: OrderedDict[Key, Decode | DecodeError] = OrderedDict()
        self._schemas: OrderedDict[int, dict[str, Any]] = OrderedDict()

    def __call__(self, content: bytes) -> Any:
        """Return the content. Raises DecodeError, and KafkaError if the registry does not respond."""
        if len(content) < 5 or content[0] != 0:
            raise DecodeError("it does not begin with a zero byte and the id of a schema")
        schema_id, rest = int.from_bytes(content[1:5], "big"), content[5:]
        schema = self._schema(schema_id)
        indexes: tuple[int, ...] = ()
        if schema.get("schemaType") == "PROTOBUF":
            indexes, rest = _message_indexes(rest)
        return self._decoder(schema_id, indexes, schema)(rest)

    def _schema(self, schema_id: int) -> dict[str, Any]:
        found = self._schemas.get(schema_id)
        if found is None:
            found = self._fetch(f"/schemas/ids/{schema_id}", f"schema {schema_id}")
            _keep(self._schemas, schema_id, found)
            self._forget_large()
        if "missing" in found:
            raise DecodeError(found["missing"])
        return found

    def _forget_large(self) -> None:
        """Drop the oldest schemas and their decoders until the rest fits the limit."""
        while len(self._schemas) > 1 and sum(map(_size, self._schemas.values())) > MAX_TEXT:
            oldest, _ = self._schemas.popitem(last=False)
            for key in [key for key in self._decoders if key[0] == oldest]:
                del self._decoders[key]

    def _fetch(self, path: str, what: str) -> dict[str, Any]:
        """Return a schema with its type and references; a Protobuf schema as a descriptor."""
        try:
            found = self._get(path)
            if found.get("schemaType") == "PROTOBUF":
                found = self._get(f"{path}?format=serialized") | {"schemaType": "PROTOBUF"}
        except HttpStatusError as error:
            if error.status != NOT_FOUND:
                raise
            return {"missing": f"the registry {self._source.address} has no {what}"}
        return found

    def _get(self, path: str) -> dict[str, Any]:
        content = self._source.get(path)
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not isinstance(found.get("schema"), str):
            raise KafkaError(f"{self._source.address}{path} did not return a schema")
        return found

    def _decoder(self, schema_id: int, indexes: tuple[int, ...], schema: dict[str, Any]) -> Decode:
        key = schema_id, indexes
        found = self._decoders.get(key)
        if found is None:
            try:
                found = self._made(indexes, schema)
            except KafkaError as error:
                found = DecodeError(f"schema {schema_id}: {error}")
            _keep(self._decoders, key, found)
        if isinstance(found, DecodeError):
            raise DecodeError(found.reason)
        return found

    def _made(self, indexes: tuple[int, ...], schema: dict[str, Any]) -> Decode:
        kind, text = schema.get("schemaType", "AVRO"), schema["schema"]
        if kind == "JSON":
            return JsonDecoder()
        references = list(self._references(schema).values())
        if kind == "AVRO":
            return AvroDecoder(text, references)
        if kind == "PROTOBUF":
            return ProtobufDecoder([*map(_descriptor, references), _descriptor(text)], list(indexes))
        raise KafkaError(f"its type {kind} is unknown")

    def _references(self, schema: dict[str, Any]) -> dict[Name, str]:
        """Return the texts of all schemas that a schema refers to, dependencies first."""
        found: dict[Name, str] = {}
        self._collect(schema, found, set(), 0)
        return found

    def _collect(self, schema: dict[str, Any], found: dict[Name, str], seen: set[Name], depth: int) -> None:
        if depth > MAX_DEPTH:
            raise KafkaError("its references are nested too deeply")
        for name in _references_of(schema):
            if name in seen:
                continue
            seen.add(name)
            if len(seen) > MAX_REFERENCES:
                raise KafkaError(f"it refers to more than {MAX_REFERENCES} other schemas")
            path = f"/subjects/{quote(name[0], safe='', errors='replace')}/versions/{name[1]}"
            referred = self._fetch(path, f"version {name[1]} of {name[0]}")
            if "missing" in referred:
                raise KafkaError(referred["missing"])
            self._collect(referred, found, seen, depth + 1)
            found[name] = referred["schema"]
            if sum(map(len, found.values())) > MAX_TEXT:
                raise KafkaError(f"its references have more than {MAX_TEXT} characters")


def _references_of(schema: dict[str, Any]) -> list[Name]:
    """Return the subject and version of each direct reference of a schema."""
    try:
        names = [(each["subject"], each["version"]) for each in schema.get("references") or ()]
    except (TypeError, KeyError):
        names = [(None, None)]
    if not all(isinstance(subject, str) and isinstance(version, int) for subject, version in names):
        raise KafkaError("its references cannot be read")
    return names


def _descriptor(text: str) -> bytes:
    try:
        return b64decode(text)
    except ValueError as error:
        raise KafkaError(f"the Protobuf schema is invalid: {error}") from None


def _size(schema: dict[str, Any]) -> int:
    return len(schema.get("schema", ""))


def _keep(cache: OrderedDict[Any, Any], key: object, value: object) -> None:
    cache[key] = value
    if len(cache) > MAX_SCHEMAS:
        cache.popitem(last=False)


def _message_indexes(content: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the indexes of the message type, and the message bytes. A count of zero means [0]."""
    count, at = _varint(content, 0)
    if not 0 <= count <= MAX_INDEXES:
        raise DecodeError(f"{count} message indexes are impossible")
    indexes = []
    for _ in range(count):
        index, at = _varint(content, at)
        if index < 0:
            raise DecodeError(f"{index} is not the index of a message")
        indexes.append(index)
    return tuple(indexes) or (0,), content[at:]


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag varint, and the position after it."""
    value = 0
    for i, byte in enumerate(content[at : at + 5]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + i + 1
    raise DecodeError("the indexes of its message cannot be read")
