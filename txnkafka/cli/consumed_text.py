"""Writes consumed records to stdout: columns by the compiled core where it knows the format, records one by
one."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING

from txnkafka.cli.record_text import RecordText, record_lines
from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txnkafka._core.columns import RecordColumns
    from txnkafka.cli.record_text import Lines, Printing, Text
    from txnkafka.client.consumer import ConsumerRecord


class ConsumedText:
    """Writes records of all partitions in one format, but not as CSV. ``prefers_columns``: the compiled core
    formats columns."""

    def __init__(self, printing: Printing) -> None:
        self.prefers_columns = printing.format == "jsonl"
        self._printing = printing
        self._text = RecordText(printing)
        self._lines: dict[TopicPartition, Lines] = {}
        self._columns: dict[TopicPartition, Text] = {}

    def write_records(self, records: Sequence[ConsumerRecord]) -> None:
        """Write records, of several partitions."""
        for place, some in groupby(records, _place):
            lines = self._lines.get(place)
            if lines is None:
                lines = self._lines[place] = record_lines(place, self._printing)
            sys.stdout.buffer.write(b"".join(lines(some)))  # type: ignore[arg-type]  # the same attributes

    def write_columns(self, found: Iterable[tuple[TopicPartition, RecordColumns]]) -> int:
        """Write decoded columns; return the number of records."""
        count = 0
        for place, columns in found:
            text = self._columns.get(place)
            if text is None:
                text = self._columns[place] = self._text.of(place)
            for part in text(columns):
                sys.stdout.buffer.write(part)
            count += len(columns)
        return count


def _place(record: ConsumerRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)
