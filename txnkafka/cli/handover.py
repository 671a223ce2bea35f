"""``txnkafka handover`` makes a stopped data directory ready for its next owner, and reports the
consequences."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import click

from txnkafka.cli.command import Command
from txnkafka.cli.completion import PathOrAddress
from txnkafka.cli.handover_text import write_report
from txnkafka.cli.output import FORMATS, write_json
from txnkafka.cli.progress import Progress

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.handover.report import HandOver

FINDINGS = 1


@click.command(cls=Command, short_help="Hand a stopped data directory to Apache Kafka, or to txnkafka.")
@click.argument("directory", type=PathOrAddress(), metavar="DIR")
@click.option(
    "--to",
    type=click.Choice(["kafka", "txnkafka"]),
    required=True,
    help="The next owner of the directory: Apache Kafka 4.3 or 4.4, or 'txnkafka serve'.",
)
@click.option("--check", "is_check", is_flag=True, help="Only report the changes, without making them.")
@click.option("--format", "output_format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.pass_obj
def handover(messages: Messages, /, *, directory: str, to: str, is_check: bool, output_format: str) -> int:
    """Make DIR, the data directory of a stopped node, ready for its next owner: recover it if it was not
    stopped cleanly, check every batch, compare the derived files with the logs, and rebuild wrong ones.
    Apache Kafka trusts these files after a clean stop.

    Reports the consequences for open transactions, groups and settings, and prints the settings that the next
    owner needs. Nothing is changed where a log itself is damaged. Make a copy first.

    Exit status: 0 the directory is ready, 1 it is not (with --check also: something would be changed), 2
    failure."""
    with Progress(messages) as progress:
        progress.phase("checking the logs and their derived files")
        report = _report(directory, to, is_check=is_check)
    if output_format == "json":
        write_json(report.as_dict())
    elif output_format == "jsonl":
        for kind, row in _rows(report):
            write_json({"kind": kind, **row})
    else:
        write_report(report, is_wide=output_format == "wide")
    return 0 if report.is_ready else FINDINGS


def _report(address: str, to: str, *, is_check: bool) -> HandOver:
    from txnkafka.env import LocalDataFiles, SystemClock, is_remote, open_file_system
    from txnkafka.errors import LogDirError
    from txnkafka.handover.hand_over import check, hand_over
    from txnkafka.handover.report import Owner

    if is_remote(address):
        raise LogDirError(
            f"{address}: a directory is handed over on a disk of this machine; copy it here first"
        )
    _, (path,) = open_file_system([address])
    logging.getLogger("txnkafka").addHandler(logging.NullHandler())  # the report contains these messages
    run = check if is_check else hand_over
    return run(LocalDataFiles(), path, Owner(to), now_ms=SystemClock().now_ms())


def _rows(report: HandOver) -> list[tuple[str, dict[str, object]]]:
    """Return the report as (type, row) pairs."""
    document = report.as_dict()
    lists = {
        "finding": document.pop("findings"),
        "step": document.pop("steps"),
        "transaction": document.pop("transactions"),
        "group": document.pop("groups"),
    }
    rows = [("directory", document)]
    return rows + [(kind, row) for kind, found in lists.items() for row in found]
