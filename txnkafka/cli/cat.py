"""``txnkafka cat`` prints the records of partitions, as a consumer of the isolation level gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Command
from txnkafka.cli.completion import beginning_with
from txnkafka.cli.decode_options import decode_options, pop_decoders
from txnkafka.cli.encoding import encoding_option
from txnkafka.cli.read_options import pop_request, read_options
from txnkafka.cli.target import open_log_dir, readable_partitions, target_options, threads_option

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from txnkafka.cli.output import Messages
    from txnkafka.cli.record_text import Printing
    from txnkafka.cli.target import Partitions, StorageOptions, Topics
    from txnkafka.logdir import LogDir
    from txnkafka.logdir.directory_files import ReadMethod
    from txnkafka.model import TopicPartition

FORMATS = ("jsonl", "csv", "text")


class Format(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """A format name, or a template such as '%o %k %s\\n'."""

    name = "format"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete format names."""
        return beginning_with(incomplete, FORMATS)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if not isinstance(value, str) or value in FORMATS:
            return value
        if "%" not in value:
            self.fail(rf"{value!r} is not jsonl, csv, text or a template such as '%o %k %s\n'")
        from txnkafka.cli.record_template import parse_template

        try:
            return parse_template(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command(cls=Command, short_help="Print records.")
@target_options
@threads_option
@read_options
@click.option("-n", "--max-records", type=click.IntRange(min=0), help="Print at most this many records.")
@click.option("--follow", is_flag=True, help="Keep printing new records until Ctrl-C.")
@click.option(
    "--format",
    type=Format(),
    default="jsonl",
    show_default=True,
    metavar="jsonl|csv|text|TEMPLATE",
    help="A template has the letters of kcat: %t %p %o %T %k %s %K %S %R %h.",
)
@click.option("--columns", metavar="NAME,…", help="Fields to print (jsonl and csv); default: all.")
@encoding_option
@decode_options
@click.pass_obj
def cat(
    messages: Messages,
    /,
    *,
    logdir: tuple[str, ...],
    topic: Topics,
    partition: Partitions,
    io: ReadMethod,
    storage_options: StorageOptions,
    threads: int | None,
    follow: bool,
    max_records: int | None,
    **options: Any,
) -> int:
    """Print the records of LOGDIR, partition by partition in offset order.

    LOGDIR is a log directory, a copy of one, a single partition directory or a single .log file. Several
    count as directories of one broker. Kafka's own topics are left out unless --topic names one. Records that
    are left out for another reason are reported on stderr.

    Times are epoch milliseconds or ISO 8601, as in 2026-01-31T12:00:00Z.

    Exit status: 1 when damaged or undecided records had to be left out, 2 when something could not be read.
    """
    request = pop_request(options)
    from txnkafka.cli.cat_partition import Printer
    from txnkafka.logdir import LogDir

    if follow and (request.end_offset is not None or request.end_time is not None):
        raise click.UsageError("--follow has no end: leave --end-offset and --end-time out")
    printing = _printing(options)
    log_dir = open_log_dir(logdir, io, messages, storage_options, threads)

    def chosen(log_dir: LogDir) -> list[TopicPartition]:
        return readable_partitions(log_dir, topic, partition)

    messages.detail(f"isolation level {request.isolation_level.value}")
    printer = Printer(request, printing, messages, max_records)
    if follow:
        from txnkafka.cli.cat_follow import Follower

        return Follower(
            lambda: LogDir(logdir, io=io, threads=threads, storage_options=dict(storage_options)),
            chosen,
            printer,
            messages,
        ).run(log_dir)
    for topic_partition in chosen(log_dir):
        printer.print_partition(log_dir, topic_partition)
    return printer.status


def _printing(options: dict[str, Any]) -> Printing:
    """Return the format of the records. Raises UsageError for options that exclude each other."""
    from txnkafka.cli.record_text import Printing

    columns = options.pop("columns")
    fields = None if columns is None else _fields(columns, options["format"])
    decoders = pop_decoders(options)
    if decoders and options["format"] == "csv":
        raise click.UsageError("CSV has the bytes of keys and values: --decode needs another --format")
    printing = Printing(**options, **decoders)
    return printing if fields is None else printing._replace(fields=fields)


def _fields(columns: str, form: object) -> tuple[str, ...]:
    from txnkafka._core.text import FIELDS
    from txnkafka.shown import nearest

    if form not in ("jsonl", "csv"):
        raise click.UsageError(r"--columns is for jsonl and csv; a template has its own, as in '%o %k\n'")
    other_names = {"timestampType": "timestamp_type"}  # Spark's columns
    names = [other_names.get(name.strip(), name.strip()) for name in columns.split(",")]
    for name in names:
        if name not in FIELDS:
            raise click.UsageError(f"--columns: no column {name}: {nearest(name, FIELDS)}")
    return tuple(names)
