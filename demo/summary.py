"""The end of the demo: which records were committed, which were hidden and why, where the log is held."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from tests.golden.cases import Case
from txnkafka import LogDir, TopicPartition
from txnkafka.logdir import PartitionView

__all__ = ["Summary", "show_summary"]

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


class Summary:
    """``counts`` are Spark's, by isolation level and partition; ``stuck`` is what ``txnkafka lso`` says."""

    def __init__(
        self,
        path: str,
        topic: str,
        recorded: Case,
        counts: dict[str, dict[int, int]],
        stuck: list[dict[str, Any]],
    ) -> None:
        self.log_dir = LogDir(path)
        self.topic = topic
        self.recorded = recorded
        self.counts = counts
        self.stuck = stuck

    @cached_property
    def views(self) -> list[PartitionView]:
        return list(self.log_dir.partitions(self.topic))

    @cached_property
    def owners(self) -> dict[int, str]:
        known = self.log_dir.transactional_ids().values()
        return {metadata.producer_id: metadata.transactional_id for metadata in known}

    def count(self, level: str, partition: int) -> int:
        return self.counts[level].get(partition, 0)

    def consumed(self, partition: int) -> int:
        """How many records Kafka's Java consumer got when the case was recorded."""
        return len(self.recorded.expected_records(TopicPartition(self.topic, partition), COMMITTED))


def show_summary(console: Console, summary: Summary) -> None:
    """Three tables, and whether Spark and Kafka's own consumer agree."""
    for table in (_records(summary), _hidden(summary), _held(summary)):
        console.print(table)
        console.print()
    numbers = [view.partition for view in summary.views]
    if any(summary.count(COMMITTED, number) != summary.consumed(number) for number in numbers):
        raise SystemExit("Spark and Kafka's own consumer do not agree: this is a bug in txnkafka")
    total = sum(summary.counts[COMMITTED].values())
    console.print(
        f"[bold green]✓[/] [bold]{total} committed records, as many as Kafka's own Java consumer got "
        "from the broker.[/]\n  make test compares every field of every record, in all recorded directories."
    )


def _table(title: str, *names: str, right: tuple[str, ...]) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold cyan",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
    for name in names:
        table.add_column(name, justify="right" if name in right else "left")
    return table


def _records(summary: Summary) -> Table:
    numbers = ("in the log", "committed", "aborted", "held back", "Java consumer got")
    table = _table(
        "Records (in the log = committed + aborted + held back)", "partition", *numbers, right=numbers
    )
    for view in summary.views:
        inside = summary.count(UNCOMMITTED, view.partition)
        committed = summary.count(COMMITTED, view.partition)
        aborted = sum(each.records for each in _aborted(view))
        held_back = inside - committed - aborted
        row = (inside, committed, aborted, held_back, summary.consumed(view.partition))
        table.add_row(str(view.topic_partition), *map(str, row))
    return table


def _aborted(view: PartitionView) -> list[Any]:
    found = view.aborted_transactions(end_offset=view.last_stable_offset)
    return sorted(found, key=lambda each: each.first_offset)


def _hidden(summary: Summary) -> Table:
    names = ("partition", "offsets", "records", "producer", "epoch", "transactional id")
    table = _table(
        "Hidden, because their transaction was aborted", *names, right=("records", "producer", "epoch")
    )
    for view in summary.views:
        for each in _aborted(view):
            table.add_row(
                str(view.topic_partition),
                f"{each.first_offset} to {each.last_offset}",
                str(each.records),
                str(each.producer_id),
                str(each.producer_epoch),
                summary.owners.get(each.producer_id, "not known"),
            )
    return table


def _held(summary: Summary) -> Table:
    names = ("partition", "LSO", "log end", "held by", "verdict")
    title = "Where a stuck transaction holds the log (LSO: last stable offset)"
    table = _table(title, *names, right=("LSO", "log end"))
    for each in summary.stuck:
        owners = [
            f"{owner['transactional_id']} (producer {owner['producer_id']})"
            for owner in each["open_transactions"]
        ]
        table.add_row(
            f"{each['topic']}-{each['partition']}",
            str(each["last_stable_offset"]),
            str(each["log_end_offset"]),
            "\n".join(owners) or "nobody",
            f"[{'red' if owners else 'green'}]{each['verdict']}[/]",
        )
    return table
