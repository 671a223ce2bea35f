"""Shell completion: paths, and topics and partitions of the directories already on the command line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Iterable


class PathOrAddress(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """A path, or an address such as s3://bucket/kafka-logs. Existence is checked when it is opened."""

    name = "path"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Delegate path completion to the shell."""
        return [CompletionItem(incomplete, type="file")]


class TopicName(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on only
    """A topic name or pattern."""

    name = "topic"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the topics of the directories before the cursor."""
        return beginning_with(incomplete, _topics_of(ctx))


def _topics_of(ctx: click.Context) -> Iterable[str]:
    """Return the topics in the given LOGDIR; none if it cannot be read. Network addresses are not read."""
    return dict.fromkeys(name.rpartition("-")[0] for name in _partitions_of(ctx))


def _partitions_of(ctx: click.Context) -> Iterable[str]:
    """Return the partitions in the given LOGDIR, by full name."""
    from txnkafka.errors import KafkaError
    from txnkafka.logdir import LogDir

    # click assigns the arguments only when the option before the cursor has its value
    given = tuple(each for each in ctx.args if not each.startswith("-"))
    paths: tuple[str, ...] = given or ctx.params.get("logdir") or ()
    if not paths or any("://" in path for path in paths):
        return ()
    try:
        return [str(partition) for partition in LogDir(list(map(_expanded, paths))).topic_partitions]
    except (KafkaError, OSError):
        return ()


def _expanded(path: str) -> str:
    """Expand a word as the shell will: a completion receives it as typed."""
    return os.path.expanduser(os.path.expandvars(path))


def complete_partition(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete full names such as orders-3 of the topics selected by --topic."""
    from txnkafka.logdir.names import topic_matches

    topics: tuple[str, ...] = ctx.params.get("topic") or ()
    names = _partitions_of(ctx)
    if topics:
        names = [name for name in names if any(topic_matches(name.rpartition("-")[0], t) for t in topics)]
    return beginning_with(incomplete, names)


def beginning_with(incomplete: str, names: Iterable[str]) -> list[CompletionItem]:
    """Return the names that begin with ``incomplete``."""
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
