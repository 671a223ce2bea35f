"""The end of the demo: how many records were committed, hidden and held back, and what Kafka's own consumer
got."""

from __future__ import annotations

import json
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from txnkafka import LogDir
from txnkafka.logdir import PartitionView

__all__ = ["Summary", "show_summary"]

CONSUMED = Path(__file__).with_name("consumed.json")
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


class Summary:
    """``counts`` are Spark's, by isolation level and partition."""

    def __init__(self, path: str, topic: str, counts: dict[str, dict[int, int]]) -> None:
        self.views = list(LogDir(path).partitions(topic))
        self.counts = counts
        self._consumed = json.loads(CONSUMED.read_text(encoding="utf-8"))

    def count(self, level: str, partition: int) -> int:
        return self.counts[level].get(partition, 0)

    def consumed(self, view: PartitionView) -> int:
        """How many records Kafka's Java consumer got when the directory was recorded."""
        return len(self._consumed[str(view.topic_partition)])


def show_summary(console: Console, summary: Summary) -> None:
    """A table, and whether Spark and Kafka's own consumer agree."""
    console.print(_records(summary))
    console.print()
    if any(summary.count(COMMITTED, view.partition) != summary.consumed(view) for view in summary.views):
        raise SystemExit("Spark and Kafka's own consumer do not agree: this is a bug in txnkafka")
    total = sum(summary.counts[COMMITTED].values())
    console.print(
        f"[bold green]✓[/] [bold]{total} committed records, as many as Kafka's own Java consumer got "
        "from the broker.[/]\n  make test compares every field of every record, in all recorded directories."
    )


def _records(summary: Summary) -> Table:
    table = Table(header_style="bold", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("partition")
    for name in ("records in the log", "committed", "aborted", "held back", "Java consumer got"):
        table.add_column(name, justify="right")
    for view in summary.views:
        inside = summary.count(UNCOMMITTED, view.partition)
        committed = summary.count(COMMITTED, view.partition)
        aborted = sum(each.records for each in view.aborted_transactions(end_offset=view.last_stable_offset))
        row = (inside, committed, aborted, inside - committed - aborted, summary.consumed(view))
        table.add_row(str(view.topic_partition), *map(str, row))
    return table
