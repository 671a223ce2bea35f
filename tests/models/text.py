"""Records as JSON lines, CSV rows and base64 lines, with the json, csv and base64 modules."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import unicodedata
from typing import NamedTuple

__all__ = ["CSV_HEADER", "TextRecord", "base64_line", "csv_row", "json_line", "utf8_as_java"]

CSV_HEADER = [
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
    "leader_epoch",
]
TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


class TextRecord(NamedTuple):
    """A record with header names as bytes."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes | None]]
    leader_epoch: int | None


def utf8_as_java(content: bytes) -> str:
    """Decode as ``new String(bytes, UTF_8)``: as Python does, but with one U+FFFD for a whole encoded
    surrogate."""
    return _SURROGATE.sub("\ufffd".encode(), content).decode("utf-8", "replace")


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _text(content: bytes, encoding: str) -> str | None:
    """Return the text of ``content``, None where only base64 can represent it."""
    try:
        return content.decode("utf-8") if encoding == "utf8" else None
    except UnicodeDecodeError:
        return None


def _field(name: str, content: bytes | None, encoding: str) -> dict[str, str | None]:
    text = None if content is None else _text(content, encoding)
    if content is None or text is not None:
        return {name: text}
    marker = {f"{name}_encoding": "base64"} if encoding == "utf8" else {}
    return {name: _base64(content), **marker}


def _header_value(content: bytes | None, encoding: str) -> object:
    if content is None:
        return None
    text = _text(content, encoding)
    if text is not None:
        return text
    return {"base64": _base64(content)} if encoding == "utf8" else _base64(content)


def _headers(record: TextRecord, encoding: str) -> list[list[object]]:
    return [[utf8_as_java(name), _header_value(value, encoding)] for name, value in record.headers]


def _dumps(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "".join(f"\\u{ord(each):04x}" if is_command(each) else each for each in text)


def is_command(character: str) -> bool:
    """Return whether Unicode classifies it as a control (DEL, C1, direction of writing) or a line separator;
    JSON escapes the others."""
    if character in "\u2028\u2029":
        return True
    bidirectional = unicodedata.bidirectional(character)
    marks = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return "\x7f" <= character <= "\x9f" or character in "\u061c\u200e\u200f" or bidirectional in marks


def json_line(topic: str, partition: int, record: TextRecord, encoding: str) -> bytes:
    """Encode one object with a line feed."""
    line = {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": TIMESTAMP_TYPES[record.timestamp_type],
        **_field("key", record.key, encoding),
        **_field("value", record.value, encoding),
        "headers": _headers(record, encoding),
        "leader_epoch": record.leader_epoch,
    }
    return _dumps(line).encode() + b"\n"


def csv_row(topic: str, partition: int, record: TextRecord, encoding: str) -> bytes:
    """Encode one row; text and headers are always quoted, null and numbers never."""
    fields = [
        _csv_plain(topic),
        partition,
        record.offset,
        record.timestamp,
        TIMESTAMP_TYPES[record.timestamp_type],
    ]
    contents = (record.key, record.value)
    fields += [_csv_content(content, encoding) for content in contents]
    headers = _dumps(_headers(record, encoding))
    fields.append(_quoted(headers) if record.headers else headers)
    fields.append("" if record.leader_epoch is None else record.leader_epoch)
    if encoding == "utf8":
        fields += ["base64" if c is not None and _text(c, encoding) is None else "" for c in contents]
    return ",".join(map(str, fields)).encode() + b"\r\n"


def _csv_content(content: bytes | None, encoding: str) -> str:
    if content is None:
        return ""
    text = _text(content, encoding)
    return _quoted(text) if text is not None or not content else _base64(content)


def _quoted(text: str | None) -> str:
    return '"' + (text or "").replace('"', '""') + '"'


def _csv_plain(text: str) -> str:
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow([text, "x"])
    return row.getvalue().removesuffix(",x")


def base64_line(content: bytes | None) -> bytes:
    r"""Encode base64 with a line feed, ``\N`` for null."""
    return b"\\N\n" if content is None else base64.b64encode(content) + b"\n"
