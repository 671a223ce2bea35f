"""``txnkafka consume`` prints the records of topics as they come, with the options of kcat."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from txnkafka.cli.cat import Format
from txnkafka.cli.cluster_options import Cluster, cluster_options, opened
from txnkafka.cli.command import Command
from txnkafka.cli.consumed_range import Bound, BoundType, Range, begin, offsets_at, range_of
from txnkafka.cli.encoding import encoding_option
from txnkafka.cli.produce import Delimiter

if TYPE_CHECKING:
    from txnkafka.cli.consumed_text import ConsumedText
    from txnkafka.cli.output import Messages
    from txnkafka.client.consumer import Consumer, ConsumerRecord
    from txnkafka.model import TopicPartition

INTERRUPTED = 130  # 128 + SIGINT, the shells' convention
_POLL_MS: Final = 500


@click.command(cls=Command, short_help="Print records as they come.")
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@click.option("-G", "--group", metavar="GROUP", help="Read as a member of a group, and commit its offsets.")
@click.option(
    "-p", "--partition", "partitions", type=click.IntRange(min=0), multiple=True, help="Repeatable."
)
@click.option(
    "-o",
    "--offset",
    "bounds",
    type=BoundType(),
    multiple=True,
    metavar="OFFSET",
    help="beginning (default), end, stored (with -G), N, -N, s@TIME; e@TIME ends there.",
)
@click.option("-c", "--count", type=click.IntRange(min=1), help="Exit after this many records.")
@click.option("-e", "--exit", "at_end", is_flag=True, help="Exit at the end of all partitions.")
@click.option(
    "-f",
    "--format",
    type=Format(),
    metavar="jsonl|text|TEMPLATE",
    help="A template has the letters of kcat: %t %p %o %T %k %s %K %S %R %h. Default: values.",
)
@click.option("-J", "--json", "is_json", is_flag=True, help="The same as --format jsonl.")
@click.option("-K", "--key-delimiter", type=Delimiter(), help="Print keys, and this after each, as in '\\t'.")
@click.option("-D", "--delimiter", type=Delimiter(), default="\\n", show_default=True, help="Ends a record.")
@click.option(
    "--isolation-level",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    default="read_committed",
    show_default=True,
    help="read_committed leaves aborted records out and waits at the last stable offset.",
)
@click.option("-u", "--unbuffered", is_flag=True, help="Write each record at once.")
@encoding_option
@cluster_options
@click.pass_obj
def consume(
    messages: Messages,
    /,
    *,
    topics: tuple[str, ...],
    group: str | None,
    partitions: tuple[int, ...],
    bounds: tuple[Bound, ...],
    count: int | None,
    at_end: bool,
    isolation_level: str,
    unbuffered: bool,
    **options: Any,
) -> int:
    """Print the records of TOPICs from the beginning, and new ones as they come, until Ctrl-C.

    With -G the partitions are divided among the members of GROUP. It continues at its committed offsets, and
    commits the offsets of printed records. A TOPIC that begins with ^ is a regular expression then.

    Exit status: 130 after Ctrl-C."""
    span = range_of(bounds, in_group=group is not None)
    if group is not None and partitions:
        raise click.UsageError("-p: a group divides the partitions itself")
    output = _output(options)
    messages.detail(f"isolation level {isolation_level}")
    with opened(messages, options) as cluster:
        consumer = cluster.consumer(
            group_id=group,
            isolation_level=isolation_level,
            enable_auto_commit="false",
            allow_auto_create_topics="false",
            auto_offset_reset="latest" if span.start.kind == "end" else "earliest",
        )
        with consumer:
            if group is None:
                _assign(cluster, consumer, topics, partitions, span)
            else:
                _subscribe(cluster, consumer, topics)
            reading = Reading(consumer, output, count, in_group=group is not None, unbuffered=unbuffered)
            reading.stop_at(_ends(consumer, span.end_time))
            try:
                reading.run(at_end=at_end or span.end_time is not None)
            except KeyboardInterrupt:
                return INTERRUPTED
    return 0


class Reading:
    """Prints the records of a consumer, and commits the offsets of its group after printed records."""

    def __init__(
        self, consumer: Consumer, output: ConsumedText, most: int | None, *, in_group: bool, unbuffered: bool
    ) -> None:
        self._stops: dict[TopicPartition, int] = {}  # no record from there on is printed
        self._ends: dict[TopicPartition, int] = {}  # of partitions when they were first seen
        self._consumer = consumer
        self._output = output
        self._left = most
        self._in_group = in_group
        self._is_unbuffered = unbuffered

    def stop_at(self, offsets: dict[TopicPartition, int]) -> None:
        """Print no record from these offsets on."""
        self._stops, self._ends = offsets, dict(offsets)

    def run(self, *, at_end: bool) -> None:
        """Print until enough records are printed or, with ``at_end``, until all partitions are at their
        ends."""
        while self._left is None or self._left > 0:
            found = self._print()
            if found and (self._is_unbuffered or self._in_group):
                self._flush()
            elif not found:
                sys.stdout.flush()
            if at_end and self._is_at_end():
                break
        self._flush()

    def _print(self) -> int:
        """Print the next records; return their number. Columns are faster, but have more records than a
        limit may allow."""
        if self._output.prefers_columns and self._left is None and not self._stops:
            return self._output.write_columns(self._consumer.poll_columns(_POLL_MS))
        found = self._consumer.poll(_POLL_MS, max_records=self._left)
        records = [each for each in found if self._is_wanted(each)] if self._stops else found
        self._output.write_records(records)
        if self._left is not None:
            self._left -= len(records)
        return len(found)

    def _flush(self) -> None:
        sys.stdout.flush()
        if self._in_group:
            self._consumer.commit()

    def _is_wanted(self, record: ConsumerRecord) -> bool:
        from txnkafka.model import TopicPartition

        return record.offset < self._stops[TopicPartition(record.topic, record.partition)]

    def _is_at_end(self) -> bool:
        """Return whether all partitions have reached the ends that they had when they were first seen."""
        assigned = self._consumer.assignment()
        new = [each for each in assigned if each not in self._ends]
        if new:
            self._ends.update(self._consumer.end_offsets(new))
        return bool(assigned) and all(self._consumer.position(each) >= self._ends[each] for each in assigned)


def _assign(
    cluster: Cluster,
    consumer: Consumer,
    topics: tuple[str, ...],
    numbers: tuple[int, ...],
    span: Range,
) -> None:
    """Assign the partitions of topics. Raises UnknownTopicOrPartitionError."""
    from txnkafka.errors import UnknownTopicOrPartitionError
    from txnkafka.model import TopicPartition

    with cluster.admin() as admin:
        described = admin.describe_topics(topics)
    partitions = []
    for name, topic in described.items():
        there = [each.partition for each in topic.partitions]
        for number in numbers or there:
            if number not in there:
                raise UnknownTopicOrPartitionError(
                    f"{name}-{number}: the topic has partitions 0 to {len(there) - 1}"
                )
            partitions.append(TopicPartition(name, number))
    consumer.assign(partitions)
    begin(consumer, partitions, span.start)


def _subscribe(cluster: Cluster, consumer: Consumer, topics: tuple[str, ...]) -> None:
    """Subscribe to topics, or to patterns with ^. Raises UnknownTopicOrPartitionError: a group would wait for
    a missing topic without a word."""
    with cluster.admin() as admin:
        admin.describe_topics([each for each in topics if not each.startswith("^")])
    if any(each.startswith("^") for each in topics):
        consumer.subscribe(pattern="|".join(each.removeprefix("^") for each in topics))
    else:
        consumer.subscribe(topics)


def _ends(consumer: Consumer, end_time: int | None) -> dict[TopicPartition, int]:
    if end_time is None:
        return {}
    return offsets_at(consumer, list(consumer.assignment()), end_time)


def _output(options: dict[str, Any]) -> ConsumedText:
    """Remove the options of the output; return the writer of records. Raises UsageError for
    options that exclude each other."""
    form, is_json, encoding = options.pop("format"), options.pop("is_json"), options.pop("encoding")
    key_delimiter, delimiter = options.pop("key_delimiter"), options.pop("delimiter")
    if form == "csv":
        raise click.UsageError("--format csv reads files only: 'txnkafka cat' and 'txnkafka export'")
    if (form is not None) + is_json + (key_delimiter is not None) > 1:
        raise click.UsageError("--format, -J and -K exclude each other")
    from txnkafka.cli.consumed_text import ConsumedText
    from txnkafka.cli.record_template import Letter
    from txnkafka.cli.record_text import Printing

    if form is None and not is_json:
        keys = [] if key_delimiter is None else [Letter("k"), key_delimiter]
        form = [*keys, Letter("s"), delimiter]
    return ConsumedText(Printing("jsonl" if is_json else form, encoding))
