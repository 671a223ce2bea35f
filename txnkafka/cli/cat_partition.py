"""Prints partitions for ``cat``: plans the read, selects and formats records, reports omissions. An error in
one partition is reported and does not affect the others."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from txnkafka._core.columns import RecordColumns
from txnkafka._core.filter import filter_records
from txnkafka.cli.read_options import notes, where
from txnkafka.cli.record_text import Printing, RecordText
from txnkafka.errors import CorruptRecordError, DecodeError, FileChangedError, KafkaError
from txnkafka.logdir import ReadRequest, ReadUnit
from txnkafka.logdir.requested import located, read_units, unit_bytes, units_of
from txnkafka.record.chunk import ChunkDecoder

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.logdir import Finding, LogDir, PartitionView
    from txnkafka.model import TopicPartition

FINDINGS, COULD_NOT = 1, 2
HELD_BACK = "undecided-transaction"


class Printer:
    """Prints partitions in sequence; ``max_records`` limits their total. ``status`` is the exit status so
    far."""

    def __init__(
        self, request: ReadRequest, printing: Printing, messages: Messages, max_records: int | None = None
    ) -> None:
        skip = request.on_corrupt == "skip"
        self.request = replace(request, on_corrupt=self._left_out) if skip else request
        self.status = 0
        self._messages = messages
        self._new_decoder = partial(ChunkDecoder, headers=True)
        self._left = max_records
        self._last_left_out = ""
        self._text = RecordText(printing)
        sys.stdout.buffer.write(self._text.header)

    @property
    def is_full(self) -> bool:
        """True once ``max_records`` records were printed."""
        return self._left == 0

    def print_partition(self, log_dir: LogDir, topic_partition: TopicPartition) -> None:
        """Print the records of a partition; report errors instead of raising them."""
        if self.is_full:
            return
        try:
            with closing(log_dir.partition(*topic_partition)) as view:
                self._print(view)
        except FileChangedError as error:
            self.fail(COULD_NOT, str(error))
        except CorruptRecordError as error:
            self.fail(FINDINGS, f"{where(error)}; --on-corrupt skip reads on after it")
        except DecodeError as error:
            self.fail(FINDINGS, f"{error}; --decode-errors raw prints it as it is")
        except KafkaError as error:
            self.fail(COULD_NOT, str(error))

    def fail(self, status: int, text: str) -> None:
        """Report an error."""
        self.status = max(self.status, status)
        self._messages.error(text)

    def report(self, finding: Finding) -> None:
        """Report a finding in a partition."""
        self._messages.finding(finding)
        if finding.severity == "error":
            self.status = max(self.status, FINDINGS)

    def shown(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings relevant to the isolation level: read_uncommitted also reads open
        transactions."""
        return [each for each in findings if self.request.read_committed or each.code != HELD_BACK]

    def print_units(self, view: PartitionView, units: list[ReadUnit]) -> Iterator[int]:
        """Print the records of a partition's units; after each chunk, yield the offset up to which all are
        printed."""
        text = self._text.of(view.topic_partition)
        failed, count = self._text.failed, 0
        for columns in self._limited(read_units(view, units, self.request, self._new_decoder)):
            for piece in text(columns):
                sys.stdout.buffer.write(piece)
            count += len(columns)
            with memoryview(columns.offsets) as offsets:
                following = offsets[-1] + 1
            yield following
        self._messages.detail(f"{view.topic_partition}: {count} record{'s' * (count != 1)}")
        if self._text.failed > failed:
            what = f"{self._text.failed - failed} keys and values could not be decoded"
            self.fail(FINDINGS, f"{view.topic_partition}: {what}")

    def say_where_it_ends(self, view: PartitionView) -> None:
        """Write a note for each limit at which reading ends."""
        for note in notes(view, self.request):
            self._messages.note(note)

    def _print(self, view: PartitionView) -> None:
        for finding in view.findings:
            self.report(finding)
        self.say_where_it_ends(view)
        request = located(view, self.request)
        if request is None:
            return
        found: list[Finding] = []
        units = units_of(view, request, unit_bytes=unit_bytes(view), findings=found)
        for finding in self.shown(found):
            self.report(finding)
        for _ in self.print_units(view, units):
            pass

    def _limited(self, chunks: Iterator[RecordColumns]) -> Iterator[RecordColumns]:
        """Yield the columns to print, with no more records than ``max_records`` still allows."""
        for columns in chunks:
            if self._left is not None:
                columns, self._left = _first(columns, self._left), max(0, self._left - len(columns))
            yield columns
            if self.is_full:
                return

    def _left_out(self, error: CorruptRecordError) -> None:
        text = where(error)
        if text != self._last_left_out:  # a search by time may have reported this already
            self.fail(FINDINGS, f"left out: {text}")
        self._last_left_out = text


def _first(columns: RecordColumns, count: int) -> RecordColumns:
    """Return the first records of a chunk, at most ``count``."""
    if len(columns) <= count:
        return columns
    first = RecordColumns(headers=columns.with_headers, views=columns.views)
    filter_records(columns, b"\1" * count + bytes(len(columns) - count), first)
    return first
