"""Encodes rows as finished record batches of magic 2, with the encoder of the producer."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from txnkafka.client.producer.columns import by_partition, columns_to_send, key_partitions
from txnkafka.errors import MessageTooLargeError
from txnkafka.shown import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from txnkafka.client.producer.columns import SendColumns
    from txnkafka.record.builder import RecordBatchBuilder

WINDOW_BYTES: Final = 16 << 20
"""Rows that are encoded together, so that each partition gets large batches."""


class TopicLayout(NamedTuple):
    """A topic of the target. ``max_message_bytes`` is its setting: the largest batch that it takes."""

    partitions: int
    max_message_bytes: int


class EncodedBatch(NamedTuple):
    """A record batch for one partition."""

    topic: str
    partition: int
    content: bytearray
    records: int


class RowEncoder:
    """Encodes the rows of one task. ``first`` begins the sequence of partitions for rows without key and
    partition, one partition per window. Rows without a timestamp get ``now_ms``."""

    def __init__(
        self, topic: str | None, layouts: Mapping[str, TopicLayout], builder: RecordBatchBuilder, *,
        now_ms: int, first: int = 0, window_bytes: int = WINDOW_BYTES,
    ) -> None:  # fmt: skip
        self._topic = topic
        self._layouts = layouts
        self._builder = builder
        self._now_ms = now_ms
        self._next = first
        self._window_bytes = window_bytes

    def encode(self, rows: Iterable[pa.RecordBatch]) -> Iterator[EncodedBatch]:
        """Yield the batches of rows. The rows of a partition stay in their order.

        Raises ValueError for a topic or partition that the target does not have and for a null topic;
        MessageTooLargeError."""
        for window in windows(rows, self._window_bytes):
            for topic, table in self._by_topic(window):
                yield from self._encode(topic, table)
            self._next += 1

    def _by_topic(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        if self._topic is not None:
            yield self._topic, rows
            return
        topics = rows.column("topic")
        if topics.null_count:
            raise ValueError("a row has no topic: fill the column topic, or give the option topic")
        names = pc.unique(topics).to_pylist()
        for name in names:
            yield name, rows if len(names) == 1 else rows.filter(pc.equal(topics, name))

    def _encode(self, topic: str, rows: pa.Table) -> Iterator[EncodedBatch]:
        layout = self._layouts.get(topic)
        if layout is None:
            raise ValueError(unknown_topic(topic))
        columns = self._columns(rows)
        partitions = self._partitions(topic, layout.partitions, rows, columns)
        columns, parts = by_partition(columns, partitions, layout.partitions)
        source = columns.input()
        for partition, start, stop in parts:
            try:
                for content in columns.cut(source, start, stop, layout.max_message_bytes):
                    yield EncodedBatch(topic, partition, content.encode(self._builder), content.count)
            except MessageTooLargeError as error:
                raise MessageTooLargeError(
                    f"{topic}-{partition}: {error}; the limit is max.message.bytes of the topic"
                ) from None

    def _columns(self, rows: pa.Table) -> SendColumns:
        given = {name: rows.column(name) for name in ("key", "value", "headers") if name in rows.column_names}
        return columns_to_send(
            given.get("key"), given["value"], self._timestamps(rows), given.get("headers"), self._now_ms
        )

    def _timestamps(self, rows: pa.Table) -> pa.Array | None:
        if "timestamp" not in rows.column_names:
            return None
        milliseconds = rows.column("timestamp").cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        return milliseconds.fill_null(self._now_ms)

    def _partitions(self, topic: str, count: int, rows: pa.Table, columns: SendColumns) -> memoryview:
        """Return the partition of each row: its own, by the hash of its key as in Java, or the next one."""
        default = self._next % count
        if columns.keys is None:
            chosen = memoryview(array("i", [default]) * columns.count)
        else:
            chosen = key_partitions(columns, count, default)
        if "partition" not in rows.column_names:
            return chosen
        given = rows.column("partition").combine_chunks()
        bounds = pc.min_max(given).as_py()
        for number in bounds.values():
            if number is not None and not 0 <= number < count:
                raise ValueError(f"{topic} has no partition {number}: it has 0 to {count - 1}")
        if given.null_count:
            others = pa.Array.from_buffers(pa.int32(), len(rows), [None, pa.py_buffer(chosen)])
            given = pc.coalesce(given, others)
        return memoryview(array("i", given.to_numpy().tobytes()))


def windows(rows: Iterable[pa.RecordBatch], window_bytes: int) -> Iterator[pa.Table]:
    """Yield tables of about ``window_bytes``, with one chunk per column."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in rows:
        if batch.num_rows:
            waiting.append(batch)
            size += batch.nbytes
        if size >= window_bytes:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting).combine_chunks()


def unknown_topic(topic: str) -> str:
    """Return the text of the error about a topic that the target does not have."""
    return (
        f"the target has no topic {printable(topic)}: create it first (Admin.create_topic, txnkafka topics)"
    )
