"""``txnkafka dump`` prints the files of a log directory, field by field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Command
from txnkafka.cli.completion import PathOrAddress
from txnkafka.cli.encoding import encoding_option
from txnkafka.cli.output import json_text, printable, write_json, write_text
from txnkafka.cli.target import storage_option
from txnkafka.shown import iso_time, offset_range

if TYPE_CHECKING:
    from txnkafka.cli.dump_log import LogOptions, Row
    from txnkafka.cli.output import Messages
    from txnkafka.cli.target import StorageOptions

FINDINGS, COULD_NOT = 1, 2
LARGEST_OFFSET = 2**63 - 1
EMPTY = "empty"  # the text row for a file without rows
TIMES = ("timestamp", "max_timestamp", "last_timestamp", "delete_horizon_ms")


class OffsetRange(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """N or N..M, both ends included."""

    name = "N[..M]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        first, dots, last = str(value).partition("..")
        if not first.isdecimal() or (dots and not last.isdecimal()):
            self.fail(f"{value!r} is not an offset or a range of offsets, as in 40..60", param, ctx)
        digits = max(len(first.lstrip("0")), len(last.lstrip("0")))  # int refuses thousands of digits
        if digits > len(str(LARGEST_OFFSET)) or int(last or first) > LARGEST_OFFSET:
            self.fail(f"no log has offsets above {LARGEST_OFFSET}", param, ctx)
        if dots and int(last) < int(first):
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return int(first), int(last if dots else first)


@click.command(cls=Command, short_help="Print the contents of a log directory's files.")
@click.argument("files", nargs=-1, required=True, type=PathOrAddress(), metavar="FILE...")
@click.option("--records", is_flag=True, help="Print the records of each batch too.")
@click.option(
    "--offset",
    "offsets",
    type=OffsetRange(),
    help="Only batches with these offsets: N, or N..M. Uses the .index next to the file.",
)
@click.option(
    "--position",
    type=click.IntRange(min=0),
    metavar="N",
    help="Only the batch that begins at this byte of the file; earlier bytes are not read.",
)
@click.option(
    "--decoder",
    type=click.Choice(["auto", "transaction-log", "offsets", "metadata", "none"]),
    default="auto",
    show_default=True,
    help="Decoder for --records; auto selects it by the directory's name.",
)
@encoding_option
@storage_option
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "wide", "json", "jsonl"]),
    default="text",
    show_default=True,
    help="text leaves out fields without a value, wide shows them all.",
)
@click.pass_obj
def dump(
    messages: Messages,
    /,
    *,
    files: tuple[str, ...],
    output_format: str,
    decoder: str,
    storage_options: StorageOptions,
    **options: Any,
) -> int:
    """Print the contents of FILE...: segments, indexes, snapshots, checkpoints etc. The file name selects the
    format.

    Every batch is checked against its CRC. The records of Kafka's own logs (transactions, consumer offsets,
    cluster metadata) are decoded with --records.

    Exit status: 1 when something is damaged, 2 when a file could not be read."""
    from txnkafka.cli.dump_log import LogOptions

    log_options = LogOptions(decoder=None if decoder == "none" else decoder, **options)
    if log_options.offsets is not None and log_options.position is not None:
        raise click.UsageError("--offset and --position do not go together")
    dumper = Dumper(messages, log_options, dict(storage_options))
    rows = dumper.rows(files)
    if output_format == "json":
        _write_array(row for row in rows if row["type"] != EMPTY)
    elif output_format == "jsonl":
        for row in rows:
            if row["type"] != EMPTY:
                write_json(row)
    else:
        _write_lines(rows, wide=output_format == "wide")
    return dumper.status


class Dumper:
    """Yields the rows of all files in sequence, and keeps the exit status."""

    def __init__(self, messages: Messages, options: LogOptions, storage_options: dict[str, Any]) -> None:
        self.status = 0
        self._messages = messages
        self._options = options
        self._storage_options = storage_options
        self._found = False

    def rows(self, paths: tuple[str, ...]) -> Iterator[Row]:
        """Yield all rows; files that cannot be read are reported on stderr."""
        from txnkafka.env import without_password
        from txnkafka.errors import LogDirError

        for path in paths:
            try:
                yield from self._rows_of(path)
            except BrokenPipeError:
                raise
            except OSError as error:
                self._fail(f"cannot read {without_password(path)}: {error.strerror or error}")
            except LogDirError as error:
                self._fail(str(error))
        wanted = self._options.offsets
        if wanted is not None and not self._found and not self.status:
            self._fail(f"no batch has {offset_range(*wanted)}")

    def _rows_of(self, path: str) -> Iterator[Row]:
        from txnkafka.cli.dump_files import file_rows
        from txnkafka.env import open_file_system
        from txnkafka.errors import LogDirError

        file_system, (path,) = open_file_system([path], self._storage_options)
        if file_system.is_directory(path):
            example = file_system.join(path, *_segments(entry.name for entry in file_system.list(path)))
            raise LogDirError(f"{path} is a directory; dump takes files, as in {example}")
        parent = file_system.split(file_system.split(path)[0])[1]
        found = False
        for row in file_rows(file_system, path, parent, self._options):
            if row["type"] == "finding":
                self.status = max(self.status, FINDINGS)
            found = True
            yield row
        self._found = self._found or found
        if not found and not self._options.selects:
            what = "batches" if path.endswith((".log", ".checkpoint")) else "entries"
            yield {"type": EMPTY, "file": path, "what": what}

    def _fail(self, text: str) -> None:
        self.status = COULD_NOT
        self._messages.error(text)


def _segments(names: Iterable[str]) -> tuple[str, ...]:
    """Return the glob pattern, as path parts, of the segments below a directory that contains ``names``."""
    from txnkafka.storage.formats import parse_partition_directory

    return ("*", "*.log") if any(map(parse_partition_directory, names)) else ("*.log",)


def _write_array(rows: Iterator[Row]) -> None:
    """Write one JSON document, row by row."""
    separator = "["
    for row in rows:
        write_text(f"{separator}{json_text(row)}")
        separator = ","
    write_text("]" if separator == "," else "[]")


def _write_lines(rows: Iterator[Row], *, wide: bool) -> None:
    file = None
    for row in rows:
        if row["file"] != file:
            file = row["file"]
            write_text(printable(f"{file}:"))
        if row["type"] == EMPTY:
            write_text(f"0 {row['what']}")
            continue
        fields = (
            f"{name}={_shown(name, value)}"
            for name, value in row.items()
            if name not in ("type", "file") and (wide or _says_something(name, value))
        )
        write_text("  ".join([("| " if row["type"].endswith("record") else "") + row["type"], *fields]))


def _says_something(name: str, value: object) -> bool:
    return name in ("key", "value", "is_valid") or not (value is None or value is False or value in (-1, []))


def _shown(name: str, value: object) -> str:
    if name in TIMES and isinstance(value, int) and value >= 0:
        return f"{value} ({iso_time(value)})"
    return printable(json_text(value))
