"""``txnkafka cat`` prints the records of partitions, as a consumer of the isolation level gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Command
from txnkafka.cli.encoding import encoding_option
from txnkafka.cli.read_options import pop_request, read_options
from txnkafka.cli.target import chosen_partitions, open_log_dir, target_options

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.cli.target import Partitions, StorageOptions, Topics

__all__ = ["cat"]


@click.command(cls=Command, short_help="Print records.")
@target_options
@read_options
@click.option("-n", "--max-records", type=click.IntRange(min=0), help="Print at most so many records in all.")
@click.option("--format", type=click.Choice(["jsonl", "csv", "text"]), default="jsonl", show_default=True)
@encoding_option
@click.pass_obj
def cat(
    messages: Messages,
    /,
    *,
    logdir: tuple[str, ...],
    topic: Topics,
    partition: Partitions,
    io: str,
    storage_options: StorageOptions,
    **options: Any,
) -> int:
    """Print the records of LOGDIR, partition by partition in offset order.

    LOGDIR is a log directory, a copy of one, a single partition directory or a single .log file. Several
    count as directories of one broker. Records that are left out are reported on stderr with the reason.

    Times are epoch milliseconds or ISO 8601, as in 2026-01-31T12:00:00Z.

    Exit status: 1 when damaged or undecided records had to be left out, 2 when something could not be read.
    """
    request = pop_request(options)
    from txnkafka.cli.cat_partition import Printer, Printing

    log_dir = open_log_dir(logdir, io, messages, storage_options)
    chosen = chosen_partitions(log_dir, topic, partition)
    messages.detail(f"isolation level {request.isolation_level.value}")
    printer = Printer(request, Printing(**options), messages)
    return max([printer.print_partition(log_dir, topic_partition) for topic_partition in chosen], default=0)
