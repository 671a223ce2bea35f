"""Prints one partition for ``cat``: plans the read, formats the records, and reports what was left out.

The compiled core formats columns as text, a chunk at a time. An error in one partition is reported and does
not affect the others.
"""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from txnkafka._core.text import TextWriter
from txnkafka.cli.output import json_text, printable
from txnkafka.cli.read_options import notes, where
from txnkafka.cli.times import iso_time
from txnkafka.errors import CorruptRecordError, KafkaError
from txnkafka.logdir import ReadRequest, read_unit
from txnkafka.record.batch import Record, records_of
from txnkafka.record.chunk import ChunkDecoder

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from txnkafka._core.columns import RecordColumns
    from txnkafka.cli.output import Messages
    from txnkafka.logdir import Finding, LogDir, PartitionView
    from txnkafka.model import TopicPartition

__all__ = ["Printer", "Printing"]

FINDINGS, COULD_NOT = 1, 2
HELD_BACK = "undecided-transaction"


class Printing(NamedTuple):
    """The number of records to print in all, and their format."""

    max_records: int | None
    format: str
    encoding: Literal["utf8", "base64"]


class Printer:
    """Prints one partition after the other; ``max_records`` counts across them."""

    def __init__(self, request: ReadRequest, printing: Printing, messages: Messages) -> None:
        skip = request.on_corrupt == "skip"
        self._request = replace(request, on_corrupt=self._left_out) if skip else request
        self._printing = printing
        self._messages = messages
        self._decoder = ChunkDecoder(headers=True)
        self._left = printing.max_records
        self._status = 0
        self._last_left_out = ""
        if printing.format == "csv":
            sys.stdout.buffer.write(TextWriter("", 0, encoding=printing.encoding).csv_header)

    def print_partition(self, log_dir: LogDir, topic_partition: TopicPartition) -> int:
        """Print the records of a partition; returns the exit status."""
        self._status = 0
        if self._left == 0:
            return 0
        try:
            view = log_dir.partition(*topic_partition)
            try:
                self._print(view)
            finally:
                view.close()
        except CorruptRecordError as error:
            self._fail(FINDINGS, f"{where(error)}; --on-corrupt skip reads on behind it")
        except KafkaError as error:
            self._fail(COULD_NOT, str(error))
        return self._status

    def _fail(self, status: int, text: str) -> None:
        self._status = max(self._status, status)
        self._messages.error(text)

    def _print(self, view: PartitionView) -> None:
        self._say_where_it_ends(view)
        request = view.located(self._request)
        if request is None:
            return
        text = _text_of(view.topic_partition, self._printing)
        count = 0
        for columns in self._limited(view, request):
            count += len(columns)
            for piece in text(columns):
                sys.stdout.buffer.write(piece)
        self._messages.detail(f"{view.topic_partition}: {count} record{'s' * (count != 1)}")

    def _limited(self, view: PartitionView, request: ReadRequest) -> Iterator[RecordColumns]:
        """Yield the columns to print, with no more records than ``max_records`` still allows."""
        for columns in self._read(view, request):
            if self._left is not None and len(columns) > self._left:
                yield from self._beginning(view, columns)
                return
            yield columns
            if self._left is not None:
                self._left -= len(columns)
                if self._left == 0:
                    return

    def _beginning(self, view: PartitionView, columns: RecordColumns) -> Iterator[RecordColumns]:
        """Yield only the first records of a chunk that has too many: columns cannot be cut, so they are read
        again."""
        left, self._left = self._left or 0, 0
        offsets = memoryview(columns.offsets)
        start, end = offsets[0], offsets[left - 1] + 1
        offsets.release()
        level = self._request.isolation_level
        request = ReadRequest(isolation_level=level, start_offset=start, end_offset=end)
        for part in view.columns(request, self._decoder):
            yield part
            left -= len(part)
            if left <= 0:
                return

    def _read(self, view: PartitionView, request: ReadRequest) -> Iterator[RecordColumns]:
        found: list[Finding] = []
        units = view.units(request, findings=found)
        for finding in found:
            # read_uncommitted reads open transactions, too
            if request.read_committed or finding.code != HELD_BACK:
                self._report(finding, view)
        by_path = {segment.path: segment for segment in view.segments}
        for unit in units:
            yield from read_unit(by_path[unit.path], unit, self._decoder, request.damage_handler)

    def _left_out(self, error: CorruptRecordError) -> None:
        text = where(error)
        if text != self._last_left_out:  # a search by time may have reported it before
            self._fail(FINDINGS, f"left out: {text}")
        self._last_left_out = text

    def _report(self, finding: Finding, view: PartitionView) -> None:
        self._messages.finding(finding, str(view.topic_partition))
        if finding.severity == "error":
            self._status = max(self._status, FINDINGS)

    def _say_where_it_ends(self, view: PartitionView) -> None:
        for finding in view.tail_findings:
            self._report(finding, view)
        for note in notes(view, self._request):
            self._messages.note(note)


def _text_of(
    topic_partition: TopicPartition, printing: Printing
) -> Callable[[RecordColumns], Iterable[Buffer]]:
    if printing.format == "text":
        return lambda columns: _lines(topic_partition, records_of(columns), printing.encoding)
    terminal = printing.format == "csv" and sys.stdout.isatty()
    writer = TextWriter(*topic_partition, encoding=printing.encoding, terminal=terminal)
    return writer.csv_rows if printing.format == "csv" else writer.json_lines


def _lines(topic_partition: TopicPartition, records: Iterable[Record], encoding: str) -> Iterator[bytes]:
    name = printable(str(topic_partition))
    for record in records:
        headers = " ".join(f"{printable(name)}={_shown(value, encoding)}" for name, value in record.headers)
        line = (
            f"{name}@{record.offset} {iso_time(record.timestamp)} "
            f"{_shown(record.key, encoding)} {_shown(record.value, encoding)}"
        )
        yield f"{line} {headers}".rstrip().encode("utf-8", "backslashreplace") + b"\n"


def _shown(value: bytes | None, encoding: str) -> str:
    """Return a quoted string, ``null``, or ``base64:`` with the encoded bytes."""
    if value is None:
        return "null"
    if encoding == "utf8":
        try:
            return printable(json_text(value.decode()))
        except UnicodeDecodeError:
            pass  # not text
    return f"base64:{b64encode(value).decode()}"
