"""Writes the rows of one unit to files, by date and in the order of the log.

Rows are written in chunks: a chunk with a single date, the usual case, is written whole; numpy divides the
others. Record batches are collected into row groups of ROW_GROUP_BYTES; they share the memory of the
decoder's columns, which is released when the row group is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import quote

from txnkafka._core.text import TextWriter
from txnkafka.record.arrow import arrow_schema, to_arrow
from txnkafka.shown import plain_name

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from txnkafka import env
    from txnkafka._core.columns import RecordColumns
    from txnkafka.export.options import ExportOptions
    from txnkafka.model import TopicPartition

ROW_GROUP_BYTES = 64 << 20  # size of columns in memory; parallel readers share a file by row groups
MAX_OPEN_FILES = 32
DAY_MS = 86_400_000
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31: the range of dates that readers accept
NO_DAY = LAST_DAY + 1  # all days outside of the calendar
NO_DATE = "__HIVE_DEFAULT_PARTITION__"  # null in a directory name, for Hive, Spark and Arrow
LONGEST_TOPIC = 200  # characters; a file name has at most 255 bytes, with numbers and suffixes
UNIQUE_COLUMNS = frozenset(("value", "offset", "timestamp"))  # nearly all values differ: no dictionary
ORDERED_COLUMNS = ("offset", "timestamp", "partition", "topic")  # readers use the minimum and maximum

Day = int | None


class ExportedFile(NamedTuple):
    """A finished file: ``path`` is its final place below the output directory, ``staged`` its place below the
    folder of staged units until it is published.

    ``partition`` has the values in the directory names; None is a null."""

    path: str
    staged: str
    rows: int
    size: int
    partition: dict[str, str | None]


class _Writer(Protocol):
    """Protocol of an open file in one of the formats."""

    rows: int
    pending_bytes: int

    def add(self, columns: RecordColumns, rows: NDArray[Any] | None) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...


class UnitFiles:
    """Writes the rows of one unit to files in a staging folder; publishing is a later step."""

    def __init__(
        self, files: env.DataFiles, folder: str, topic_partition: TopicPartition, options: ExportOptions
    ) -> None:
        """``folder`` is the folder of one attempt at the unit, in the folder of staged units."""
        self._files = files
        self._folder = folder
        self._topic_partition = topic_partition
        self._options = options
        self._open: dict[Day, tuple[str, _Writer]] = {}
        self._done: list[ExportedFile] = []
        self._new_writer = self._writers()

    def add(self, columns: RecordColumns) -> None:
        """Add the rows of a chunk. The caller may reuse the columns unless a view of them is kept."""
        for day, rows in self._days(columns):
            if day not in self._open:
                self._begin(day, columns, rows)
            self._open[day][1].add(columns, rows)
        writers = [writer for _, writer in self._open.values()]
        if sum(writer.pending_bytes for writer in writers) > ROW_GROUP_BYTES:
            max(writers, key=lambda writer: writer.pending_bytes).flush()

    def finish(self) -> list[ExportedFile]:
        """Close all files and sync them."""
        for day in list(self._open):
            self._end(day)
        if self._done:
            self._files.sync_directory(self._folder)
        return self._done

    def close(self) -> None:
        """Close open files after an error, without finishing them."""
        for _, writer in self._open.values():
            writer.abandon()

    def _days(self, columns: RecordColumns) -> Iterator[tuple[Day, NDArray[Any] | None]]:
        """Yield each day with its row numbers; None means all rows. All days outside the calendar count as
        one day. Without division by date, Iceberg gets two groups, days inside and outside the calendar,
        because pyiceberg cannot read statistics of times outside it."""
        by_date = "date" in self._options.partition_by
        if not by_date and self._options.to != "iceberg":
            yield None, None
            return
        import numpy as np

        days = np.asarray(columns.timestamps) // DAY_MS
        has_date = (days >= FIRST_DAY) & (days <= LAST_DAY)
        days = np.where(has_date, days if by_date else 0, NO_DAY)
        first, last = int(days.min()), int(days.max())
        if first == last:
            yield first, None
            return
        for day in np.unique(days).tolist():
            yield day, np.flatnonzero(days == day)

    def _begin(self, day: Day, columns: RecordColumns, rows: NDArray[Any] | None) -> None:
        if len(self._open) >= MAX_OPEN_FILES:
            self._end(next(iter(self._open)))
        with memoryview(columns.offsets) as offsets:
            first_offset = offsets[0 if rows is None else int(rows[0])]
        name = f"{self._topic_partition.partition}-{first_offset:020}"
        if "topic" not in self._options.partition_by:
            name += f"-{_short(_quoted(self._topic_partition.topic))}"
        name += f".{self._options.to if self._options.is_text else 'parquet'}"
        self._open[day] = name, self._new_writer(self._staged(name), day)

    def _end(self, day: Day) -> None:
        file_name, writer = self._open.pop(day)
        writer.close()
        staged = self._staged(file_name)
        with closing(self._files.open_to_write(staged)) as written:  # written by Arrow
            written.sync()
            size = written.size()
        partition = self._partition(day)
        folders = [f"{name}={_quoted(value or NO_DATE)}" for name, value in partition.items()]
        path, waiting = "/".join([*folders, file_name]), "/".join(staged.split("/")[-2:])
        self._done.append(ExportedFile(path, waiting, writer.rows, size, partition))

    def _staged(self, name: str) -> str:
        """Return the name of a staged file, which must not match ``**/*.parquet``."""
        return self._files.join(self._folder, f"{name}.staged")

    def _partition(self, day: Day) -> dict[str, str | None]:
        topic = plain_name(self._topic_partition.topic)  # as in the column: readers use it as one
        values = {"topic": topic, "date": None if day is None else _date(day)}
        return {name: values[name] for name in self._options.partition_by}

    def _writers(self) -> Callable[[str, Day], _Writer]:
        options = self._options
        if options.is_text:
            writer = TextWriter(*self._topic_partition, encoding=options.encoding)  # type: ignore[arg-type]
            return lambda path, _: _TextFile(self._files.create(path), writer, options.to)
        unit = "ms" if options.to == "parquet" else "us"  # table formats only have microseconds
        schema = arrow_schema(options.file_columns, timestamp_unit=unit)
        iceberg = options.to == "iceberg"

        def parquet_file(path: str, day: Day) -> _Writer:
            hidden = "timestamp" if iceberg and day == NO_DAY else ""
            ordered = [name for name in schema.names if name in ORDERED_COLUMNS and name != hidden]
            return _ParquetFile(path, self._topic_partition, schema, options.compression, ordered)

        return parquet_file


def _quoted(name: str) -> str:
    """Quote a value for a path: characters that Hive, Spark and Arrow would interpret are percent-encoded."""
    return quote(name, safe="", errors="surrogateescape")


def _short(name: str) -> str:
    """Return a name of at most LONGEST_TOPIC characters; replace the end of a longer name by its hash."""
    if len(name) <= LONGEST_TOPIC:
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
    return f"{name[: LONGEST_TOPIC - len(digest) - 1]}-{digest}"


def _date(day: int) -> str | None:
    import numpy as np

    return str(np.datetime64(day, "D")) if FIRST_DAY <= day <= LAST_DAY else None


class _ParquetFile:
    """Writes one Parquet file; the rows added since the last flush become a row group."""

    def __init__(
        self,
        path: str,
        topic_partition: TopicPartition,
        schema: pa.Schema,
        compression: str,
        ordered: list[str],
    ) -> None:
        """Open the file; the columns in ``ordered`` get statistics."""
        import pyarrow.parquet as pq

        self.rows = self.pending_bytes = 0
        self._topic_partition = topic_partition
        self._schema = schema
        self._pending: list[pa.RecordBatch] = []
        names = schema.names
        self._writer = pq.ParquetWriter(
            path,
            schema,
            compression=compression,
            use_dictionary=_leaves(name for name in names if name not in UNIQUE_COLUMNS),
            write_statistics=ordered,
            column_encoding={
                name: "DELTA_BINARY_PACKED" for name in ("offset", "timestamp") if name in names
            },
        )

    def add(self, columns: RecordColumns, rows: NDArray[Any] | None) -> None:
        import pyarrow as pa

        batch = to_arrow(columns, self._topic_partition, self._schema)
        if rows is not None:
            # contiguous rows are used in place, scattered ones are copied
            is_run = rows[-1] - rows[0] + 1 == len(rows)
            batch = batch.slice(int(rows[0]), len(rows)) if is_run else batch.take(pa.array(rows))
        self._pending.append(batch)
        self.rows += batch.num_rows
        self.pending_bytes += batch.nbytes

    def flush(self) -> None:
        import pyarrow as pa

        if self._pending:
            table = pa.Table.from_batches(self._pending, self._schema)
            self._writer.write_table(table, row_group_size=table.num_rows)
        self._pending.clear()
        self.pending_bytes = 0

    def close(self) -> None:
        self.flush()
        self._writer.close()

    def abandon(self) -> None:
        """Drop the writer; Arrow closes the file with its last reference."""


def _leaves(names: Iterator[str]) -> list[str]:
    """Return the Parquet paths of these columns: the paths of their leaves."""
    inner = {"headers": ["headers.list.element.key", "headers.list.element.value"]}
    return [leaf for name in names for leaf in inner.get(name, [name])]


class _TextFile:
    """Writes lines of JSON, or CSV with a header line."""

    pending_bytes = 0

    def __init__(self, file: env.DataFile, writer: TextWriter, form: str) -> None:
        self.rows = 0
        self._size = 0
        self._file = file
        self._lines = writer.csv_rows if form == "csv" else writer.json_lines
        if form == "csv":
            self._write(writer.csv_header)

    def add(self, columns: RecordColumns, rows: NDArray[Any] | None) -> None:
        for start, stop in _runs(rows, len(columns)):
            for piece in self._lines(columns, start, stop):
                self._write(piece)
            self.rows += stop - start

    def _write(self, piece: env.Bytes) -> None:
        self._file.write(self._size, [piece])
        self._size += len(piece)

    def flush(self) -> None:
        """Do nothing: text is written immediately."""

    def close(self) -> None:
        self._file.close()

    abandon = close


def _runs(rows: NDArray[Any] | None, count: int) -> Iterator[tuple[int, int]]:
    """Divide row numbers into ranges [start, stop) of consecutive rows."""
    if rows is None:
        yield 0, count
        return
    import numpy as np

    for run in np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1):
        yield int(run[0]), int(run[-1]) + 1
