"""New offsets of groups for ``txnkafka groups --reset-offsets``, as ``kafka-consumer-groups.sh`` chooses
them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from txnkafka.cli.command import Function, add_options
from txnkafka.cli.times import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txnkafka.client.admin import Admin
    from txnkafka.model import TopicPartition

CHOICES = ("to_earliest", "to_latest", "to_offset", "to_datetime", "shift_by")


def reset_options(function: Function) -> Function:
    """Add --reset-offsets with its choices, and --dry-run, to a command."""
    return add_options(
        function,
        click.option(
            "--reset-offsets",
            is_flag=True,
            help="Commit other offsets for the groups of --group, which must have no members.",
        ),
        click.option("--to-earliest", is_flag=True, help="Reset to the first record."),
        click.option("--to-latest", is_flag=True, help="Reset to the last stable offset."),
        click.option("--to-offset", type=click.IntRange(min=0), metavar="N", help="Reset to this offset."),
        click.option("--to-datetime", type=Timestamp(), help="Reset to the first record since a time."),
        click.option("--shift-by", type=int, metavar="N", help="Reset to N records further, or -N back."),
        click.option("--dry-run", is_flag=True, help="Only show the new offsets, or the groups to delete."),
    )


class Target(NamedTuple):
    """The new place: one of ``CHOICES`` and its value."""

    choice: str
    value: int


def pop_target(options: dict[str, Any]) -> Target | None:
    """Remove the choices from a command's options; return the one that is given. Raises UsageError for more
    than one, and for a choice without --reset-offsets or the reverse."""
    given = {name: options.pop(name) for name in CHOICES}
    chosen = [
        Target(name, int(value)) for name, value in given.items() if value is not None and value is not False
    ]
    names = ", ".join(f"--{name.replace('_', '-')}" for name in CHOICES)
    if not options.pop("reset_offsets"):
        if chosen:
            raise click.UsageError(f"--{chosen[0].choice.replace('_', '-')} needs --reset-offsets")
        return None
    if len(chosen) != 1:
        raise click.UsageError(f"--reset-offsets needs one of {names}")
    return chosen[0]


def new_offsets(
    admin: Admin, target: Target, current: Mapping[TopicPartition, int | None]
) -> dict[TopicPartition, int]:
    """Return the new offset of each partition, within its log. ``current`` has the committed offsets, None
    for a partition without one, which --shift-by counts from the first record."""
    from txnkafka.client.admin import OffsetSpec

    first = _listed(admin, current, OffsetSpec.EARLIEST)
    last = _listed(admin, current, OffsetSpec.LATEST)
    if target.choice == "to_earliest":
        return first
    if target.choice == "to_latest":
        return last
    if target.choice == "to_datetime":
        found = _listed(admin, current, target.value)
        return {each: offset if offset >= 0 else last[each] for each, offset in found.items()}
    wanted = {
        each: target.value if target.choice == "to_offset" else _known(offset, first[each]) + target.value
        for each, offset in current.items()
    }
    return {each: min(max(offset, first[each]), last[each]) for each, offset in wanted.items()}


def _known(offset: int | None, first: int) -> int:
    return first if offset is None else offset


def _listed(admin: Admin, partitions: Iterable[TopicPartition], spec: int) -> dict[TopicPartition, int]:
    return {each: found.offset for each, found in admin.list_offsets(dict.fromkeys(partitions, spec)).items()}
