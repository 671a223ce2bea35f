"""Which log directory and which of its partitions a command is about: the options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.logdir import LogDir
    from txnkafka.model import TopicPartition

__all__ = ["chosen_partitions", "open_log_dir", "target_options"]

Function = TypeVar("Function", bound=Callable[..., object])


def target_options(function: Function) -> Function:
    """LOGDIR..., --topic, --partition and --io."""
    for option in (
        click.option(
            "--io",
            type=click.Choice(["auto", "mmap", "pread"]),
            default="auto",
            show_default=True,
            help="How files are read; auto maps them unless a broker holds the directory.",
        ),
        click.option("--partition", type=click.IntRange(min=0), help="Only this partition; needs --topic."),
        click.option("--topic", help="Only this topic."),
        click.argument("logdir", nargs=-1, required=True, metavar="LOGDIR..."),
    ):
        function = option(function)
    return function


def open_log_dir(paths: tuple[str, ...], io: str, messages: Messages) -> LogDir:
    """Open the directories; says what of their checkpoints could not be read."""
    from txnkafka.logdir import LogDir

    log_dir = LogDir(paths, io=io)
    for finding in log_dir.findings:
        messages.finding(finding)
    return log_dir


def chosen_partitions(log_dir: LogDir, topic: str | None, partition: int | None) -> list[TopicPartition]:
    """The partitions that --topic and --partition leave; raises an error that says what there is."""
    if partition is not None and topic is None:
        raise click.UsageError("--partition needs --topic")
    there = log_dir.topic_partitions
    if topic is None:
        return there
    of_topic = [each for each in there if each.topic == topic]
    if not of_topic:
        _unknown(f"no topic {topic} in {', '.join(log_dir.paths)}", "topics", list(log_dir.topics))
    found = [each for each in of_topic if partition in (None, each.partition)]
    if not found:
        numbers = [str(each.partition) for each in of_topic]
        _unknown(f"no partition {partition} of {topic} in {', '.join(log_dir.paths)}", "partitions", numbers)
    return found


def _unknown(what: str, kind: str, names: list[str]) -> None:
    from txnkafka.errors import UnknownTopicOrPartitionError

    there = f"there are the {kind} {', '.join(names)}" if names else f"there are no {kind}"
    raise UnknownTopicOrPartitionError(f"{what}; {there}")
