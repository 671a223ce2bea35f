"""Output templates of ``cat``, with the letters of kcat: ``%o %k %s\\n``.

%t topic   %p partition   %o offset   %T timestamp in milliseconds   %h headers, name=value,…
%k key     %s value       %K %S their lengths, -1 for null           %R length of the value, 4 bytes
%% a percent sign         \\n \\r \\t \\\\ \\xHH
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from txnkafka.cli.decoded_content import Decoded, Undecoded
from txnkafka.cli.output import json_text
from txnkafka.model import TopicPartition
from txnkafka.record.batch import Record
from txnkafka.shown import plain_name, printable

LETTERS = "tpoTkKsSRh%"
_PART = re.compile(r"%(?P<letter>.)?|\\(?P<escape>x[0-9A-Fa-f]{2}|.)?|(?P<text>[^%\\]+)", re.DOTALL)
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}

Show = Callable[[bytes], bytes]


class Letter(NamedTuple):
    """A placeholder for a field of the record."""

    name: str


Template = list[bytes | Letter]


def parse_template(text: str) -> Template:
    """Parse a template. Raises ValueError for an unknown letter or escape."""
    return [_part(match) for match in _PART.finditer(text)]


def _part(match: re.Match[str]) -> bytes | Letter:
    if match["text"] is not None:
        return match["text"].encode("utf-8", "surrogateescape")
    if match[0].startswith("%"):
        letter = match["letter"]
        if letter is None or letter not in LETTERS:
            known = " ".join(f"%{each}" for each in LETTERS)
            raise ValueError(f"{match[0]} is not a field of a record; the fields are {known}")
        return b"%" if letter == "%" else Letter(letter)
    escape = match["escape"] or ""
    if escape.startswith("x") and len(escape) == 3:
        return bytes.fromhex(escape[1:])
    if escape not in _ESCAPES:
        raise ValueError(rf"unknown escape {match[0]}; supported: \n \r \t \\ \xHH")
    return _ESCAPES[escape]


def template_lines(
    template: Template, topic_partition: TopicPartition, *, encoding: str, terminal: bool
) -> Callable[[Iterable[Record]], Iterator[bytes]]:
    """Return a function that yields the text of each record. Keys, values and headers are raw bytes, or
    base64; on a terminal, characters that it might interpret as commands are escaped."""
    show: Show = b64encode if encoding == "base64" else (_shown if terminal else bytes)
    constant = {
        "t": printable(plain_name(topic_partition.topic)).encode(),
        "p": str(topic_partition.partition).encode(),
    }
    parts = [constant.get(part.name, part) if isinstance(part, Letter) else part for part in template]
    line = b"".join(b"%b" if isinstance(part, Letter) else part.replace(b"%", b"%%") for part in parts)
    field_of = _FIELDS | {"R": lambda record, _: _shown(_length_bytes(record))} if terminal else _FIELDS
    fields = [field_of[part.name] for part in parts if isinstance(part, Letter)]

    def lines(records: Iterable[Record]) -> Iterator[bytes]:
        for record in records:
            yield line % tuple([field(record, show) for field in fields])

    return lines


def _shown(content: bytes) -> bytes:
    return printable(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _content(value: object) -> bytes | None:
    """Return the bytes of a key or value; for decoded content, its JSON."""
    content: object = value.content if isinstance(value, Decoded | Undecoded) else value
    if content is None and value is None:
        return None
    return content if isinstance(content, bytes) else json_text(content).encode()


def _field(value: object, show: Show) -> bytes:
    content = value if isinstance(value, bytes) else _content(value)
    return b"" if content is None else show(content)


def _length(value: object) -> int:
    content = _content(value)
    return -1 if content is None else len(content)


def _length_bytes(record: Record) -> bytes:
    return _length(record.value).to_bytes(4, "big", signed=True)


def _headers(record: Record, show: Show) -> bytes:
    return b",".join(
        show(name.encode()) + b"=" + (b"NULL" if value is None else show(value))
        for name, value in record.headers
    )


_FIELDS: dict[str, Callable[[Record, Show], bytes]] = {
    "o": lambda record, _: b"%d" % record.offset,
    "T": lambda record, _: b"%d" % record.timestamp,
    "k": lambda record, show: _field(record.key, show),
    "s": lambda record, show: _field(record.value, show),
    "K": lambda record, _: b"%d" % _length(record.key),
    "S": lambda record, _: b"%d" % _length(record.value),
    "R": lambda record, _: _length_bytes(record),
    "h": _headers,
}
