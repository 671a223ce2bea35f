"""Parses the options of ``format("txnkafka")`` for ``spark.read`` and ``spark.readStream``: strings with the
names of Spark's Kafka source (``KafkaSourceProvider``), in upper or lower case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from txnkafka.model import IsolationLevel
from txnkafka.shown import nearest
from txnkafka.spark.options import ReadOptions, read_options, stream_options
from txnkafka.spark.schema import KAFKA_COLUMNS
from txnkafka.spark.stream.limits import TriggerLimits
from txnkafka.spark.tables import check_keywords, find_table


class SourceOptions(NamedTuple):
    """The parsed options: paths, table, selection, and columns if no schema is given; None means the default.
    ``limits`` are those of a stream, ``broker`` the settings of the client of a broker, whose log is read
    then: without paths."""

    paths: tuple[str, ...]
    table: str
    columns: tuple[str, ...] | None
    reading: ReadOptions
    limits: TriggerLimits = TriggerLimits()
    broker: Mapping[str, str] | None = None


def parse_source_options(options: Mapping[str, str], *, streaming: bool = False) -> SourceOptions:
    """Check and convert all options of a batch, or of a stream. Raises ValueError with the name of the
    option."""
    broker = _broker(options)
    found, said = _keywords({name: text for name, text in options.items() if not _is_of_client(name)})
    paths = (*found.pop("path", ()), *found.pop("paths", ()))
    if not paths and broker is None:
        raise ValueError(
            "no path: give the log directory to .load(…) or as option path, or kafka.bootstrap.servers"
        )
    if broker is not None:
        _check_broker(paths, found, said)
    table = found.pop("table", "records")
    if streaming and table != "records":
        raise ValueError(f"table={table} cannot be streamed: use spark.read")
    limits = {name: found.pop(name) for name in TriggerLimits._fields if name in found}
    check_keywords(
        table, {keyword: name for keyword, name in said.items() if keyword not in (*WHERE, *limits)}
    )
    columns = _columns(found.pop("columns", None), found.pop("include_headers", None))
    for keyword in found:
        if streaming and keyword.startswith("ending_"):
            raise ValueError(f"{said[keyword]}: a stream has no end; leave it out, or use spark.read")
    reading = stream_options(**found) if streaming else read_options(**found)
    return SourceOptions(paths, table, columns, reading, TriggerLimits(**limits).checked(), broker)


def either_options(batch: Callable[[], SourceOptions], options: Mapping[str, str]) -> SourceOptions:
    """Return the options of a batch, or of a stream: Spark requests a schema without the kind of query.
    Raises ValueError, as for a batch, if they are valid for neither."""
    try:
        return batch()
    except ValueError:
        with suppress(ValueError):
            return parse_source_options(options, streaming=True)
        raise


def _is_of_client(name: str) -> bool:
    return name.lower().startswith("kafka.") and name.lower() != "kafka.isolation.level"


def _broker(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return the settings of a client, checked; None without a broker."""
    settings = {
        name.lower().removeprefix("kafka."): text for name, text in options.items() if _is_of_client(name)
    }
    if not settings:
        return None
    if BOOTSTRAP not in settings:
        name = f"kafka.{next(iter(settings))}"
        raise ValueError(f"option {name} is for a broker: give kafka.{BOOTSTRAP} too, or leave it out")
    from txnkafka.client.client_config import parse_bootstrap, read_config
    from txnkafka.spark.broker.source_config import SourceConfig

    try:
        parse_bootstrap(read_config(SourceConfig, settings).bootstrap_servers)
    except ValueError as error:
        raise ValueError(f"an option kafka.…: {error}") from None
    return settings


def _check_broker(paths: tuple[str, ...], found: Mapping[str, Any], said: Mapping[str, str]) -> None:
    """Raise ValueError for options that only a log directory has."""
    if paths:
        raise ValueError(f"kafka.{BOOTSTRAP} and a path exclude each other: read from one of them")
    if found.get("table", "records") != "records":
        raise ValueError(f"table={found['table']} needs a log directory: a broker only gives records")
    for keyword in OF_DIRECTORIES:
        if keyword in found:
            raise ValueError(f"{said[keyword]} needs a log directory: leave it out with kafka.{BOOTSTRAP}")


