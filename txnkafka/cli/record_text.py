"""Formats records for ``cat``.

The compiled core formats columns as JSON lines and CSV, a chunk at a time. Text for people, templates and
decoded records are formatted from Python objects, one record at a time.
"""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from txnkafka._core.text import FIELDS, TextWriter
from txnkafka.cli.decoded_content import Decoded, Undecoded, plain
from txnkafka.cli.output import json_text, printable
from txnkafka.cli.record_template import Template, template_lines
from txnkafka.errors import DecodeError
from txnkafka.logdir.decoded import Decode, decoded
from txnkafka.record.batch import Record, records_of
from txnkafka.shown import iso_time, plain_name

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from txnkafka._core.columns import RecordColumns
    from txnkafka.model import TopicPartition

Text = Callable[["RecordColumns"], "Iterable[Buffer]"]


class Printing(NamedTuple):
    """The format of records. ``decode_errors``: ``stop``, or ``raw``, which prints undecodable bytes as they
    are and counts them."""

    format: str | Template = "jsonl"
    encoding: Literal["utf8", "base64"] = "utf8"
    fields: tuple[str, ...] = FIELDS
    decode_key: Decode | None = None
    decode_value: Decode | None = None
    decode_errors: str = "stop"

    @property
    def decodes(self) -> bool:
        """True if keys or values are decoded."""
        return self.decode_key is not None or self.decode_value is not None


class RecordText:
    """Turns the columns of a partition into text. ``failed`` counts keys and values that could not be
    decoded."""

    def __init__(self, printing: Printing) -> None:
        self.failed = 0
        self._printing = printing

    @property
    def header(self) -> bytes:
        """Return the text before the first record."""
        printing = self._printing
        if printing.format != "csv":
            return b""
        return TextWriter("", 0, encoding=printing.encoding, fields=printing.fields).csv_header

    def of(self, topic_partition: TopicPartition) -> Text:
        """Return the function that formats the columns of one partition."""
        printing = self._printing
        if printing.format == "csv" or (printing.format == "jsonl" and not printing.decodes):
            return self._compiled(topic_partition)
        lines = record_lines(topic_partition, printing)
        return lambda columns: lines(self._decoded(records_of(columns), topic_partition))

    def _compiled(self, topic_partition: TopicPartition) -> Text:
        printing = self._printing
        terminal = printing.format == "csv" and sys.stdout.isatty()
        writer = TextWriter(
            *topic_partition, encoding=printing.encoding, terminal=terminal, fields=printing.fields
        )
        return writer.csv_rows if printing.format == "csv" else writer.json_lines

    def _decoded(self, records: Iterable[Record], topic_partition: TopicPartition) -> Iterable[Record]:
        if not self._printing.decodes:
            return records
        key, value = self._printing.decode_key, self._printing.decode_value
        return (
            record._replace(
                key=self._content(key, record.key, (topic_partition, record.offset, "key")),
                value=self._content(value, record.value, (topic_partition, record.offset, "value")),
            )
            for record in records
        )

    def _content(
        self, decode: Decode | None, content: bytes | None, place: tuple[TopicPartition, int, str]
    ) -> Any:
        if decode is None or content is None:
            return content
        try:
            return Decoded(decoded(lambda content: _plain(decode(content)), content, place))
        except DecodeError as error:
            if self._printing.decode_errors == "stop":
                raise
            self.failed += 1
            return Undecoded(content, error.reason)


def _plain(content: object) -> object:
    try:
        return plain(content)
    except RecursionError:
        raise DecodeError("it is nested too deeply") from None


Lines = Callable[[Iterable[Record]], Iterator[bytes]]


def record_lines(topic_partition: TopicPartition, printing: Printing) -> Lines:
    """Return the function that formats records of one partition, but not as CSV."""
    if printing.format == "jsonl":
        return _json_lines(topic_partition, printing)
    if printing.format == "text":
        return _text_lines(topic_partition, printing.encoding)
    template: Any = printing.format
    return template_lines(template, topic_partition, encoding=printing.encoding, terminal=sys.stdout.isatty())


def _json_lines(topic_partition: TopicPartition, printing: Printing) -> Lines:
    topic, partition = plain_name(topic_partition.topic), topic_partition.partition

    def line(record: Record) -> bytes:
        row = {
            "topic": topic,
            "partition": partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestamp_type": record.timestamp_type.label,
            **_blob("key", record.key, printing.encoding),
            **_blob("value", record.value, printing.encoding),
            "headers": [[name, _header(value, printing.encoding)] for name, value in record.headers],
            "leader_epoch": record.leader_epoch,
        }
        chosen = {name: value for name, value in row.items() if _field_of(name) in printing.fields}
        return json_text(chosen).encode() + b"\n"

    return lambda records: map(line, records)


def _field_of(name: str) -> str:
    return name.removesuffix("_encoding").removesuffix("_error")


def _blob(name: str, value: object, encoding: str) -> dict[str, object]:
    """Return the JSON fields of a key or value; without a decoder, the same as the compiled core writes."""
    if isinstance(value, Decoded):
        return {name: value.content}
    if isinstance(value, Undecoded):
        return {**_blob(name, value.content, encoding), f"{name}_error": value.reason}
    if not isinstance(value, bytes):
        return {name: None}
    if encoding == "utf8":
        try:
            return {name: value.decode()}
        except UnicodeDecodeError:
            return {name: b64encode(value).decode(), f"{name}_encoding": "base64"}
    return {name: b64encode(value).decode()}


def _header(value: bytes | None, encoding: str) -> object:
    found = _blob("header", value, encoding)
    return {"base64": found["header"]} if "header_encoding" in found else found["header"]


def _text_lines(topic_partition: TopicPartition, encoding: str) -> Lines:
    name = printable(str(topic_partition))

    def line(record: Record) -> bytes:
        headers = " ".join(f"{printable(name)}={_shown(value, encoding)}" for name, value in record.headers)
        text = (
            f"{name}@{record.offset} {iso_time(record.timestamp)} "
            f"{_shown(record.key, encoding)} {_shown(record.value, encoding)}"
        )
        return f"{text} {headers}".rstrip().encode("utf-8", "backslashreplace") + b"\n"

    return lambda records: map(line, records)


def _shown(value: object, encoding: str) -> str:
    """Return a quoted string, ``null``, ``base64:`` with the encoded bytes, or JSON of decoded content."""
    if isinstance(value, Decoded):
        return printable(json_text(value.content))
    if isinstance(value, Undecoded):
        value = value.content
    if not isinstance(value, bytes):
        return "null"
    if encoding == "utf8":
        try:
            return printable(json_text(value.decode()))
        except UnicodeDecodeError:
            pass  # not text
    return f"base64:{b64encode(value).decode()}"
