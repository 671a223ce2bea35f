"""Commits the files of a round to a table in one transaction of the table format. The transaction contains
the export's id and the round's number, so that no round is committed twice."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from txnkafka.export.manifest import Manifest, Round
    from txnkafka.export.options import ExportOptions

TABLES = ("delta", "iceberg")
PACKAGES = {
    "parquet": ("arrow", ("pyarrow",)),
    "delta": ("delta", ("pyarrow", "deltalake")),
    "iceberg": ("iceberg", ("pyarrow", "pyiceberg")),
}  # the extra, and the package that an export needs from it


def check_installed(form: str) -> None:
    """Raise KafkaError, naming the package to install, if ``form`` needs a missing one."""
    extra, packages = PACKAGES.get(form, ("", ()))
    for package in packages:
        try:
            import_module(package)
        except ImportError as error:
            raise KafkaError(
                f"an export to {form} needs {package} ({error}): pip install 'txnkafka[{extra}]'"
            ) from None


def commit_table(manifest: Manifest, round: Round, options: ExportOptions) -> None:
    """Commit a round whose units all count; do nothing for formats without a table. Raises KafkaError for
    every failure."""
    if options.to not in TABLES:
        return
    module = import_module(f"txnkafka.export.{options.to}")
    try:
        getattr(module, f"commit_{options.to}")(manifest, round, options)
    except Exception as error:  # catalogs raise errors of any type
        raise KafkaError(
            f"the files are written, but {options.to} could not commit them to its table "
            f"({type(error).__name__}: {error}); the same command tries again"
        ) from error
