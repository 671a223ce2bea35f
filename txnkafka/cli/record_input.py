"""Records from text for ``txnkafka produce``: lines with delimiters as in kcat, or JSON lines as ``cat``
prints them. Pure functions over bytes."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from txnkafka.cli.output import json_text
from txnkafka.cli.record_template import parse_template
from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CHUNK: Final = 1 << 16


class InputRecord(NamedTuple):
    """A record to send; None where the producer decides."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None


def unescaped(text: str) -> bytes:
    r"""Return the bytes of a delimiter with the escapes ``\t``, ``\n`` and ``\xHH``. Raises ValueError."""
    return b"".join(each for each in parse_template(text.replace("%", "%%")) if isinstance(each, bytes))


def pieces(read: Callable[[int], bytes], delimiter: bytes) -> Iterator[list[bytes]]:
    """Yield the pieces between delimiters, as soon as they are read; a last piece may lack its delimiter."""
    rest = bytearray()
    while chunk := read(_CHUNK):
        begin = max(0, len(rest) - len(delimiter) + 1)
        rest += chunk
        if rest.find(delimiter, begin) >= 0:
            found = bytes(rest).split(delimiter)
            rest = bytearray(found.pop())
            yield found
    if rest:
        yield [bytes(rest)]


class Lines(NamedTuple):
    """The way from a line to a record. ``key_delimiter`` ends the key in the line; ``key`` is for lines
    without a key. ``has_nulls``: an empty key or value is null."""

    key_delimiter: bytes | None = None
    key: bytes | None = None
    has_nulls: bool = False

    def record(self, line: bytes) -> tuple[bytes | None, bytes | None]:
        """Return key and value of a line."""
        key, value = self.key, line
        if self.key_delimiter is not None:
            before, delimiter, after = line.partition(self.key_delimiter)
            if delimiter:
                key, value = before, after
        if self.has_nulls:
            return key or None, value or None
        return key, value


def json_record(line: bytes, number: int) -> InputRecord:
    """Return the record in line ``number`` of JSON lines. Key and value are text, base64 with the field
    ``key_encoding`` or ``value_encoding``, null, or other JSON, which is written as text. Fields
    other than these, headers and timestamp describe another topic, and are ignored. Raises KafkaError."""
    try:
        row = json.loads(line)
        if not isinstance(row, dict):
            raise TypeError("it is no object")
        headers = tuple((str(name), _content(value, None)) for name, value in row.get("headers") or ())
        return InputRecord(
            _content(row.get("key"), row.get("key_encoding")),
            _content(row.get("value"), row.get("value_encoding")),
            headers,
            row.get("timestamp"),
        )
    except (ValueError, TypeError) as error:
        raise KafkaError(f"line {number} is no record in JSON: {error}") from None


def _content(value: Any, encoding: str | None) -> bytes | None:
    if isinstance(value, dict) and value.keys() == {"base64"}:
        value, encoding = value["base64"], "base64"
    if value is None:
        return None
    if not isinstance(value, str):
        return json_text(value).encode()
    return b64decode(value, validate=True) if encoding == "base64" else value.encode()
