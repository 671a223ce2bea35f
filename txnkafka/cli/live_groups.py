"""``txnkafka groups`` for a cluster: lists groups with their lags, resets their offsets, deletes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from txnkafka.cli.cluster_options import cluster_options, opened
from txnkafka.cli.command import Function, add_options
from txnkafka.cli.named import check_patterns, is_named
from txnkafka.cli.offset_reset import Target, new_offsets, pop_target, reset_options
from txnkafka.cli.output import Layout, write_text
from txnkafka.cli.rows import Row, write_rows
from txnkafka.cli.target import is_chosen

if TYPE_CHECKING:
    from collections.abc import Collection

    from txnkafka.cli.output import Messages
    from txnkafka.cli.target import Partitions, Topics
    from txnkafka.client.admin import Admin, GroupDescription
    from txnkafka.client.offsets import OffsetAndMetadata
    from txnkafka.model import TopicPartition

COLUMNS = {
    "GROUP": "group",
    "TOPIC": "topic",
    "PARTITION": "partition",
    "CURRENT-OFFSET": "current_offset",
    "LOG-END-OFFSET": "log_end_offset",
    "LAG": "lag",
    "STABLE-OFFSET": "last_stable_offset",
    "STABLE-LAG": "stable_lag",
    "CONSUMER-ID": "consumer_id",
}
WIDE = {
    "HOST": "host",
    "CLIENT-ID": "client_id",
    "STATE": "state",
    "PROTOCOL": "type",
    "LEADER-EPOCH": "leader_epoch",
    "METADATA": "metadata",
}
LISTED = {"GROUP": "group", "STATE": "state", "PROTOCOL": "type", "PROTOCOL-TYPE": "protocol_type"}
RESET = {"GROUP": "group", "TOPIC": "topic", "PARTITION": "partition"} | {
    "CURRENT-OFFSET": "current_offset", "NEW-OFFSET": "new_offset",
}  # fmt: skip
LAYOUT = Layout(
    ("GROUP", "TOPIC", "CONSUMER-ID", "CLIENT-ID", "METADATA"),
    ("STABLE-OFFSET", "LOG-END-OFFSET", "CONSUMER-ID", "LAG", "CURRENT-OFFSET"),
)


def live_options(function: Function) -> Function:
    """Add the options of this file to the command."""
    return add_options(
        function,
        cluster_options,
        click.option("--list", "is_list", is_flag=True, help="Only the names and states of groups."),
        reset_options,
        click.option("--delete", is_flag=True, help="Delete the groups of --group, which have no members."),
    )


class Request:
    """The options of ``live_options``, removed from a command's options."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.cluster = {name: options.pop(name) for name in ("data", "bootstrap", "settings")}
        self.is_list: bool = options.pop("is_list")
        self.is_deletion: bool = options.pop("delete")
        self.is_dry_run: bool = options.pop("dry_run")
        self.target = pop_target(options)
        self.is_live = self.cluster["data"] is not None or self.cluster["bootstrap"] is not None
        if sum((self.is_list, self.is_deletion, self.target is not None)) > 1:
            raise click.UsageError("--list, --reset-offsets and --delete exclude each other")
        if not self.is_live and (self.is_list or self.is_deletion or self.target or self.is_dry_run):
            raise click.UsageError(
                "--list, --reset-offsets, --delete and --dry-run need a cluster: --data or --bootstrap"
            )


class Selection(NamedTuple):
    """The groups of --group, and the partitions of --topic and --partition."""

    patterns: tuple[str, ...]
    topics: Topics
    partitions: Partitions

    def has(self, partition: TopicPartition) -> bool:
        """Return whether a partition is selected."""
        return is_chosen(partition, self.topics, self.partitions)


def run(messages: Messages, request: Request, selection: Selection, output_format: str) -> int:
    """List groups of a cluster, reset their offsets or delete them; return the exit status."""
    patterns = selection.patterns
    if (request.is_deletion or request.target is not None) and not patterns:
        raise click.UsageError("name the groups: --group GROUP")
    with opened(messages, request.cluster) as cluster, cluster.admin() as admin:
        listed = admin.list_groups()
        names = [each.group_id for each in listed]
        check_patterns(patterns, names, "group", "groups", cluster.place)
        chosen = [each for each in listed if is_named(each.group_id, patterns)]
        names = [each.group_id for each in chosen]
        if request.is_deletion:
            _delete(admin, names, is_dry_run=request.is_dry_run)
        elif request.is_list:
            rows: list[Row] = [{**each._asdict(), "group": each.group_id} for each in chosen]
            write_rows(rows, output_format, LISTED, {}, LAYOUT)
        elif request.target is not None:
            rows = _reset(admin, request, request.target, names, selection)
            write_rows(rows, output_format, RESET, {}, LAYOUT)
        else:
            rows = _lags(admin, names, selection)
            write_rows(rows, output_format, COLUMNS, WIDE, LAYOUT)
    if request.is_dry_run:
        messages.note("dry run: nothing was changed")
    return 0


