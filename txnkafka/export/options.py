"""The options of an export. They are stored with the export and must be the same in every run that continues
it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from txnkafka.errors import KafkaError
from txnkafka.logdir.read_request import ReadRequest
from txnkafka.record.arrow import COLUMN_NAMES
from txnkafka.shown import nearest

FORMATS = ("parquet", "jsonl", "csv", "delta", "iceberg")
TEXT_FORMATS = ("jsonl", "csv")
COMPRESSIONS = ("zstd", "snappy", "lz4", "gzip", "none")
PARTITIONINGS = ("topic", "date")


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """The options of an export. None means not given; times are in milliseconds. ``topic`` and ``partition``
    are the values that select partitions, in any order.

    ``request`` selects the records of each partition; its ``on_corrupt`` is a string because it is stored.
    ``columns`` are columns of Spark's Kafka source, for all formats but text; text has the fields of ``cat``.
    ``file_bytes`` is the approximate number of log bytes per file. ``catalog`` has the properties of an
    Iceberg catalog, possibly a password: they are not stored and may differ between runs."""

    to: str
    paths: tuple[str, ...]
    topic: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()
    request: ReadRequest = field(default_factory=ReadRequest)
    columns: tuple[str, ...] = COLUMN_NAMES
    partition_by: tuple[str, ...] = PARTITIONINGS
    file_bytes: int = 128 << 20
    compression: str = "zstd"
    encoding: str = "utf8"
    table: str = "kafka.records"
    catalog: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if callable(self.request.on_corrupt):
            raise ValueError("on_corrupt of an export must be stop or skip")
        _among("to", [self.to], FORMATS)
        _among("columns", self.columns, COLUMN_NAMES)
        _among("partition_by", self.partition_by, PARTITIONINGS)
        _among("compression", [self.compression], COMPRESSIONS)
        if not self.columns:
            raise ValueError("an export needs at least one column")
        if not self.is_text and not self.file_columns:
            raise ValueError("no column is left for the files: a column to partition by is in their path")
        if self.is_text and self.columns != COLUMN_NAMES:
            raise ValueError(f"{self.to} always has the fields of cat: columns cannot be chosen")
        if self.to == "iceberg":
            self._check_table()
        if self.file_bytes < 1:
            raise ValueError(f"file_bytes must be at least 1, not {self.file_bytes}")

    def _check_table(self) -> None:
        namespace, _, name = self.table.rpartition(".")
        if not namespace or not name:
            raise ValueError(f"table must be like kafka.records, not {self.table!r}")
        needed = {"topic": "topic", "date": "timestamp"}
        for divider in self.partition_by:
            if needed[divider] not in self.columns:
                raise ValueError(
                    f"Iceberg partitions by {divider} with the column {needed[divider]}: name it too"
                )

    @property
    def is_text(self) -> bool:
        """True if files contain lines, not columns."""
        return self.to in TEXT_FORMATS

    @property
    def file_columns(self) -> tuple[str, ...]:
        """The columns in the files: without the columns in the directory names, except for Iceberg, which
        needs all."""
        if self.to == "iceberg":
            return self.columns
        return tuple(name for name in self.columns if name not in self.partition_by)

    def as_dict(self) -> dict[str, Any]:
        """Return the stored options as JSON values, with the fields of the request on the same level."""
        found = asdict(self)
        del found["catalog"]
        found |= found.pop("request")
        found["isolation_level"] = self.request.isolation_level.value
        found["where"] = str(self.request.where)
        kept: dict[str, Any] = json.loads(json.dumps(found))
        return kept

    def check_same(self, recorded: Mapping[str, Any], where: str) -> None:
        """Raise KafkaError with the differences if the options differ from those of the export in
        ``where``."""
        own = self.as_dict()
        names = [name for name in own if own[name] != recorded.get(name)]
        if names:
            changes = ((name, _said(recorded.get(name)), _said(own[name])) for name in names)
            was = ", ".join(f"{name} was {before}, now {now}" for name, before, now in changes)
            raise KafkaError(
                f"{where} contains an export with other options ({was}); "
                "give the same options, or export to another directory"
            )


def _said(value: object) -> str:
    """Return a stored value as text."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _among(what: str, given: tuple[str, ...] | list[str], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"{what}: unknown name {name}: {nearest(name, known)}")
    if len(set(given)) != len(given):
        raise ValueError(f"{what} names {', '.join(given)}: each may be there once")
