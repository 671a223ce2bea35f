"""The option ``-o`` of ``txnkafka consume``: where reading begins and ends, with the words of kcat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from txnkafka.cli.completion import beginning_with
from txnkafka.cli.times import Timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

    from txnkafka.client.consumer import Consumer
    from txnkafka.model import TopicPartition

WORDS = ("beginning", "end", "stored")
FORMS = "beginning, end, stored, an offset N, the last -N records, s@TIME or e@TIME"


class Bound(NamedTuple):
    """One value of ``-o``: the kind, and its number."""

    kind: Literal["beginning", "end", "stored", "offset", "last", "start_time", "end_time"]
    value: int = 0


class BoundType(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """A value of ``-o``."""

    name = "offset"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Bound:
        if isinstance(value, Bound):
            return value
        text = str(value)
        if text in WORDS:
            return Bound(text)  # type: ignore[arg-type]
        if text[:2] in ("s@", "e@"):
            kind = Bound("start_time" if text[0] == "s" else "end_time")
            return kind._replace(value=Timestamp().convert(text[2:], param, ctx))
        if text.removeprefix("-").isdecimal():
            number = int(text)
            return Bound("last", -number) if text.startswith("-") else Bound("offset", number)
        return self.fail(f"{text!r} is none of {FORMS}", param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the words."""
        return beginning_with(incomplete, WORDS)


class Range(NamedTuple):
    """The start, and the time of the end."""

    start: Bound
    end_time: int | None


def range_of(bounds: Sequence[Bound], *, in_group: bool) -> Range:
    """Return the range of all values of ``-o``. Raises UsageError for values that exclude each other; in a
    group, for those that the group decides."""
    starts = [each for each in bounds if each.kind != "end_time"]
    ends = [each.value for each in bounds if each.kind == "end_time"]
    if len(starts) > 1 or len(ends) > 1:
        raise click.UsageError("-o: give one start, and at most one end e@TIME")
    start = starts[0] if starts else Bound("stored" if in_group else "beginning")
    if in_group and (ends or start.kind not in WORDS):
        raise click.UsageError("-o: a group continues at its offsets: beginning, end or stored")
    if not in_group and start.kind == "stored":
        raise click.UsageError("-o stored needs a group: -G GROUP")
    return Range(start, ends[0] if ends else None)


def begin(consumer: Consumer, partitions: Sequence[TopicPartition], start: Bound) -> None:
    """Move an assigned consumer to the start."""
    if start.kind == "beginning":
        consumer.seek_to_beginning(*partitions)
    elif start.kind == "end":
        consumer.seek_to_end(*partitions)
    elif start.kind == "offset":
        for each in partitions:
            consumer.seek(each, start.value)
    elif start.kind == "last":
        first, last = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
        for each in partitions:
            consumer.seek(each, max(first[each], last[each] - start.value))
    else:
        for each, offset in offsets_at(consumer, partitions, start.value).items():
            consumer.seek(each, offset)


def offsets_at(
    consumer: Consumer, partitions: Sequence[TopicPartition], time_ms: int
) -> dict[TopicPartition, int]:
    """Return the first offset at a time or later, else the end."""
    last = consumer.end_offsets(partitions)
    found = consumer.offsets_for_times(dict.fromkeys(partitions, time_ms))
    return {each: last[each] if (place := found[each]) is None else place.offset for each in partitions}
