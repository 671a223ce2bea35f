"""Selects the records that match a predicate, a chunk of columns at a time.

The predicate is evaluated on whole columns, and the selected records are copied to other columns of the same
form, so that all code for columns also works on selected records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from txnkafka._core.columns import RecordColumns
from txnkafka._core.filter import filter_records
from txnkafka.record.chunk import ChunkDecoder
from txnkafka.record.predicate import ANY, Predicate, bind, bounds_of
from txnkafka.record.predicate_columns import mask_bytes, needs_copies, needs_headers

if TYPE_CHECKING:
    from txnkafka.model import TopicPartition

COPIED = frozenset(("key", "value", "headers"))


class RecordFilter:
    """Selects records of one partition. Its columns are reused like those of a decoder: while the caller
    keeps a view of the last chunk, the next one gets other memory."""

    def __init__(self, where: Predicate, topic_partition: TopicPartition) -> None:
        self.where = bind(where, topic_partition)
        self._columns: RecordColumns | None = None
        self._other: RecordColumns | None = None

    @property
    def selects_nothing(self) -> bool:
        """Return whether no record of the partition can match the predicate."""
        return bounds_of(self.where).empty

    def __call__(self, columns: RecordColumns) -> RecordColumns:
        """Return the columns with the selected records: ``columns`` itself if all are selected."""
        if self.where == ANY:
            return columns
        selected = mask_bytes(self.where, columns)
        if selected is None:
            return columns
        target = self._fresh_columns(columns)
        filter_records(columns, selected, target)
        return target

    def _fresh_columns(self, source: RecordColumns) -> RecordColumns:
        """Return columns that are not in use. A loop over chunks still refers to the last one, so two columns
        alternate."""
        self._columns, self._other = self._other, self._columns
        if self._columns is None or self._columns.in_use:
            self._columns = RecordColumns(headers=source.with_headers, views=source.views)
        return self._columns


def decoder_for(columns: Iterable[str], where: Predicate = ANY) -> ChunkDecoder:
    """Return a decoder for the named columns and the operands of a predicate. Without keys, values and
    headers it only checks records, and copies nothing."""
    copied = COPIED.intersection(columns)
    return ChunkDecoder(
        headers="headers" in copied or needs_headers(where), views=not (copied or needs_copies(where))
    )
