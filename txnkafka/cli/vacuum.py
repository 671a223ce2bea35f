"""``txnkafka vacuum`` lists and removes files that killed tasks of the Spark sink have left."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from txnkafka.cli.command import Command
from txnkafka.cli.completion import PathOrAddress
from txnkafka.cli.output import write_text
from txnkafka.shown import counted, iso_time, size

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Age(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """A number of seconds, minutes, hours or days: 90m, 12h, 7d."""

    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        match = re.fullmatch(r"(\d{1,6})([smhd])", str(value))
        if match is None:
            self.fail(f"{value!r} is not an age such as 90m, 12h or 7d", param, ctx)
        return timedelta(**{_UNITS[match[2]]: int(match[1])})


@click.command(cls=Command, short_help="Remove files that killed tasks of the Spark sink have left.")
@click.argument("path", type=PathOrAddress())
@click.option(
    "--older-than", type=Age(), default="7d", show_default=True, metavar="AGE",
    help="Leave younger files alone: a running query may need them.",
)  # fmt: skip
@click.option("--remove", is_flag=True, help="Remove the files; without it they are only listed.")
@click.pass_obj
def vacuum(messages: Messages, /, *, path: str, older_than: timedelta, remove: bool) -> int:
    """List the staged files of the Spark sink that are older than an age, or remove them.

    PATH is the sink's option stagingPath, or the data directory or checkpoint beside which it stages. The
    data of published batches is in the target; no staged file is needed for it."""
    from txnkafka.env import LocalDataFiles, SystemClock, list_of_paths
    from txnkafka.staging import orphans, staging_beside

    (text,) = list_of_paths(path)
    files = LocalDataFiles()
    before_ms = SystemClock().now_ms() - older_than // timedelta(milliseconds=1)
    count = total = 0
    for orphan in orphans(files, staging_beside(files, text), before_ms):
        if remove:
            files.remove(orphan.path)
        write_text(f"{iso_time(orphan.modified_ms)}  {size(orphan.size):>8}  {orphan.path}")
        count, total = count + 1, total + orphan.size
    end = "removed" if remove else "older than the age" + (": --remove removes them" if count else "")
    messages.note(f"{counted(count, 'file')}, {size(total)}, {end}")
    return 0
