"""Commits the files of an export to an Iceberg table.

Each round is one Iceberg transaction: a snapshot with its files, and a table property with the export's id
and the round's number, which shows after a crash whether the round was committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.record.arrow import arrow_schema

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from txnkafka.export.manifest import Manifest, Round
    from txnkafka.export.options import ExportOptions

# Iceberg partitions by columns of the files: partition → (column, transform, field name)
TRANSFORMS = {"topic": ("topic", "identity", "topic"), "date": ("timestamp", "day", "timestamp_day")}


def commit_iceberg(manifest: Manifest, round: Round, options: ExportOptions) -> None:
    """Add the files of a round to the table, creating it if necessary; do nothing if the round is already
    committed."""
    table = _table(_catalog(manifest, options), manifest, options)
    name = f"txnkafka.export.{manifest.export_id}"
    if int(table.properties.get(name, -1)) >= round.number:
        return
    paths = [f"file://{manifest.output}/{file.path}" for unit in round.area.counted() for file in unit.files]
    with table.transaction() as transaction:
        transaction.set_properties({name: str(round.number)})
        if paths:
            # the property shows that the files are not in the table yet
            transaction.add_files(paths, check_duplicate_files=False)


def _catalog(manifest: Manifest, options: ExportOptions) -> Catalog:
    from pyiceberg.catalog import load_catalog

    own = {
        "type": "sql",
        "uri": f"sqlite:///{manifest.folder}/catalog.db",
        "warehouse": f"file://{manifest.output}",
    }
    return load_catalog("txnkafka", **(dict(options.catalog) or own))


def _table(catalog: Catalog, manifest: Manifest, options: ExportOptions) -> Table:
    if catalog.table_exists(options.table):
        return catalog.load_table(options.table)
    catalog.create_namespace_if_not_exists(options.table.rpartition(".")[0])
    table = catalog.create_table(
        options.table,
        arrow_schema(options.file_columns, timestamp_unit="us"),
        location=f"file://{manifest.output}",
    )
    return _divided(table, options)


def _divided(table: Table, options: ExportOptions) -> Table:
    with table.update_spec() as spec:
        for name in options.partition_by:
            spec.add_field(*TRANSFORMS[name])
    return table
