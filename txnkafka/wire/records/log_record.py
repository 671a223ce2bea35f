"""``LogRecord``, a decoded record of one of Kafka's own logs, and the decoder of coordinators' records.

Decoding never raises: bytes that cannot be read are kept as raw bytes beside an ``error`` with the reason, so
that one bad record does not hide the others. Keys and values of the coordinators' logs each begin with an
int16: the type of the record in a key, the version of its fields in a value (``CoordinatorRecordSerde``); a
null value is a tombstone.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from txnkafka.wire.reader import UNKNOWN_TAGGED_FIELDS, read_message
from txnkafka.wire.schema import Message, SchemaError
from txnkafka.wire.writer import write_message

UNKNOWN_TYPE = "unknown"


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A decoded record: names are Kafka's in snake_case, uuids are text, structs are dictionaries.

    ``key_version`` is the number of the record's type: the version of a coordinator's key, the api key of a
    metadata record, the type of a control record.  ``key`` or ``value`` is None if the record has none or if
    it cannot be read; then ``error`` has the reason and ``raw_key`` or ``raw_value`` the bytes. Extra bytes
    after a value are an ``error``, next to the decoded ``value``."""

    type: str
    key_version: int | None = None
    key: dict[str, Any] | None = None
    value_version: int | None = None
    value: dict[str, Any] | None = None
    error: str | None = None
    raw_key: bytes | None = None
    raw_value: bytes | None = None

    @property
    def is_tombstone(self) -> bool:
        """Return whether the record of a coordinator deletes the object of its key."""
        has_key = self.key is not None or self.raw_key is not None
        return has_key and self.value is None and self.value_version is None and self.raw_value is None

    def as_dict(self) -> dict[str, Any]:
        """Return values for JSON: known bytes in base64 as in Kafka's own dumps, unknown bytes in hex."""
        shown: dict[str, Any] = {
            "type": self.type,
            "key_version": self.key_version,
            "key": _shown(self.key),
            "value_version": self.value_version,
            "value": _shown(self.value),
        }
        rest = {
            "error": self.error,
            "raw_key": None if self.raw_key is None else self.raw_key.hex(),
            "raw_value": None if self.raw_value is None else self.raw_value.hex(),
        }
        return shown | {name: value for name, value in rest.items() if value is not None}


class CoordinatorRecord(NamedTuple):
    """One record type of a coordinator's log, with the name of its value."""

    key: Message
    value: Message


def decode_coordinator_record(
    types: Mapping[int, CoordinatorRecord], key: bytes | None, value: bytes | None
) -> LogRecord:
    """Decode key and value by the tables of the key's type."""
    key_version, value_version = _version(key), _version(value)
    kind = None if key_version is None else types.get(key_version)
    if kind is None or key is None:
        return LogRecord(
            UNKNOWN_TYPE,
            key_version,
            value_version=value_version,
            error=_unknown_key(key, key_version),
            raw_key=key,
            raw_value=value,
        )
    key_fields, key_error = read_fields(kind.key, 0, key)
    value_fields, value_error = _read_value(kind.value, value_version, value)
    errors = [f"{part}: {error}" for part, error in (("key", key_error), ("value", value_error)) if error]
    return LogRecord(
        kind.value.name,
        key_version,
        key_fields,
        value_version,
        value_fields,
        "; ".join(errors) or None,
        key if key_error else None,
        value if value_error else None,
    )


def encode_coordinator_record(
    types: Mapping[int, CoordinatorRecord], record: LogRecord
) -> tuple[bytes, bytes | None]:
    """Return key and value, the inverse of ``decode_coordinator_record``; None is the value of a tombstone.
    Raises SchemaError for fields that do not follow the tables, and for a record that could not be
    decoded."""
    kind = None if record.key_version is None else types.get(record.key_version)
    if kind is None or record.key_version is None or record.type != kind.value.name:
        raise SchemaError(f"{record.type!r} is not the record of key type {record.key_version}")
    if record.error is not None or record.key is None:
        raise SchemaError(f"the {record.type} could not be decoded: {record.error or 'it has no key'}")
    key = encode_key(kind.key, record.key_version, record.key)
    if record.value is None and record.value_version is None:
        return key, None
    if record.value is None or record.value_version is None:
        raise SchemaError(f"the {record.type} has a value without a version, or a version without a value")
    return key, encode_value(kind.value, record.value_version, record.value)


def encode_key(message: Message, key_type: int, fields: dict[str, Any]) -> bytes:
    """Return the type of a record and the fields of its key. Raises SchemaError."""
    try:
        return key_type.to_bytes(2, "big") + write_message(message, 0, fields)
    except SchemaError as error:
        raise error.inside("key") from None


def encode_value(message: Message, version: int, fields: dict[str, Any]) -> bytes:
    """Return the version of a value and its fields. Raises SchemaError."""
    try:
        data = write_message(message, version, fields)
    except SchemaError as error:
        raise error.inside("value") from None
    return version.to_bytes(2, "big") + data


def read_fields(
    message: Message, version: int, data: bytes, position: int = 2
) -> tuple[dict[str, Any] | None, str | None]:
    """Return the fields, and an error or None; extra bytes are an error, but the fields are returned."""
    try:
        fields, position = read_message(message, version, data, position)
    except SchemaError as error:
        return None, str(error)
    left_over = len(data) - position
    return fields, f"{left_over} bytes are left over (byte {position})" if left_over else None


def _read_value(
    message: Message, version: int | None, value: bytes | None
) -> tuple[dict[str, Any] | None, str | None]:
    if value is None:
        return None, None
    if version is None:
        return None, f"{len(value)} bytes are too short for a version"
    return read_fields(message, version, value)


def _version(data: bytes | None) -> int | None:
    return None if data is None or len(data) < 2 else int.from_bytes(data[:2], "big", signed=True)


def _unknown_key(key: bytes | None, key_version: int | None) -> str:
    if key is None:
        return "the key is null"
    if key_version is None:
        return "the key is too short for a type"
    return f"key type {key_version} is not known"


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shown_field(name, part) for name, part in value.items()}
    if isinstance(value, list):
        return [_shown(part) for part in value]
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value


def _shown_field(name: str, value: Any) -> Any:
    if name == UNKNOWN_TAGGED_FIELDS:
        return [{"tag": tag, "hex": data.hex()} for tag, data in value]
    return _shown(value)
