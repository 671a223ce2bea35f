"""``txnkafka cat``: the records of partitions, as a consumer of the isolation level gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.encoding import encoding_option
from txnkafka.cli.target import chosen_partitions, open_log_dir, target_options
from txnkafka.cli.times import Timestamp

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages

__all__ = ["cat"]


@click.command(short_help="Print records.")
@target_options
@click.option(
    "--isolation-level",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    default="read_committed",
    show_default=True,
    help="read_committed leaves aborted records out and stops at the last stable offset.",
)
@click.option("--start-offset", type=click.IntRange(min=0), help="First offset; default: the log start.")
@click.option("--end-offset", type=click.IntRange(min=0), help="Stop before this offset.")
@click.option("--start-time", type=Timestamp(), help="From the first record at or after this time on.")
@click.option("--end-time", type=Timestamp(), help="Stop before the first record at or after this time.")
@click.option("-n", "--max-records", type=click.IntRange(min=0), help="At most so many records in all.")
@click.option(
    "--up-to",
    type=click.Choice(["high-watermark", "log-end"]),
    default="log-end",
    show_default=True,
    help="Whether to stop at the high watermark that the broker noted last.",
)
@click.option(
    "--on-corrupt",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="At a damaged batch: stop reading that partition, or leave the batch out.",
)
@click.option("--format", type=click.Choice(["jsonl", "csv", "text"]), default="jsonl", show_default=True)
@encoding_option
@click.pass_obj
def cat(
    messages: Messages,
    /,
    *,
    logdir: tuple[str, ...],
    topic: str | None,
    partition: int | None,
    io: str,
    **wanted: Any,
) -> int:
    """Print the records of LOGDIR, partition by partition in offset order.

    LOGDIR is a log directory, a copy of one, a single partition directory or a single .log file. Several are
    taken for those of one broker. What is left out and why is said on stderr.

    Times are epoch milliseconds or ISO 8601, as in 2026-01-31T12:00:00Z.

    Exit status: 1 when damaged or undecided records had to be left out, 2 when something could not be read.
    """
    if wanted["start_offset"] is not None and wanted["start_time"] is not None:
        raise click.UsageError("--start-offset and --start-time exclude each other")
    if wanted["end_offset"] is not None and wanted["end_time"] is not None:
        raise click.UsageError("--end-offset and --end-time exclude each other")
    from txnkafka.cli.cat_partition import Printer, Wanted

    log_dir = open_log_dir(logdir, io, messages)
    chosen = chosen_partitions(log_dir, topic, partition)
    messages.detail(f"isolation level {wanted['isolation_level']}")
    printer = Printer(Wanted(**wanted), messages)
    return max([printer.print_partition(log_dir, each) for each in chosen], default=0)
