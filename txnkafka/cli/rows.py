"""Writes rows of results in the formats of ``--format``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from txnkafka.cli.command import Function
from txnkafka.cli.output import AS_IT_IS, FORMATS, Layout, write_json, write_table

Row = dict[str, Any]


def format_option(function: Function) -> Function:
    """Add --format to a command."""
    return click.option(
        "--format", "output_format", type=click.Choice(FORMATS), default="text", show_default=True
    )(function)


def write_rows(
    rows: Sequence[Row],
    output_format: str,
    columns: Mapping[str, str],
    wide: Mapping[str, str],
    layout: Layout = AS_IT_IS,
) -> None:
    """Write rows as a table, or with all their fields as JSON. ``columns`` maps headers to fields; ``wide``
    has the further columns of the format wide."""
    if output_format == "json":
        write_json(rows)
    elif output_format == "jsonl":
        for row in rows:
            write_json(row)
    else:
        shown = {**columns, **wide} if output_format == "wide" else columns
        write_table(list(shown), [[_cell(row[name]) for name in shown.values()] for row in rows], layout)


def _cell(value: object) -> object:
    return (" ".join(map(str, value)) or None) if isinstance(value, list | tuple) else value
