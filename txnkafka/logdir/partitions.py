"""Several partitions of a directory, such as all of a topic: their records, in tables and one by one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Unpack

from txnkafka.logdir.display import html_table
from txnkafka.logdir.partition import PartitionView
from txnkafka.logdir.read_request import Selection, request_of, takes_selection
from txnkafka.logdir.tables import Tables
from txnkafka.shown import counted

if TYPE_CHECKING:
    from txnkafka.logdir.decoded import Decode
    from txnkafka.model import TopicPartition
    from txnkafka.record.batch import Record


class PartitionTables(Tables):
    """Reads the records of several partitions, also one by one."""

    @abstractmethod
    def _views(self) -> Iterator[PartitionView]:
        """Yield the partitions to read, in order."""

    @takes_selection
    def records(
        self,
        *,
        decode_key: Decode | None = None,
        decode_value: Decode | None = None,
        **selection: Unpack[Selection],
    ) -> Iterator[tuple[TopicPartition, Record]]:
        """Yield (topic partition, record) of the selected records, partition by partition in offset order;
        otherwise like ``PartitionView.records``."""
        request_of(**selection)  # raise for a wrong keyword now, not at the first record
        return self._located_records(decode_key, decode_value, selection)

    def _located_records(
        self, decode_key: Decode | None, decode_value: Decode | None, selection: Selection
    ) -> Iterator[tuple[TopicPartition, Record]]:
        for view in self._views():
            for record in view.records(decode_key=decode_key, decode_value=decode_value, **selection):
                yield view.topic_partition, record


class Partitions(PartitionTables):
    """Some partitions of a directory, such as all of a topic."""

    def __init__(self, views: Sequence[PartitionView]) -> None:
        self._partitions = views

    def __repr__(self) -> str:
        return f"Partitions({', '.join(str(view.topic_partition) for view in self._partitions)})"

    def _repr_html_(self) -> str:
        """Return the names and paths of the partitions as a table, without reading them."""
        names = ("topic", "partition", "directory")
        rows = ((view.topic, view.partition, view.path) for view in self._partitions)
        return html_table(counted(len(self), "partition"), names, rows, len(self))

    def __iter__(self) -> Iterator[PartitionView]:
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def _views(self) -> Iterator[PartitionView]:
        for view in self._partitions:
            yield view
            view.close()
