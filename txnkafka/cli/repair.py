"""``txnkafka repair`` recovers a stopped broker's log directory, as the broker would when it starts, and
reports the changes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Command
from txnkafka.cli.completion import PathOrAddress
from txnkafka.cli.output import printable, write_json, write_text
from txnkafka.cli.progress import Progress
from txnkafka.cli.target import chosen_partitions, partition_options

if TYPE_CHECKING:
    from collections.abc import Collection

    from txnkafka.cli.output import Messages
    from txnkafka.cli.target import Partitions, Topics
    from txnkafka.model import TopicPartition
    from txnkafka.storage.data_directory import DataDirectory
    from txnkafka.storage.log.repair_step import RepairStep
    from txnkafka.storage.recovery.log_loader import Repair

REPAIRED = 1
NOTHING, DONE, PLANNED, REFUSED = "nothing-to-do", "repaired", "would-be-repaired", "refused"
WORDS = {NOTHING: "with nothing to do", DONE: "repaired", PLANNED: "would be repaired", REFUSED: "refused"}
AS_A_START = "This made the checks of a broker's start; 'txnkafka verify' checks the rest."
OWNER = "give it to the broker's user ('chown -R') before the broker starts"
IN_FULL = "Every batch and derived file was checked; 'txnkafka verify' also finds faults beyond repair."


@click.command(cls=Command, short_help="Recover a stopped broker's log directory.")
@click.argument("logdir", type=PathOrAddress(), metavar="LOGDIR")
@partition_options
@click.option("--dry-run", is_flag=True, help="Only report the changes, without making them.")
@click.option(
    "--full",
    is_flag=True,
    help="Check every batch and every derived file, regardless of the recovery point.",
)
@click.option(
    "--truncate-corrupt",
    is_flag=True,
    help="Discard a log from damage below its recovery point on: loses durable records.",
)
@click.option("--format", type=click.Choice(["text", "json", "jsonl"]), default="text", show_default=True)
@click.pass_obj
def repair(
    messages: Messages,
    /,
    *,
    logdir: str,
    topic: Topics,
    partition: Partitions,
    dry_run: bool,
    full: bool,
    truncate_corrupt: bool,
    format: str,
) -> int:
    """Recover LOGDIR as a broker does when it starts: finish changes that a crash interrupted, truncate
    incomplete batches after the recovery point, rebuild missing or damaged derived files. Afterwards Apache
    Kafka treats the directory as cleanly stopped, unless a partition was refused or left out.

    No durable record is discarded: a partition that is damaged below its recovery point is refused and stays
    as it is, unless --truncate-corrupt is given. A directory that a broker has locked is refused. Make a copy
    first. "Nothing to do" does not mean that the logs are sound: 'txnkafka verify' checks that. Each changed
    file is listed, except the checkpoints and the marker of a clean stop. --dry-run lists the same.

    Exit status: 0 nothing to do, 1 something is to be made durable, repaired or refused, 2 failure."""
    from txnkafka.env import is_of_another_user
    from txnkafka.storage.log.repair_step import RepairStep
    from txnkafka.storage.recovery.log_loader import Repair

    wanted = Repair(full=full, truncate_corrupt=truncate_corrupt)
    path = _local(logdir)
    with Progress(messages) as progress:
        chosen = _chosen(path, topic, partition)
        progress.phase("recovering the logs")
        directory = _open(path, chosen, wanted, dry_run=dry_run)
        directory.close()
    if not dry_run and is_of_another_user(path):
        messages.note(f"{path} belongs to another user than root, who now owns the written files: {OWNER}")
    steps = list(directory.repairs_of_directory)
    if not directory.was_clean:
        steps.append(RepairStep("data not yet synced", "made durable", "it was not stopped cleanly"))
    rows, repairs = _rows(directory, dry_run), _texts(steps, dry_run)
    if format == "text":
        _write_lines(rows, repairs, dry_run)
        if not directory.was_clean:
            _write_futures(directory)
        write_text(IN_FULL if full else AS_A_START)
    else:
        whole = [{"dry_run": dry_run, "repairs": repairs, "partitions": rows}]
        for document in whole if format == "json" else rows:
            write_json(document)
    return REPAIRED if repairs or any(row["status"] != NOTHING for row in rows) else 0


def _open(
    path: str, only: Collection[TopicPartition] | None, wanted: Repair, *, dry_run: bool
) -> DataDirectory:
    from txnkafka.config import LogConfig
    from txnkafka.env import LocalDataFiles, LocalFileSystem, SystemClock
    from txnkafka.env.overlay import OverlayFiles
    from txnkafka.storage.data_directory import DataDirectory

    logging.getLogger("txnkafka.storage").addHandler(logging.NullHandler())  # all messages are printed below
    # the topics' settings are unknown here, so no producer expires
    config = LogConfig(producer_id_expiration_ms=2**63 - 1)
    return DataDirectory(
        OverlayFiles(LocalFileSystem()) if dry_run else LocalDataFiles(),
        path,
        lambda _: config,
        now_ms=SystemClock().now_ms(),
        repair=wanted,
        only=only,
    )


def _local(address: str) -> str:
    """Return the path of a local directory. Raises LogDirError for an address of another storage."""
    from txnkafka.env import is_remote, open_file_system
    from txnkafka.errors import LogDirError

    if is_remote(address):
        raise LogDirError(
            f"{address}: repair changes files in place, which can be done on a disk of this machine only; "
            "copy the directory here, repair the copy, and copy it back ('txnkafka verify' reads addresses)"
        )
    _, (path,) = open_file_system([address])
    return path


def _chosen(path: str, topic: Topics, partition: Partitions) -> Collection[TopicPartition] | None:
    """Return the chosen partitions; None for all. Raises LogDirError for a directory that is not a log
    directory: a partition-like name is not enough to write files there."""
    from txnkafka.env import LocalFileSystem
    from txnkafka.errors import LogDirError
    from txnkafka.logdir import LogDir
    from txnkafka.storage.formats import parse_partition_directory

    files = LocalFileSystem()
    if not files.is_directory(path):
        raise LogDirError(f"{path} {'is no directory' if files.exists(path) else 'does not exist'}")
    names = [entry.name for entry in files.list(path) if entry.is_directory]
    if not any(map(parse_partition_directory, names)):
        raise LogDirError(
            f"{path} has no partition directories; name the log directory of a broker (its log.dirs), "
            "not a partition"
        )
    log_dir = LogDir(path)
    if not topic and not partition:
        return None
    return frozenset(chosen_partitions(log_dir, topic, partition))


def _texts(steps: list[RepairStep], dry_run: bool) -> list[str]:
    return [step.planned if dry_run else str(step) for step in steps]


def _rows(directory: DataDirectory, dry_run: bool) -> list[dict[str, Any]]:
    done = PLANNED if dry_run else DONE
    rows = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "status": done if log.repairs else NOTHING,
            "log_start_offset": log.log_start_offset,
            "log_end_offset": log.log_end_offset,
            "repairs": _texts(log.repairs, dry_run),
            "error": None,
        }
        for partition, log in directory.logs.items()
    ]
    rows += [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "status": REFUSED,
            "log_start_offset": None,
            "log_end_offset": None,
            "repairs": [],
            "error": str(error),
        }
        for partition, error in directory.refused.items()
    ]
    return sorted(rows, key=lambda row: (row["topic"], row["partition"]))


def _write_futures(directory: DataDirectory) -> None:
    """Print the partitions left to Kafka, which makes Kafka recover the directory."""
    from txnkafka.storage.formats.partition_names import named_partitions

    for each in named_partitions(directory.files.list(directory.path)):
        if each.is_copy:
            name = printable(each.name)
            write_text(f"directory: {name} is left to the broker, which recovers all when it starts")


def _write_lines(rows: list[dict[str, Any]], repairs: list[str], dry_run: bool) -> None:
    for text in repairs:
        write_text(f"directory: {printable(text)}")
    for row in rows:
        where = printable(f"{row['topic']}-{row['partition']}")
        for text in row["repairs"]:
            write_text(f"{where}: {printable(text)}")
        if row["error"] is not None:
            write_text(f"{where}: refused: {printable(row['error'])}")
    kinds = (NOTHING, PLANNED if dry_run else DONE, REFUSED)
    counts = [f"{sum(row['status'] == status for row in rows):,} {WORDS[status]}" for status in kinds]
    ending = "; this was a dry run, nothing was changed" if dry_run else ""
    write_text(f"{len(rows):,} partition{'' if len(rows) == 1 else 's'}: {', '.join(counts)}{ending}")