def _keywords(options: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the parsed values and the users' names of the options, by keyword."""
    found: dict[str, Any] = {}
    said: dict[str, str] = {}
    for given, text in options.items():
        name = _known_name(given)
        keyword, parse = OPTION_NAMES[name]
        try:
            value = parse(text)
        except ValueError as error:
            raise ValueError(f"option {name}: {error}") from None
        if found.setdefault(keyword, value) != value:
            raise ValueError(f"option {name} is given under two names with different values")
        said[keyword] = f"option {name}"
    return found, said


def _table(text: str) -> str:
    find_table(text)
    return text


def _columns(columns: tuple[str, ...] | None, include_headers: bool | None) -> tuple[str, ...] | None:
    if include_headers is None:
        return columns
    if columns is not None:
        raise ValueError("columns and includeHeaders exclude each other: headers is a column")
    return (*KAFKA_COLUMNS, "headers") if include_headers else None


def _known_name(given: str) -> str:
    lower = {name.lower(): name for name in OPTION_NAMES}
    if given.lower() in lower:
        return lower[given.lower()]
    raise ValueError(f"unknown option {given}: {nearest(given, OPTION_NAMES)}")


def _paths(text: str) -> tuple[str, ...]:
    """Parse one path, or a JSON list of several, as ``load([…])`` passes them."""
    if not text.lstrip().startswith("["):
        return (text,)
    try:
        paths = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a JSON list of paths: {error}") from None
    if not all(isinstance(path, str) for path in paths):
        raise ValueError(f"{text!r} is not a JSON list of paths")
    return tuple(paths)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _word(text: str) -> str:
    return text.strip().lower()


def _boolean(text: str) -> bool:
    value = {"true": True, "false": False}.get(text.strip().lower())
    if value is None:
        raise ValueError(f"must be true or false, not {text!r}")
    return value


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"must be a whole number, not {text!r}") from None


def _size(text: str) -> int:
    """Parse a number of bytes, which may have one of Spark's suffixes k, m and g."""
    match = re.fullmatch(r"\s*(\d+)\s*([kmg]?)b?\s*", text.lower())
    if match is None:
        raise ValueError(f"must be a number of bytes such as 1048576 or 64m, not {text!r}")
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[match[2]]


def _delay(text: str) -> int:
    """Parse a time in one of Spark's units, without a unit in milliseconds; return milliseconds."""
    match = re.fullmatch(r"\s*(\d+)\s*(us|ms|s|min|m|h|d|)\s*", text.lower())
    if match is None:
        raise ValueError(f"must be a time such as 30s or 15m, not {text!r}")
    return int(match[1]) * _MICROSECONDS[match[2]] // 1000


_MICROSECONDS = {
    "us": 1,
    "ms": 1000,
    "": 1000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


def _storage_options(text: str) -> dict[str, Any]:
    """Parse a JSON object. It may contain secrets, so no error message quotes it."""
    try:
        options = json.loads(text)
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise ValueError('must be a JSON object such as {"anon": true}')
    return options


BOOTSTRAP = "bootstrap.servers"
OF_DIRECTORIES = ("io", "storage_options", "max_bytes_per_partition", "max_bytes")
WHERE = ("path", "paths", "table", "columns")  # options of every table
# name in Spark → (keyword of read_options, how to read the text)
OPTION_NAMES: dict[str, tuple[str, Callable[[str], object]]] = {
    "path": ("path", _paths),
    "paths": ("paths", _paths),
    "table": ("table", _table),
    "subscribe": ("topic", _names),
    "subscribePattern": ("topic_pattern", str),
    "assign": ("assign", str),
    "startingOffsets": ("starting_offsets", str),
    "endingOffsets": ("ending_offsets", str),
    "startingTimestamp": ("starting_timestamp", _integer),
    "endingTimestamp": ("ending_timestamp", _integer),
    "startingOffsetsByTimestamp": ("starting_offsets_by_timestamp", str),
    "endingOffsetsByTimestamp": ("ending_offsets_by_timestamp", str),
    "startingOffsetsByTimestampStrategy": ("starting_offsets_by_timestamp_strategy", _word),
    "where": ("where", str),
    "columns": ("columns", _names),
    "isolation.level": ("isolation_level", IsolationLevel.of),
    "kafka.isolation.level": ("isolation_level", IsolationLevel.of),
    "includeHeaders": ("include_headers", _boolean),
    "failOnDataLoss": ("fail_on_data_loss", _boolean),
    "minPartitions": ("min_partitions", _integer),
    "maxBytesPerPartition": ("max_bytes_per_partition", _size),
    "maxRecordsPerPartition": ("max_records_per_partition", _integer),
    "maxOffsetsPerTrigger": ("max_offsets", _integer),
    "minOffsetsPerTrigger": ("min_offsets", _integer),
    "maxTriggerDelay": ("max_delay_ms", _delay),
    "maxBytesPerTrigger": ("max_bytes", _size),
    "io": ("io", str),
    "storageOptions": ("storage_options", _storage_options),
}
