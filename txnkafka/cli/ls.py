"""``txnkafka ls`` lists the topics and partitions of a log directory, with the first and last offsets of
their logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Command
from txnkafka.cli.output import FORMATS, Layout, write_json, write_table, write_text
from txnkafka.cli.progress import Progress
from txnkafka.cli.target import is_chosen, open_log_dir, readable_partitions, target_options
from txnkafka.shown import counted, iso_time, size

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.cli.target import Partitions, StorageOptions, Topics
    from txnkafka.logdir import LogDir, PartitionView, SegmentReader
    from txnkafka.logdir.directory_files import ReadMethod
    from txnkafka.model import TopicPartition

COULD_NOT = 2
Row = dict[str, Any]

PARTITION_COLUMNS = {
    "topic": "topic",
    "partition": "partition",
    "segments": "segments",
    "bytes": "size",
    "log_start_offset": "start",
    "log_end_offset": "end",
    "high_watermark": "hw",
    "last_stable_offset": "lso",
    "open_transactions": "open",
}
PARTITION_COLUMNS_WIDE = {**PARTITION_COLUMNS, "topic_id": "topic-id", "state": "state", "path": "path"}
SEGMENT_COLUMNS = {
    "topic": "topic",
    "partition": "partition",
    "base_offset": "base",
    "next_offset": "next",
    "bytes": "size",
    "batches": "batches",
    "max_time": "newest",
}
SEGMENT_COLUMNS_WIDE = {**SEGMENT_COLUMNS, "indexes": "files", "file": "file"}
NAMES = ("topic", "path", "file")
NARROW = Layout(NAMES, ("segments", "size", "batches", "start", "hw"))
WIDE = Layout(NAMES)


@click.command(cls=Command, short_help="List topics, partitions and segments.")
@target_options
@click.option("--segments", "with_segments", is_flag=True, help="List segments instead of partitions.")
@click.option("--format", "output_format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.pass_obj
def ls(
    messages: Messages,
    /,
    *,
    logdir: tuple[str, ...],
    topic: Topics,
    partition: Partitions,
    io: ReadMethod,
    storage_options: StorageOptions,
    with_segments: bool,
    output_format: str,
) -> int:
    """List the partitions in LOGDIR, one per row, or the segments with --segments.

    LOGDIR is a log directory, a copy of one, a single partition directory or a single .log file. Several
    count as directories of one broker. The list includes directories that a broker is moving or deleting.
    Kafka's own topics are left out unless --topic names one.

    Exit status: 1 when the end of a log is damaged, 2 when a partition could not be read."""
    with Progress(messages) as progress:
        log_dir = open_log_dir(logdir, io, messages, storage_options)
        lister = Lister(log_dir, messages, with_segments=with_segments)
        chosen = readable_partitions(log_dir, topic, partition)
        rows = list(lister.rows(progress.each(chosen)))
    if not topic and not partition and (left_out := len(log_dir.topic_partitions) - len(chosen)):
        verb, them = ("is", "it") if left_out == 1 else ("are", "them")
        messages.note(
            f"{counted(left_out, 'partition')} of Kafka's own topics {verb} left out; "
            f"--topic '__*' lists {them}"
        )
    others = list(_other_directories(log_dir, topic, partition))
    if output_format == "json":
        kind = "segments" if with_segments else "partitions"
        write_json({"log_directories": log_dir.paths, kind: rows, "other_directories": others})
    elif output_format == "jsonl":
        for row in rows:
            write_json({"type": "segment" if with_segments else "partition", **row})
        for row in others:
            write_json({"type": "other_directory", **row})
    else:
        _write_tables(rows, others, with_segments=with_segments, wide=output_format == "wide")
    return lister.status


class Lister:
    """Yields rows of partitions or segments. An unreadable partition is reported on stderr and skipped."""

    def __init__(self, log_dir: LogDir, messages: Messages, *, with_segments: bool) -> None:
        self.status = 0
        self._log_dir = log_dir
        self._messages = messages
        self._rows_of = _segment_rows if with_segments else _partition_rows

    def rows(self, partitions: Iterable[TopicPartition]) -> Iterator[Row]:
        """Yield the rows of each partition."""
        from txnkafka.errors import KafkaError

        for topic_partition in partitions:
            try:
                view = self._log_dir.partition(*topic_partition)
                try:
                    rows = list(self._rows_of(view))
                finally:
                    view.close()
            except KafkaError as error:
                self.status = COULD_NOT
                self._messages.error(f"{topic_partition}: {error}")
                continue
            self.status = max(self.status, self._messages.findings(view.findings))
            yield from rows


def _partition_rows(view: PartitionView) -> Iterator[Row]:
    yield {
        "topic": view.topic,
        "partition": view.partition,
        "topic_id": view.topic_id,
        "path": view.path,
        "state": view.source.state,
        "segments": len(view.segments),
        "bytes": sum(segment.size for segment in view.segments),
        "log_start_offset": view.log_start_offset,
        "log_end_offset": view.log_end_offset,
        "high_watermark": view.high_watermark,
        "last_stable_offset": view.last_stable_offset,
        "open_transactions": len(view.open_transactions),
        "leftovers": view.files.leftovers,
    }


def _segment_rows(view: PartitionView) -> Iterator[Row]:
    for segment in view.segments:
        yield {"topic": view.topic, "partition": view.partition, **_segment_row(segment)}
        segment.close()


def _segment_row(segment: SegmentReader) -> Row:
    """Return the row of a segment; ``next_offset`` and the counts come from its batches, compacted or not."""
    batches, latest = 0, []
    for index in segment.indexes():
        batches += len(index)
        latest.append(max(index.max_timestamp, default=-1))
    return {
        "base_offset": segment.base_offset,
        "next_offset": segment.end_offset(),
        "bytes": segment.size,
        "batches": batches,
        "max_timestamp": max(latest),
        "file": segment.path,
        "indexes": sorted(kind for kind in segment.files if kind != "log"),
    }


def _other_directories(log_dir: LogDir, topics: Topics, partitions: Partitions) -> Iterator[Row]:
    """Yield rows of partition directories that are being moved or deleted, or are stray."""
    for path, directory in log_dir.other_directories:
        name, number = directory.topic_partition
        if is_chosen(directory.topic_partition, topics, partitions):
            yield {"topic": name, "partition": number, "state": directory.state, "path": path}


def _write_tables(rows: list[Row], others: list[Row], *, with_segments: bool, wide: bool) -> None:
    if with_segments:
        columns = SEGMENT_COLUMNS_WIDE if wide else SEGMENT_COLUMNS
        rows = [{**row, "max_time": iso_time(row["max_timestamp"])} for row in rows]
        rows = [{**row, "indexes": ",".join(row["indexes"])} for row in rows]
    else:
        columns = PARTITION_COLUMNS_WIDE if wide else PARTITION_COLUMNS
    rows = [{**row, "bytes": size(row["bytes"])} for row in rows]
    cells = [[row[name] for name in columns] for row in rows]
    write_table(list(columns.values()), cells, WIDE if wide else NARROW)
    if others:
        write_text("")
        names = ["topic", "partition", "state", "path"]
        write_table(names, [[row[name] for name in names] for row in others], WIDE)
