"""``txnkafka stats`` prints sizes of batches and transactions, codecs and abort rates, from headers only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Command
from txnkafka.cli.output import FORMATS, Layout, write_json, write_table
from txnkafka.cli.progress import Progress
from txnkafka.cli.target import chosen_partitions, open_log_dir, target_options
from txnkafka.shown import duration, size

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.cli.target import Partitions, StorageOptions, Topics
    from txnkafka.logdir import Finding, LogDir
    from txnkafka.logdir.directory_files import ReadMethod
    from txnkafka.logdir.stats import Stats
    from txnkafka.model import TopicPartition

FINDINGS, COULD_NOT = 1, 2
Row = dict[str, Any]

# column → path of the field in a row
COLUMNS = {
    "batches": "batches",
    "records": "records",
    "size": "bytes",
    "size/batch": "batch_bytes.p50",
    "p99 size/batch": "batch_bytes.p99",
    "records/batch": "batch_records.p50",
    "codecs": "codecs",
    "committed txns": "committed_transactions",
    "aborted txns": "aborted_transactions",
    "aborted txns %": "abort_rate",
    "open txns": "open_transactions",
    "undecided txns": "undecided_transactions",
    "txn time": "transaction_ms.p50",
    "p99 txn time": "transaction_ms.p99",
}
WIDE = {
    "control batches": "control_batches",
    "uncounted batches": "uncounted_batches",
    "magics": "magics",
    **{f"{figure} {name}": f"{field}.{figure}"
       for name, field in (("size/batch", "batch_bytes"), ("records/batch", "batch_records"))
       for figure in ("min", "mean", "max")},
    "p99 records/batch": "batch_records.p99",
    "committed records": "committed_records",
    "aborted records": "aborted_records",
    "aborted records %": "aborted_record_rate",
    "open records": "open_records",
    "undecided records": "undecided_records",
    **{f"{figure} {name}": f"{field}.{figure}"
       for name, field in (("records/txn", "transaction_records"), ("size/txn", "transaction_bytes"))
       for figure in ("p50", "p99", "max")},
    "max txn time": "transaction_ms.max",
}  # fmt: skip
NAMES = ("topic", "transactional_id")
DROPPABLE = (
    "p99 size/batch", "p99 txn time", "undecided txns", "codecs", "records/batch", "size/batch", "txn time",
    "open txns", "batches", "size", "aborted txns %", "records",
)  # fmt: skip


@click.command(cls=Command, short_help="Sizes of batches and transactions, codecs, abort rates.")
@target_options
@click.option(
    "--by",
    type=click.Choice(["topic", "partition", "producer"]),
    default="partition",
    show_default=True,
    help="One row per topic, partition or producer.",
)
@click.option("--format", "output_format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.pass_obj
def stats(
    messages: Messages,
    /,
    *,
    logdir: tuple[str, ...],
    topic: Topics,
    partition: Partitions,
    io: ReadMethod,
    storage_options: StorageOptions,
    by: str,
    output_format: str,
) -> int:
    """Print the sizes of batches and transactions in LOGDIR, their codecs, and how much is aborted.

    LOGDIR is a log directory, a copy of one, a single partition directory or a single .log file. Several
    count as directories of one broker. Only batch headers are read.

    Exit status: 1 when damaged batches were not counted, 2 when a partition could not be read."""
    from txnkafka.logdir.stats import Stats

    counted = Stats(by)
    with Progress(messages) as progress:
        log_dir = open_log_dir(logdir, io, messages, storage_options)
        chosen = chosen_partitions(log_dir, topic, partition)
        status = _count(counted, log_dir, progress.each(chosen), messages)
    rows = counted.rows() if by != "producer" else _with_owners(counted.rows(), log_dir)
    _write(rows, by, output_format)
    return status


def _is_behind(finding: Finding, tail: Finding) -> bool:
    """Return True for a finding in the part of a file that is left out as a whole."""
    if finding.position is None or tail.position is None:
        return False
    return finding.file == tail.file and finding.position >= tail.position


def _count(counted: Stats, log_dir: LogDir, chosen: Iterable[TopicPartition], messages: Messages) -> int:
    """Count the readable partitions and report the others; return the exit status."""
    from txnkafka.errors import KafkaError

    status = 0
    for topic_partition in chosen:
        try:
            view = log_dir.partition(*topic_partition)
            try:
                tail = view.findings
                status = max(status, messages.findings(tail))
                for finding in counted.add(view):
                    status = max(status, FINDINGS)
                    if not any(_is_behind(finding, each) for each in tail):
                        messages.finding(finding)
            finally:
                view.close()
        except KafkaError as error:
            status = COULD_NOT
            messages.error(f"{topic_partition}: {error}")
    return status


def _with_owners(rows: Iterator[Row], log_dir: LogDir) -> Iterator[Row]:
    for row in rows:
        owner = log_dir.coordinator.owner(row["producer_id"])
        transactional_id = owner.transactional_id if owner else None
        yield {"producer_id": row.pop("producer_id"), "transactional_id": transactional_id, **row}


def _write(rows: Iterator[Row], by: str, output_format: str) -> None:
    if output_format == "json":
        write_json(list(rows))
    elif output_format == "jsonl":
        for row in rows:
            write_json(row)
    else:
        keys = {"topic": ("topic",), "partition": ("topic", "partition")}
        names = {name: name for name in keys.get(by, ("producer_id", "transactional_id"))}
        columns = {**names, **COLUMNS, **(WIDE if output_format == "wide" else {})}
        cells = [[_cell(row, path) for path in columns.values()] for row in rows]
        write_table(list(columns), cells, Layout(NAMES, () if output_format == "wide" else DROPPABLE))


def _cell(row: Row, path: str) -> object:
    name, _, figure = path.partition(".")
    value = row[name][figure] if figure else row[name]
    if name == "codecs":
        shares = (f"{codec}:{_percent(share['batch_share'])}%" for codec, share in value.items())
        return " ".join(shares) or None
    if name == "magics":
        return " ".join(value) or None
    if value is None:
        return None
    if name.endswith("bytes"):
        return size(value)
    if name == "transaction_ms":
        return duration(round(value))
    return _percent(value) if name.endswith("_rate") else value


def _percent(rate: float | None) -> str | None:
    return None if rate is None else f"{100 * rate:.3g}"
