"""Which records a command reads: the options that ``cat`` and ``export`` share, and what they mean for a
partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from txnkafka.cli.times import Timestamp
from txnkafka.errors import CorruptRecordError

if TYPE_CHECKING:
    from txnkafka.logdir import PartitionView

__all__ = ["Wanted", "wanted_options", "where"]

Function = TypeVar("Function", bound=Callable[..., object])


class Wanted(NamedTuple):
    """The options."""

    isolation_level: str
    start_offset: int | None
    end_offset: int | None
    start_time: int | None
    end_time: int | None
    up_to: str
    on_corrupt: str

    @classmethod
    def of(cls, options: dict[str, Any]) -> Wanted:
        """Take them out of what a command was given; raises UsageError for what excludes each other."""
        for bound in ("start", "end"):
            if options[f"{bound}_offset"] is not None and options[f"{bound}_time"] is not None:
                raise click.UsageError(f"--{bound}-offset and --{bound}-time exclude each other")
        return cls(**{name: options.pop(name) for name in cls._fields})

    @property
    def read_committed(self) -> bool:
        """Whether undecided records are held back."""
        return self.isolation_level == "read_committed"

    def bounds(
        self, view: PartitionView, left_out: Callable[[CorruptRecordError], None]
    ) -> tuple[int | None, int | None] | None:
        """First offset and the offset to stop at; None when nothing is as young as the start time.

        ``left_out`` is told of a damaged batch that is passed over on the way.
        """
        start, end = self.start_offset, self.end_offset
        if self.start_time is not None:
            start = self._offset_at(view, self.start_time, left_out)
            if start is None:
                return None
        if self.end_time is not None:
            end = self._offset_at(view, self.end_time, left_out)
        return start, end

    def _offset_at(
        self, view: PartitionView, timestamp: int, left_out: Callable[[CorruptRecordError], None]
    ) -> int | None:
        """The offset of that time; where the batch that holds it is damaged and to be left out, its first."""
        try:
            found = view.offset_for_timestamp(timestamp, self.isolation_level)
        except CorruptRecordError as error:
            error.locate(file=_file_of(view, error.offset), topic=view.topic, partition=view.partition)
            if self.on_corrupt != "skip" or error.offset is None:
                raise
            left_out(error)
            return max(error.offset, view.log_start_offset)
        return None if found is None else found.offset

    def notes(self, view: PartitionView) -> Iterator[str]:
        """What a reader should know of where reading ends."""
        end = view.end_offset(self.isolation_level, self.up_to)
        name, log_end = view.topic_partition, view.log_end_offset
        high_watermark = view.high_watermark
        if self.up_to == "log-end" and high_watermark is not None and high_watermark < end:
            yield (
                f"{name}: offsets {high_watermark} to {end - 1} lie above the high watermark that the broker "
                "noted last; --up-to high-watermark leaves them out"
            )
        if self.read_committed and view.last_stable_offset < log_end:
            count = len(view.open_transactions)
            yield (
                f"{name}: read up to the last stable offset {view.last_stable_offset}, the log ends at "
                f"{log_end}: {count} open transaction{'s' * (count != 1)}; 'txnkafka lso' says more"
            )


def wanted_options(function: Function) -> Function:
    """The options of ``Wanted``."""
    for option in (
        click.option(
            "--on-corrupt",
            type=click.Choice(["stop", "skip"]),
            default="stop",
            show_default=True,
            help="At a damaged batch: stop reading that partition, or leave the batch out.",
        ),
        click.option(
            "--up-to",
            type=click.Choice(["high-watermark", "log-end"]),
            default="log-end",
            show_default=True,
            help="Whether to stop at the high watermark that the broker noted last.",
        ),
        click.option(
            "--end-time", type=Timestamp(), help="Stop before the first record at or after this time."
        ),
        click.option(
            "--start-time", type=Timestamp(), help="From the first record at or after this time on."
        ),
        click.option("--end-offset", type=click.IntRange(min=0), help="Stop before this offset."),
        click.option(
            "--start-offset", type=click.IntRange(min=0), help="First offset; default: the log start."
        ),
        click.option(
            "--isolation-level",
            type=click.Choice(["read_committed", "read_uncommitted"]),
            default="read_committed",
            show_default=True,
            help="read_committed leaves aborted records out and stops at the last stable offset.",
        ),
    ):
        function = option(function)
    return function


def _file_of(view: PartitionView, offset: int | None) -> str | None:
    """The segment that a batch of that base offset lies in."""
    paths = [each.path for each in view.segments if offset is not None and each.base_offset <= offset]
    return paths[-1] if paths else None


def where(error: CorruptRecordError) -> str:
    """The error without the advice that is meant for Python."""
    return str(error).removesuffix(error.remedy).removesuffix(". ")