def _delete(admin: Admin, names: list[str], *, is_dry_run: bool) -> None:
    if not is_dry_run:
        admin.delete_groups(names)
    for name in names:
        write_text(f"{name}: {'would be deleted' if is_dry_run else 'deleted'}")


def _existing(admin: Admin, wanted: Collection[TopicPartition] | None = None) -> list[TopicPartition]:
    """Return the partitions of all topics, or those out of ``wanted`` that exist."""
    from txnkafka.model import TopicPartition

    topics = None if wanted is None else {each.topic for each in wanted}
    names = [each.name for each in admin.list_topics(include_internal=topics is not None)]
    described = admin.describe_topics([name for name in names if topics is None or name in topics])
    return [
        place
        for topic in described.values()
        for each in topic.partitions
        for place in [TopicPartition(topic.name, each.partition)]
        if wanted is None or place in wanted
    ]


def _reset(
    admin: Admin, request: Request, target: Target, names: list[str], selection: Selection
) -> list[Row]:
    """Reset the partitions that groups have read, or with --topic all partitions of the topic."""
    rows: list[Row] = []
    for name in names:
        committed = {each: found.offset for each, found in admin.list_group_offsets(name).items()}
        there = _existing(admin, None if selection.topics or selection.partitions else committed)
        chosen = {each: committed.get(each) for each in there if selection.has(each)}
        offsets = new_offsets(admin, target, chosen)
        if not request.is_dry_run:
            admin.alter_group_offsets(name, offsets)
        rows += [
            {
                "group": name,
                "topic": each.topic,
                "partition": each.partition,
                "current_offset": chosen[each],
                "new_offset": offset,
            }
            for each, offset in offsets.items()
        ]
    return rows


def _lags(admin: Admin, names: list[str], selection: Selection) -> list[Row]:
    from txnkafka.client.admin import OffsetSpec

    described = admin.describe_groups(names)
    committed = {name: admin.list_group_offsets(name) for name in names}
    read = {each for offsets in committed.values() for each in offsets}
    read |= {each for group in described.values() for member in group.members for each in member.assignment}
    there = _existing(admin, read)

    def ends(level: str) -> dict[TopicPartition, int]:
        found = admin.list_offsets(dict.fromkeys(there, OffsetSpec.LATEST), isolation_level=level)
        return {each: end.offset for each, end in found.items()}

    stable, last = ends("read_committed"), ends("read_uncommitted")
    return [
        row
        for name, group in described.items()
        for row in _group_rows(group, committed[name], stable, last)
        if selection.has(row.pop("place"))
    ]


def _group_rows(
    group: GroupDescription,
    committed: dict[TopicPartition, OffsetAndMetadata],
    stable: dict[TopicPartition, int],
    last: dict[TopicPartition, int],
) -> list[Row]:
    owners = {each: member for member in group.members for each in member.assignment}
    rows = []
    for place in sorted({*committed, *owners}):
        found, owner = committed.get(place), owners.get(place)
        offset = None if found is None else found.offset
        rows.append({
            "place": place,
            "group": group.group_id,
            "topic": place.topic,
            "partition": place.partition,
            "current_offset": offset,
            "log_end_offset": last.get(place),
            "lag": _distance(offset, last.get(place)),
            "last_stable_offset": stable.get(place),
            "stable_lag": _distance(offset, stable.get(place)),
            "consumer_id": None if owner is None else owner.member_id,
            "host": None if owner is None else owner.host,
            "client_id": None if owner is None else owner.client_id,
            "state": group.state,
            "type": group.type,
            "leader_epoch": None if found is None else found.leader_epoch,
            "metadata": None if found is None else found.metadata,
        })  # fmt: skip
    return rows


def _distance(offset: int | None, end: int | None) -> int | None:
    return None if offset is None or end is None else max(0, end - offset)
