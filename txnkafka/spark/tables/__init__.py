"""The tables of a log directory: its records, and tables about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from txnkafka.shown import nearest
from txnkafka.spark.tables.batches import BATCHES
from txnkafka.spark.tables.findings import FINDINGS
from txnkafka.spark.tables.halves import HALVES
from txnkafka.spark.tables.offsets import OFFSETS
from txnkafka.spark.tables.records import RECORDS
from txnkafka.spark.tables.segments import SEGMENTS
from txnkafka.spark.tables.table import Table
from txnkafka.spark.tables.transactions import TRANSACTIONS

__all__ = ["TABLES", "Table", "check_keywords", "find_table"]

TABLES: dict[str, Table[Any]] = {
    "records": RECORDS,
    "batches": BATCHES,
    "transactions": TRANSACTIONS,
    "offsets": OFFSETS,
    "halves": HALVES,
    "segments": SEGMENTS,
    "findings": FINDINGS,
}


def find_table(name: str) -> Table[Any]:
    """Return the table of that name. Raises ValueError."""
    if name not in TABLES:
        raise ValueError(f"unknown table {name}: {nearest(name, TABLES)}")
    return TABLES[name]


def check_keywords(table: str, said: Mapping[str, str]) -> None:
    """Raise ValueError for a keyword that does not apply to the table. ``said`` maps keywords of ReadKeywords
    to the user's spelling."""
    taken = find_table(table).keywords
    for keyword, name in said.items():
        if keyword not in taken:
            raise ValueError(f"{name} does not apply to table={table}: leave it out")
