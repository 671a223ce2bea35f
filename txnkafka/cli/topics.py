"""``txnkafka topics`` lists, describes, creates, changes and deletes the topics of a cluster, as
``kafka-topics.sh`` and ``kafka-configs.sh`` do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.cluster_options import cluster_options, opened
from txnkafka.cli.command import Function, add_options
from txnkafka.cli.command_group import CommandGroup
from txnkafka.cli.named import check_patterns, is_named
from txnkafka.cli.output import Layout, write_json, write_paragraph, write_text
from txnkafka.cli.rows import Row, format_option, write_rows
from txnkafka.cli.serve_options import Setting
from txnkafka.shown import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txnkafka.cli.output import Messages
    from txnkafka.client.admin import Admin, TopicDescription
    from txnkafka.model import TopicPartition


class TopicSetting(Setting):
    """KEY=VALUE of a topic."""

    def names(self) -> Iterable[str]:
        """Return the names of the settings of topics."""
        from txnkafka.config import LogConfig, config_defs

        return config_defs(LogConfig)


COLUMNS = {"topic": "topic", "partitions": "partitions", "replication_factor": "replication_factor"}
WIDE = {"topic_id": "topic_id", "is_internal": "is_internal"}
PARTITION_COLUMNS = {
    name: name
    for name in ("topic", "partition", "leader", "replicas", "isr", "first_offset", "last_stable_offset")
}
PARTITION_WIDE = {name: name for name in ("high_watermark", "leader_epoch", "offline_replicas", "topic_id")}


@click.group(cls=CommandGroup, short_help="List, describe and change topics of a cluster.")
def topics() -> None:
    """List, describe, create, change and delete topics: in a data directory (--data), which this command
    opens for its duration, or on brokers (--bootstrap)."""


@topics.command("list", short_help="List topics.")
@click.argument("patterns", metavar="[TOPIC]...", nargs=-1)
@click.option("--internal", is_flag=True, help="Also Kafka's own topics, such as __consumer_offsets.")
@cluster_options
@format_option
@click.pass_obj
def list_(
    messages: Messages, /, *, patterns: tuple[str, ...], internal: bool, output_format: str, **options: Any
) -> int:
    """List topics: all but Kafka's own, or those named or matched by TOPIC, such as 'orders*'.

    Exit status: 2 when a TOPIC does not exist."""
    with opened(messages, options) as cluster, cluster.admin() as admin:
        found = _chosen(admin, patterns, cluster.place, internal=internal)
        rows = [_row(each) for each in admin.describe_topics(found).values()]
    write_rows(rows, output_format, COLUMNS, WIDE, Layout(("topic",)))
    return 0


@topics.command(short_help="Show partitions, offsets and settings.")
@click.argument("patterns", metavar="[TOPIC]...", nargs=-1)
@cluster_options
@format_option
@click.pass_obj
def describe(messages: Messages, /, *, patterns: tuple[str, ...], output_format: str, **options: Any) -> int:
    """Show the partitions of topics with their leaders, replicas and offsets, and the settings that differ
    from the broker's. Without TOPIC: of all topics but Kafka's own.

    Exit status: 2 when a TOPIC does not exist."""
    with opened(messages, options) as cluster, cluster.admin() as admin:
        found = admin.describe_topics(_chosen(admin, patterns, cluster.place, internal=False))
        rows = _partition_rows(admin, found)
        settings = _settings(admin, found)
    if output_format in ("json", "jsonl"):
        documents = [
            {
                **_row(each),
                "partitions": [row for row in rows if row["topic"] == name],
                "config": settings[name],
            }
            for name, each in found.items()
        ]
        for document in [documents] if output_format == "json" else documents:
            write_json(document)
        return 0
    write_rows(rows, output_format, PARTITION_COLUMNS, PARTITION_WIDE, Layout(("topic",)))
    for name, config in settings.items():
        if config:
            write_paragraph(f"{name}: {', '.join(f'{key}={value}' for key, value in config.items())}")
    return 0


def _topic_options(function: Function) -> Function:
    return add_options(
        function,
        click.argument("names", metavar="TOPIC...", nargs=-1, required=True),
        click.option("--partitions", type=click.IntRange(min=1), help="Number of partitions."),
        click.option(
            "--config",
            "config",
            type=TopicSetting(),
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting of the topic by Kafka's name, as in retention.ms=3600000. Repeatable.",
        ),
        click.option("--dry-run", is_flag=True, help="Only let the broker check it."),
    )


@topics.command(short_help="Create topics.", changes=True)
@_topic_options
@click.option("--replication-factor", type=click.IntRange(min=1), help="Number of replicas.")
@click.option("--if-not-exists", is_flag=True, help="Leave existing topics as they are.")
@cluster_options
@click.pass_obj
def create(
    messages: Messages,
    /,
    *,
    names: tuple[str, ...],
    partitions: int | None,
    config: tuple[tuple[str, str], ...],
    dry_run: bool,
    replication_factor: int | None,
    if_not_exists: bool,
    **options: Any,
) -> int:
    """Create topics. Numbers and settings that are not given are the broker's. A data directory (--data) that
    is missing is created.

    Exit status: 2 when a topic could not be created; the others are created."""
    from txnkafka.client.admin import NewTopic

    with opened(messages, options, creates=not dry_run) as cluster, cluster.admin() as admin:
        existing = {each.name for each in admin.list_topics(include_internal=True)} if if_not_exists else ()
        wanted = [
            NewTopic(name, partitions or -1, replication_factor or -1, None, dict(config))
            for name in names
            if name not in existing
        ]
        for created in admin.create_topics(wanted, validate_only=dry_run).values():
            verb = "would be created" if dry_run else "created"
            write_text(f"{created.name}: {verb} with {counted(created.partitions, 'partition')}")
    for name in names:
        if name in existing:
            messages.note(f"{name} exists")
    return 0


@topics.command(short_help="Add partitions, change settings.", changes=True)
@_topic_options
@click.option("--delete-config", "deleted", multiple=True, metavar="KEY", help="Reset a setting. Repeatable.")
@cluster_options
@click.pass_obj
def alter(
    messages: Messages,
    /,
    *,
    names: tuple[str, ...],
    partitions: int | None,
    config: tuple[tuple[str, str], ...],
    dry_run: bool,
    deleted: tuple[str, ...],
    **options: Any,
) -> int:
    """Add partitions to topics, up to the number --partitions, and change their settings. Records with keys
    then go to other partitions than before.

    Exit status: 2 when something could not be changed."""
    from txnkafka.client.admin import ConfigResource, ConfigResourceType

    changes: dict[str, object] = {**dict(config), **dict.fromkeys(deleted)}
    if partitions is None and not changes:
        raise click.UsageError("nothing to change: give --partitions, --config or --delete-config")
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    with opened(messages, options) as cluster, cluster.admin() as admin:
        if changes:
            admin.incremental_alter_configs(dict.fromkeys(resources, changes), validate_only=dry_run)
        if partitions is not None:
            admin.create_partitions(dict.fromkeys(names, partitions), validate_only=dry_run)
    for name in names:
        write_text(f"{name}: {'would be changed' if dry_run else 'changed'}")
    return 0


@topics.command(short_help="Delete topics with their records.", changes=True)
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
@click.option("--if-exists", is_flag=True, help="Ignore topics that do not exist.")
@cluster_options
@click.pass_obj
def delete(messages: Messages, /, *, names: tuple[str, ...], if_exists: bool, **options: Any) -> int:
    """Delete topics with all their records, by full name.

    Exit status: 2 when a topic could not be deleted; the others are deleted."""
    with opened(messages, options) as cluster, cluster.admin() as admin:
        existing = {each.name for each in admin.list_topics(include_internal=True)} if if_exists else names
        wanted = [name for name in names if name in existing]
        admin.delete_topics(wanted)
    for name in wanted:
        write_text(f"{name}: deleted")
    return 0


def _chosen(admin: Admin, patterns: tuple[str, ...], place: str, *, internal: bool) -> list[str]:
    """Return the names of the topics to show. Raises KafkaError for a pattern that matches none."""
    listed = admin.list_topics(include_internal=internal or bool(patterns))
    names = [each.name for each in listed]
    check_patterns(patterns, names, "topic", "topics", place)
    return [name for name in names if is_named(name, patterns)]


def _row(topic: TopicDescription) -> Row:
    return {
        "topic": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replication_factor": max((len(each.replicas) for each in topic.partitions), default=0),
    }


def _partition_rows(admin: Admin, found: Mapping[str, TopicDescription]) -> list[Row]:
    from txnkafka.client.admin import OffsetSpec
    from txnkafka.model import TopicPartition

    partitions = [
        TopicPartition(topic.name, each.partition)
        for topic in found.values()
        for each in topic.partitions
        if each.leader is not None
    ]

    def offsets(spec: OffsetSpec, level: str) -> dict[TopicPartition, int]:
        listed = admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level=level)
        return {partition: each.offset for partition, each in listed.items()}

    first = offsets(OffsetSpec.EARLIEST, "read_uncommitted")
    stable = offsets(OffsetSpec.LATEST, "read_committed")
    last = offsets(OffsetSpec.LATEST, "read_uncommitted")
    return [
        {
            "topic": topic.name,
            "topic_id": topic.topic_id,
            **each._asdict(),
            "first_offset": first.get(key),
            "last_stable_offset": stable.get(key),
            "high_watermark": last.get(key),
        }
        for topic in found.values()
        for each in topic.partitions
        for key in [TopicPartition(topic.name, each.partition)]
    ]


def _settings(admin: Admin, names: Mapping[str, object]) -> dict[str, dict[str, str | None]]:
    """Return the settings of topics that are set for the topic itself."""
    from txnkafka.client.admin import ConfigResource, ConfigResourceType, ConfigSource

    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    return {
        resource.name: {
            entry.name: entry.value
            for entry in described.values()
            if entry.source is ConfigSource.TOPIC_CONFIG
        }
        for resource, described in admin.describe_configs(resources).items()
    }
