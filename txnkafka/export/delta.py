"""Commits the files of an export to a Delta table in the same directory.

Each round is one Delta transaction. It contains the export's id and the round's number as a Delta ``txn``
action (application id and version), which shows after a crash whether the round was committed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from txnkafka.env import SystemClock
from txnkafka.record.arrow import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from txnkafka.export.files import ExportedFile
    from txnkafka.export.manifest import Manifest, Round
    from txnkafka.export.options import ExportOptions


def commit_delta(manifest: Manifest, round: Round, options: ExportOptions) -> None:
    """Add the files of a round to the table, creating it if necessary; do nothing if the round is already
    committed."""
    from deltalake import CommitProperties, DeltaTable, Transaction
    from deltalake.transaction import AddAction

    schema, partition_by = _schema(options), list(options.partition_by)
    if not DeltaTable.is_deltatable(manifest.output):
        DeltaTable.create(manifest.output, schema, partition_by=partition_by)
    table = DeltaTable(manifest.output)
    done = table.transaction_version(manifest.export_id)
    if done is not None and done >= round.number:
        return
    now_ms = SystemClock().now_ms()
    actions: list[Any] = [
        AddAction(file.path, file.size, file.partition, now_ms, True, _statistics(file))
        for unit in round.area.counted()
        for file in unit.files
    ]
    table.create_write_transaction(
        actions,
        "append",
        schema,
        partition_by,
        commit_properties=CommitProperties(app_transactions=[Transaction(manifest.export_id, round.number)]),
    )


def _schema(options: ExportOptions) -> pa.Schema:
    import pyarrow as pa

    types = {"topic": pa.string(), "date": pa.date32()}
    schema = arrow_schema(options.file_columns, timestamp_unit="us")
    for name in options.partition_by:
        schema = schema.append(pa.field(name, types[name]))
    return schema


def _statistics(file: ExportedFile) -> str:
    return json.dumps({"numRecords": file.rows})
