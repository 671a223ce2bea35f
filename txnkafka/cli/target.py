"""The shared options that select log directories and partitions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

import click

from txnkafka.cli.command import Function, add_options
from txnkafka.cli.completion import PathOrAddress, TopicName, complete_partition
from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection

    from click.shell_completion import CompletionItem

    from txnkafka.cli.output import Messages
    from txnkafka.logdir import LogDir
    from txnkafka.logdir.directory_files import ReadMethod

Topics = tuple[str, ...]
Partitions = tuple[int | TopicPartition, ...]
StorageOptions = tuple[tuple[str, Any], ...]


class Partition(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """The number of a partition, or its full name such as orders-3."""

    name = "partition"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        text = str(value)
        if text.isdecimal():
            return int(text)
        topic, _, number = text.rpartition("-")
        if not topic or not number.isdecimal():
            self.fail(f"{text!r} is not a partition number or a full name such as orders-3", param, ctx)
        return TopicPartition(topic, int(number))

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete full names."""
        return complete_partition(ctx, incomplete)


class StorageOption(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """KEY=VALUE; true, false and JSON objects are parsed, everything else is text."""

    name = "option"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        key, sign, text = str(value).partition("=")
        if not key or not sign:
            self.fail("must be KEY=VALUE, as in allow_http=true", param, ctx)  # the value may be a secret
        if text not in ("true", "false") and text[:1] != "{":
            return key, text
        try:
            return key, json.loads(text)
        except ValueError:
            self.fail(f"the value of {key} is not a JSON object", param, ctx)


def storage_option(function: Function) -> Function:
    """Add --storage-option to a command that accepts addresses."""
    return click.option(
        "--storage-option",
        "storage_options",
        type=StorageOption(),
        multiple=True,
        metavar="KEY=VALUE",
        help="For addresses: an option of the storage's package, such as allow_http=true. Repeatable.",
    )(function)


def partition_options(function: Function) -> Function:
    """Add --topic and --partition to a command."""
    return add_options(
        function,
        click.option(
            "--topic",
            type=TopicName(),
            multiple=True,
            metavar="T",
            help="Only this topic, or a pattern such as 'orders*'. Repeatable.",
        ),
        click.option(
            "--partition",
            type=Partition(),
            multiple=True,
            metavar="P",
            help="Only this partition: its number, with --topic, or a whole name (orders-3). Repeatable.",
        ),
    )


def directory_options(function: Function) -> Function:
    """Add [LOGDIR]..., by default the current directory, --io and --storage-option to a command."""
    return add_options(
        function,
        click.argument("logdir", nargs=-1, default=(".",), type=PathOrAddress(), metavar="[LOGDIR]..."),
        click.option(
            "--io",
            type=click.Choice(["auto", "mmap", "pread"]),
            default="auto",
            show_default=True,
            help="Method of reading files; auto maps them unless a broker has locked the directory.",
        ),
        storage_option,
    )


def threads_option(function: Function) -> Function:
    """Add --threads to a command that decodes or checks records."""
    return click.option(
        "--threads",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of reader threads; default: one per processor, at most 4.",
    )(function)


def target_options(function: Function) -> Function:
    """Add LOGDIR..., --topic, --partition, --io and --storage-option to a command."""
    return add_options(function, partition_options, directory_options)


def open_log_dir(
    paths: tuple[str, ...],
    io: ReadMethod,
    messages: Messages,
    storage_options: StorageOptions,
    threads: int | None = None,
) -> LogDir:
    """Open the directories; report unreadable checkpoints."""
    from txnkafka.logdir import LogDir

    log_dir = LogDir(paths, io=io, threads=threads, storage_options=dict(storage_options))
    for finding in log_dir.findings:
        messages.finding(finding)
    return log_dir


def is_chosen(candidate: TopicPartition, topics: Topics, partitions: Partitions) -> bool:
    """Return True if --topic and --partition select a partition: by full name, or by topic and, if given,
    number. Without both options every partition is selected."""
    from txnkafka.logdir.names import topic_matches

    if not topics:
        return not partitions or candidate in partitions
    numbers = [number for number in partitions if isinstance(number, int)]
    of_topic = any(topic_matches(candidate.topic, pattern) for pattern in topics)
    return candidate in partitions or (of_topic and (not numbers or candidate.partition in numbers))


def chosen_partitions(
    log_dir: LogDir, topics: Topics, partitions: Partitions, elsewhere: Collection[TopicPartition] = ()
) -> list[TopicPartition]:
    """Return the partitions that --topic and --partition select, from the directories and from ``others``,
    Kafka's own topics last. Raises an error for a value that selects none."""
    from txnkafka.logdir.names import internal_last, topic_matches

    there = internal_last({*log_dir.topic_partitions, *elsewhere})
    numbers = [number for number in partitions if isinstance(number, int)]
    if numbers and not topics:
        raise click.UsageError(
            f"--partition needs --topic, or a whole name as in --partition orders-{numbers[0]}"
        )
    for topic in topics:
        if not any(topic_matches(candidate.topic, topic) for candidate in there):
            _unknown_topic(log_dir, there, topic)
    for partition in partitions:
        whole = isinstance(partition, TopicPartition)
        if not any(
            candidate == partition if whole else is_chosen(candidate, topics, (partition,))
            for candidate in there
        ):
            _unknown_partition(log_dir, there, topics, partition)
    return [candidate for candidate in there if is_chosen(candidate, topics, partitions)]


def readable_partitions(log_dir: LogDir, topics: Topics, partitions: Partitions) -> list[TopicPartition]:
    """Return ``chosen_partitions`` of the user's topics: without both options Kafka's own topics are left
    out, unless the directory has no others."""
    from txnkafka.logdir.names import without_internal

    chosen = chosen_partitions(log_dir, topics, partitions)
    return chosen if topics or partitions else without_internal(chosen)


def _unknown_topic(log_dir: LogDir, there: list[TopicPartition], topic: str) -> NoReturn:
    if any(str(candidate) == topic for candidate in there):
        _unknown(log_dir, f"topic {topic}", f"did you mean --partition {topic}?")
    _unknown(log_dir, f"topic {topic}", _topics_like(topic, there))


def _unknown_partition(
    log_dir: LogDir, there: list[TopicPartition], topics: Topics, partition: int | TopicPartition
) -> NoReturn:
    from txnkafka.logdir.names import what_there_is

    name = f"partition {partition} of {' or '.join(topics)}"
    if isinstance(partition, TopicPartition):
        name, topics = str(partition), (partition.topic,)
        if all(candidate.topic != partition.topic for candidate in there):
            _unknown(log_dir, name, _topics_like(partition.topic, there))
    numbers = sorted({candidate.partition for candidate in there if is_chosen(candidate, topics, ())})
    _unknown(log_dir, name, what_there_is("partitions", list(map(str, numbers)), ""))


def _topics_like(topic: str, there: list[TopicPartition]) -> str:
    from txnkafka.logdir.names import what_there_is

    return what_there_is("topics", list(dict.fromkeys(candidate.topic for candidate in there)), topic)


def _unknown(log_dir: LogDir, what: str, there: str) -> NoReturn:
    from txnkafka.errors import UnknownTopicOrPartitionError

    raise UnknownTopicOrPartitionError(f"no {what} in {', '.join(log_dir.paths)}; {there}")
