"""The options that choose the records to read; ``cat`` and ``export`` share them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Function, add_options
from txnkafka.cli.times import Timestamp
from txnkafka.shown import offset_range

if TYPE_CHECKING:
    from txnkafka.errors import CorruptRecordError
    from txnkafka.logdir import PartitionView, ReadRequest

FIELDS = (
    "isolation_level",
    "start_offset",
    "end_offset",
    "start_time",
    "end_time",
    "up_to",
    "on_corrupt",
)


def pop_request(options: dict[str, Any]) -> ReadRequest:
    """Remove the options of a ReadRequest from a command's options, and return the request. Raises UsageError
    for options that exclude each other or an invalid predicate, MissingPackageError without pyarrow."""
    from txnkafka.logdir.read_request import ReadRequest

    for bound in ("start", "end"):
        if options[f"{bound}_offset"] is not None and options[f"{bound}_time"] is not None:
            raise click.UsageError(f"--{bound}-offset and --{bound}-time exclude each other")
    given = {name: options.pop(name) for name in FIELDS}
    predicate = options.pop("where")
    if predicate is None:
        return ReadRequest(**given)
    from txnkafka.env.packages import import_package

    import_package("pyarrow", "--where", "arrow")
    try:
        return ReadRequest(**given, where=predicate)
    except ValueError as error:
        raise click.UsageError(f"--where: {error}") from None


def notes(view: PartitionView, request: ReadRequest) -> Iterator[str]:
    """Yield a note for each unexpected limit at which reading ends: none if the start is not in the log, so
    that nothing is read, or if the request ends before the limit."""
    from txnkafka.logdir.requested import end_of

    start, name, log_end = request.start_offset, view.topic_partition, view.log_end_offset
    if start is not None and start >= 0 and not view.log_start_offset <= start <= log_end:
        return
    wanted = log_end if request.end_offset is None else min(request.end_offset, log_end)
    end = min(end_of(view, request), wanted)
    high_watermark = view.high_watermark
    if request.up_to == "log-end" and high_watermark is not None and high_watermark < end:
        yield (
            f"{name}: this includes {offset_range(high_watermark, end - 1)}, above the high watermark "
            "that the broker noted last; --up-to high-watermark stops there"
        )
    if request.read_committed and view.last_stable_offset < wanted:
        count = len(view.open_transactions)
        yield (
            f"{name}: read up to the last stable offset {view.last_stable_offset}, the log ends at "
            f"{log_end}: {count} open transaction{'s' * (count != 1)}; 'txnkafka lso' explains it"
        )


def read_options(function: Function) -> Function:
    """Add the options of a ReadRequest to a command."""
    return add_options(
        function,
        click.option(
            "--isolation-level",
            type=click.Choice(["read_committed", "read_uncommitted"]),
            default="read_committed",
            show_default=True,
            help="read_committed leaves aborted records out and stops at the last stable offset.",
        ),
        click.option(
            "--where",
            metavar="PREDICATE",
            help="Only records that match a predicate, as in \"key = 'a' and length(value) > 9\".",
        ),
        click.option(
            "-o",
            "--start-offset",
            type=int,
            help="First offset, default: the log start. -10: the last ten offsets of each partition.",
        ),
        click.option("--end-offset", type=click.IntRange(min=0), help="Stop before this offset."),
        click.option(
            "--start-time", type=Timestamp(), help="From the first record at or after this time on."
        ),
        click.option(
            "--end-time", type=Timestamp(), help="Stop before the first record at or after this time."
        ),
        click.option(
            "--up-to",
            type=click.Choice(["high-watermark", "log-end"]),
            default="log-end",
            show_default=True,
            help="Read to the log end, or stop at the high watermark that the broker noted last.",
        ),
        click.option(
            "--on-corrupt",
            type=click.Choice(["stop", "skip"]),
            default="stop",
            show_default=True,
            help="At a damaged batch: stop reading that partition, or leave the batch out.",
        ),
    )


def where(error: CorruptRecordError) -> str:
    """Return the text of the error without its advice for Python callers."""
    return str(error).removesuffix(error.remedy).removesuffix(". ")
