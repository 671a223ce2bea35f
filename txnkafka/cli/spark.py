"""``txnkafka spark`` runs jobs over whole logs on the executors of a Spark session."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import WordOf
from txnkafka.cli.command_group import CommandGroup
from txnkafka.cli.completion import PathOrAddress
from txnkafka.cli.output import Layout, write_finding, write_json, write_paragraph
from txnkafka.cli.rows import format_option, write_rows
from txnkafka.cli.target import chosen_partitions, directory_options, partition_options
from txnkafka.shown import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from txnkafka.cli.output import Messages

FINDINGS = 1
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SHOWN = ("open", "hanging", "longest", "largest", "by-id")
PLACE = {"Topic": "topic", "Partition": "partition"}
COLUMNS = {
    "open": {
        "TransactionalId": "transactionalId", **PLACE, "ProducerId": "producerId",
        "FirstOffset": "firstOffset", "Since": "firstTimestamp", "Records": "records",
    },
    "hanging": {
        "TransactionalId": "transactionalId", **PLACE, "ProducerId": "producerId",
        "FirstOffset": "firstOffset", "Since": "firstTimestamp", "Verdict": "verdict",
    },
    "longest": {
        "TransactionalId": "transactionalId", **PLACE, "Outcome": "outcome",
        "FirstOffset": "firstOffset", "Since": "firstTimestamp", "DurationMs": "milliseconds",
    },
    "largest": {
        "TransactionalId": "transactionalId", **PLACE, "Outcome": "outcome",
        "FirstOffset": "firstOffset", "Records": "records", "Bytes": "bytes",
    },
    "by-id": {
        "TransactionalId": "transactionalId", "Outcome": "outcome",
        "PartitionTransactions": "partitionTransactions", "Records": "records", "Bytes": "bytes",
        "LongestMs": "longestMilliseconds",
    },
}  # fmt: skip
WIDE = {
    name: {}
    if name == "by-id"
    else {
        "ProducerEpoch": "producerEpoch",
        "LastOffset": "lastOffset",
        "MarkerOffset": "markerOffset",
        "LastTimestamp": "lastTimestamp",
    }
    for name in SHOWN
} | {"hanging": {"ProducerEpoch": "producerEpoch", "Reason": "reason"}}


class Renamed(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """OLD=NEW, two names of topics."""

    name = "names"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        old, _, new = str(value).partition("=")
        if not old or not new:
            self.fail(f"{value!r} is not OLD=NEW, as in orders=orders-2025", param, ctx)
        return old, new


@click.group(cls=CommandGroup, short_help="Run jobs over whole logs on a Spark cluster.")
def spark() -> None:
    """Check, summarize and copy logs of any size on Spark, on this machine or on a cluster:

        spark-submit $(txnkafka spark-bundle) job.py spark verify /backup

    where job.py is

        from txnkafka.cli.main import main
        main()

    'txnkafka export --engine spark' writes records as files and tables."""


@spark.command("verify", short_help="Check everything and report faults.")
@directory_options
@partition_options
@format_option
@click.pass_obj
def verify_(messages: Messages, /, *, output_format: str, **given: Any) -> int:
    """Check every byte of LOGDIR, like 'txnkafka verify', with a task for each group of partitions.

    Exit status: 1 for an error or a warning."""
    session, logdir, reading = _opened(messages, given)
    from txnkafka.logdir import Finding
    from txnkafka.spark import verify

    found = verify(session, logdir, **reading)
    rows = [Finding(*(row[name] for name in Finding._fields)) for row in found.findings.collect()]
    if output_format == "json":
        write_json([finding._asdict() for finding in rows])
    elif output_format == "jsonl":
        for finding in rows:
            write_json(finding._asdict())
    else:
        for finding in rows:
            write_finding(finding)
        write_paragraph(
            ", ".join(counted(found.severities[name], name) for name in ("error", "warning", "note"))
        )
    return 0 if found.is_sound else FINDINGS


@spark.command("transactions", short_help="List open, hanging, long and large transactions.")
@directory_options
@partition_options
@click.option(
    "--show", type=WordOf(SHOWN), default="open", show_default=True,
    help="Open ones; ones that hang; the longest; the largest; sums by transactional id.",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Rows to print.")
@format_option
@click.pass_obj
def transactions_(messages: Messages, /, *, show: str, limit: int, output_format: str, **given: Any) -> int:
    """List the transactions of LOGDIR, one row for each transaction and partition.

    Exit status: 1 when --show hanging finds some."""
    session, logdir, reading = _opened(messages, given)
    from txnkafka.spark import transactions

    found = transactions(session, logdir, show, limit=limit, **reading)  # type: ignore[arg-type]
    rows = [row.asDict() for row in found.collect()]
    for row in rows:
        for name, value in row.items():
            if hasattr(value, "isoformat"):
                row[name] = value.isoformat(sep=" ", timespec="milliseconds")
    write_rows(rows, output_format, COLUMNS[show], WIDE[show], Layout(("TransactionalId", "Topic", "Reason")))
    return FINDINGS if show == "hanging" and rows else 0


@spark.command("copy", short_help="Copy committed records into another log.", changes=True)
@directory_options
@partition_options
@click.option("--to", type=PathOrAddress(), metavar="DIR", help="Data directory to write into.")
@click.option("-b", "--bootstrap", metavar="HOST:PORT,…", help="Brokers to write to, instead of --to.")
@click.option(
    "--rename", "names", type=Renamed(), multiple=True, metavar="OLD=NEW",
    help="Write a topic under another name. Repeatable.",
)  # fmt: skip
@click.option(
    "--partitions", type=click.IntRange(min=1), metavar="N",
    help="Number of partitions of the target; keys choose among them. Default: as in the source.",
)  # fmt: skip
@click.option(
    "--compression", type=WordOf(CODECS), default="none", show_default=True, help="Codec of the copy."
)
@click.option(
    "--transactional-id",
    metavar="ID",
    help="Makes the command repeatable: a finished copy is not made again.",
)
@click.option(
    "--staging", metavar="DIR", help="Directory that driver and executors share; needed for brokers."
)
@click.pass_obj
def copy_(
    messages: Messages,
    /,
    *,
    to: str | None,
    bootstrap: str | None,
    names: tuple[tuple[str, str], ...],
    partitions: int | None,
    compression: str,
    transactional_id: str | None,
    staging: str | None,
    **given: Any,
) -> int:
    """Copy the committed records of LOGDIR in one transaction: all of them appear, or none.

    Missing topics are created. Keys, values, headers and timestamps stay, offsets do not. Kafka's own topics
    are left out."""
    if (to is None) == (bootstrap is None):
        raise click.UsageError("give --to, a data directory, or --bootstrap, the addresses of brokers")
    session, logdir, reading = _opened(messages, given)
    from pyspark.errors import PySparkException

    from txnkafka.errors import KafkaError
    from txnkafka.spark import copy

    try:
        copy(
            session, logdir, path=to, bootstrap_servers=bootstrap, names=dict(names), partitions=partitions,
            compression=compression, transactional_id=transactional_id, staging_path=staging, **reading,
        )  # fmt: skip
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except PySparkException as error:
        raise KafkaError(_cause(error)) from error
    messages.note(f"copied to {to or bootstrap}")
    return 0


def _cause(error: Exception) -> str:
    """Return the message of the exception in Python that made a job fail, out of Spark's stack traces."""
    lines = [
        match[1] for match in re.finditer(r"^[\w.]+(?:Error|Exception): (.+)$", str(error), re.MULTILINE)
    ]
    return lines[-1] if lines else str(error).partition("\n")[0]


def _opened(messages: Messages, given: dict[str, Any]) -> tuple[SparkSession, list[str], dict[str, Any]]:
    """Return a Spark session, the log directories, and the keywords that select topics and partitions."""
    try:
        from pyspark.sql import SparkSession

        from txnkafka.spark import configure, register
    except ImportError as error:
        raise click.UsageError(f"{error}; pip install 'txnkafka[spark]'") from None
    from txnkafka.logdir import LogDir

    log_dir = LogDir(given["logdir"], io=given["io"], storage_options=dict(given["storage_options"]))
    reading: dict[str, Any] = {"io": given["io"], "storage_options": dict(given["storage_options"])}
    if given["topic"] or given["partition"]:
        assigned: dict[str, list[int]] = {}
        for each in chosen_partitions(log_dir, given["topic"], given["partition"]):
            assigned.setdefault(each.topic, []).append(each.partition)
        reading["assign"] = assigned
    # the driver's own Python by default: Spark would use the first python3 on the PATH
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = configure(SparkSession.builder.appName("txnkafka")).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    return session, log_dir.paths, reading
