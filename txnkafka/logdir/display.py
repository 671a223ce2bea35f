"""HTML for notebooks: summaries of a directory, a partition and its transactions. Names come from files, so
all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from typing import TYPE_CHECKING

from txnkafka._core.read_committed import TransactionRange
from txnkafka.errors import KafkaError
from txnkafka.shown import printable

if TYPE_CHECKING:
    from txnkafka.logdir.directory import LogDir
    from txnkafka.logdir.partition import PartitionView

__all__ = ["Transactions", "directory_html", "partition_html", "partitions_html"]

ROWS = 50  # the number of further rows is shown
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Transactions(list[TransactionRange]):
    """A list of transactions; a notebook shows it as a table."""

    def _repr_html_(self) -> str:
        names = ("outcome", "producer", "epoch", "first offset", "last offset", "records", "bytes", "begun")
        rows = (
            (
                txn.outcome,
                txn.producer_id,
                txn.producer_epoch,
                txn.first_offset,
                txn.last_offset,
                f"{txn.records:,}",
                f"{txn.bytes:,}",
                _time(txn.first_timestamp),
            )
            for txn in self[:ROWS]
        )
        return _table(f"{len(self):,} transactions", names, rows, len(self))


def directory_html(log_dir: LogDir) -> str:
    """Return the topics of a directory as a table."""
    topics = list(log_dir.topics.values())
    rows = (
        (view.name, f"{len(view.partitions):,}", view.topic_id or "unknown") for view in topics[:ROWS]
    )
    caption = f"Log directory {', '.join(log_dir.paths)}"
    return _table(caption, ("topic", "partitions", "topic id"), rows, len(topics))


def partitions_html(views: Sequence[PartitionView]) -> str:
    """Return the names and paths of partitions as a table, without reading them."""
    rows = ((view.topic, view.partition, view.path) for view in views[:ROWS])
    return _table(f"{len(views):,} partitions", ("topic", "partition", "directory"), rows, len(views))


def partition_html(view: PartitionView) -> str:
    """Return the offsets of a partition as a table. An error is shown in the table: if raised, a notebook
    would show its traceback."""
    try:
        facts = _facts(view)
    except (KafkaError, OSError) as error:
        facts = [("error", str(error))]
    return _table(f"Partition {view.topic_partition} in {view.path}", ("", ""), facts, len(facts))


def _facts(view: PartitionView) -> list[tuple[str, object]]:
    high_watermark = view.high_watermark
    return [
        ("log start offset", view.log_start_offset),
        ("last stable offset", view.last_stable_offset),
        ("high watermark", "unknown" if high_watermark is None else high_watermark),
        ("log end offset", view.log_end_offset),
        ("open transactions", len(view.open_transactions)),
        ("segments", f"{len(view.segments):,}"),
        ("bytes", f"{sum(segment.size for segment in view.segments):,}"),
    ]


def _table(caption: str, names: Sequence[str], rows: Iterable[Sequence[object]], count: int) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names) if any(names) else ""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    more = f"<tr><td>and {count - ROWS:,} more</td></tr>" if count > ROWS else ""
    return (
        f"<table><caption>{escape(printable(caption))}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}{more}</tbody></table>"
    )


def _cell(value: object) -> str:
    return f"<td>{escape(printable(str(value)))}</td>"


def _time(milliseconds: int) -> str:
    try:
        moment = EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return moment.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
