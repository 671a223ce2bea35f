"""HTML tables for notebooks. Names come from files, so all text is escaped.

Each view builds the rows of its table: this module imports no view.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import islice
from typing import Final

from txnkafka._core.read_committed import TransactionRange
from txnkafka.shown import counted, printable

ROWS: Final = 50  # of a table; the number of further rows is shown
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def html_table(caption: str, names: Sequence[str], rows: Iterable[Sequence[object]], count: int = 0) -> str:
    """Return a table with the first ``ROWS`` of ``rows``; ``count`` is the number of all rows. Empty
    ``names`` give a table without a head."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names) if any(names) else ""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in islice(rows, ROWS))
    more = f"<tr><td>and {count - ROWS:,} more</td></tr>" if count > ROWS else ""
    return (
        f"<table><caption>{escape(printable(caption))}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}{more}</tbody></table>"
    )


def _cell(value: object) -> str:
    return f"<td>{escape(printable(str(value)))}</td>"


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
            for txn in self
        )
        return html_table(counted(len(self), "transaction"), names, rows, len(self))


def _time(milliseconds: int) -> str:
    try:
        moment = EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return moment.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
