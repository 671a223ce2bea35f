"""``txnkafka export`` writes records as files or tables for other programs, exactly once across crashes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Command, WordOf
from txnkafka.cli.completion import PathOrAddress
from txnkafka.cli.encoding import encoding_option
from txnkafka.cli.read_options import pop_request, read_options
from txnkafka.cli.target import open_log_dir, readable_partitions, target_options, threads_option
from txnkafka.env import thread_count

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.cli.target import Partitions, StorageOptions, Topics
    from txnkafka.logdir.directory_files import ReadMethod


class Names(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """Names separated by commas; ``none`` means no names."""

    name = "names"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if isinstance(value, str):
            return () if value == "none" else tuple(column.strip() for column in value.split(","))
        return value


@click.command(cls=Command, short_help="Write records to Parquet, JSON, CSV, Delta or Iceberg.")
@target_options
@click.option(
    "--to",
    type=WordOf(["parquet", "jsonl", "csv", "delta", "iceberg"]),
    required=True,
    help="What to write.",
)
@click.option("--output", type=PathOrAddress(), metavar="DIR", required=True, help="Directory to write into.")
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="Read and write in this process, or on the executors of a Spark session.",
)
@threads_option
@click.option("--incremental", is_flag=True, help="Add the records appended since the last run.")
@read_options
@click.option("--columns", type=Names(), metavar="NAME,…", help="Columns to write; not for jsonl and csv.")
@click.option(
    "--partition-by",
    type=Names(),
    default="topic,date",
    show_default=True,
    metavar="NAME,…",
    help="Directories to partition by: topic, date (of the timestamp, in UTC), both, or none.",
)
@click.option(
    "--file-bytes",
    type=click.IntRange(min=1),
    default=128 << 20,
    show_default=True,
    help="Approximate number of log bytes per file.",
)
@click.option(
    "--compression",
    type=click.Choice(["zstd", "snappy", "lz4", "gzip", "none"]),
    default="zstd",
    show_default=True,
    help="Of Parquet.",
)
@encoding_option
@click.option("--table", metavar="NAMESPACE.NAME", help="Iceberg: the table; default: kafka.records.")
@click.option(
    "--catalog",
    multiple=True,
    metavar="NAME=VALUE",
    help="Iceberg: properties of the catalog; default: an SQLite file in the directory.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Of the summary.",
)
@click.pass_obj
def export(
    messages: Messages,
    /,
    *,
    logdir: tuple[str, ...],
    topic: Topics,
    partition: Partitions,
    io: ReadMethod,
    storage_options: StorageOptions,
    output: str,
    engine: str,
    threads: int | None,
    incremental: bool,
    output_format: str,
    **given: Any,
) -> int:
    """Write the records of LOGDIR into files below DIR, or into a table with its files in DIR.

    LOGDIR is a log directory, a copy of one, a single partition directory or a single .log file. Several
    count as directories of one broker. Kafka's own topics are left out unless --topic names one.

    After any interruption the same command continues where the export stopped: no record is missing or
    duplicated. A finished export is left as it is; --incremental adds the records appended since.

    Exit status: 1 when damaged or undecided records had to be left out, 2 when the export failed."""
    from txnkafka.cli.export_run import Runner, export_options, report_export

    request = pop_request(given)
    output = _target(output)
    given["topic"], given["partition"] = tuple(sorted(topic)), tuple(sorted(map(str, partition)))
    export_options(request, paths=logdir, **given)  # rejects invalid options before anything is opened
    log_dir = open_log_dir(logdir, io, messages, storage_options)
    _check_apart(log_dir.paths, output)
    options = export_options(request, paths=tuple(log_dir.paths), **given)
    chosen = readable_partitions(log_dir, topic, partition)
    runner = Runner(log_dir, messages, request)
    report = runner.run(
        chosen,
        output,
        options,
        engine=engine,
        threads=thread_count(threads),
        incremental=incremental,
    )
    return report_export(report, output, messages, output_format)


def _target(output: str) -> str:
    """Return the real path of a local directory. Raises UsageError for an address."""
    from txnkafka.env import is_remote, open_file_system

    if is_remote(output):
        raise click.UsageError(
            f"--output {output}: only a directory of this machine can be written to; "
            "mount the storage, or export here and copy"
        )
    _, (path,) = open_file_system([output])
    return os.path.realpath(path)


def _check_apart(paths: list[str], output: str) -> None:
    """Raise UsageError if the output is inside a log directory: txnkafka never writes there."""
    for path in paths:
        real = os.path.realpath(path)
        if "://" not in path and os.path.commonpath([output, real]) == real:
            raise click.UsageError(f"--output {output} lies in {path}, which is only read")
