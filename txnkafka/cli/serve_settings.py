"""Merges the settings of ``serve``: the command line overrides a file in Kafka's format."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txnkafka.broker.config.broker_config import BrokerConfig
    from txnkafka.server.listeners import Listener

LOG = logging.getLogger("txnkafka.server")
_DIRECTORIES: Final = ("log.dirs", "log.dir")  # the first one counts, as in Kafka


class ServeSettings(NamedTuple):
    """The settings for starting a broker: ``data`` is its directory, ``node_id`` is None if not set."""

    data: str
    node_id: int | None
    listeners: list[Listener]
    config: BrokerConfig


class _Line(NamedTuple):
    """The value of a setting, and its place in the file."""

    value: str
    number: int


def serve_settings(
    data: str | None, listen: Sequence[tuple[str, int]], options: Mapping[str, str], path: str | None
) -> ServeSettings:
    """Return the settings of a command line: ``--data``, ``--listen``, ``--config`` and ``--config-file``.
    Raises UsageError for unusable settings, with their places in the file."""
    from txnkafka.server.listeners import LISTENERS
    from txnkafka.server.server_settings import SettingsError, server_settings

    if listen and LISTENERS in options:
        raise click.UsageError("--listen and --config listeners=… cannot be combined: both name listeners")
    file = {} if path is None else _without(_read(path), options, is_listening=bool(listen))
    if data is None:
        data = _data_directory(file)
    given = {name: line.value for name, line in file.items() if name not in _DIRECTORIES} | dict(options)
    try:
        return ServeSettings(data, *server_settings(given, data, listen))
    except SettingsError as error:
        reasons = [_placed(reason, path, file) for reason in error.reasons]
    raise click.UsageError("; ".join(reasons))


def _read(path: str) -> dict[str, _Line]:
    """Read a file in Java's properties format. The last value of a repeated setting counts, as in Kafka.
    Raises UsageError."""
    from txnkafka.errors import CorruptFileError
    from txnkafka.storage.formats.java_properties import parse_properties

    found: dict[str, _Line] = {}
    try:
        for number, name, value in parse_properties(Path(path).read_bytes()):
            before = found.get(name)
            if before is not None and before.value != value.strip():
                LOG.warning(
                    "%s has %s in lines %d and %d: the last one counts", path, name, before.number, number
                )
            found[name] = _Line(value.strip(), number)
    except OSError as error:
        raise click.UsageError(f"--config-file {path}: {error.strerror}") from None
    except CorruptFileError as error:
        raise click.UsageError(f"--config-file {path}, {error.reason}") from None
    return found


def _without(
    file: Mapping[str, _Line], options: Mapping[str, str], *, is_listening: bool
) -> dict[str, _Line]:
    """Return the file's settings that no option replaces. A time in another unit is the same setting."""
    from txnkafka.broker.config.config_names import TOPIC_SYNONYMS
    from txnkafka.server.listeners import LISTENERS

    replaced = {TOPIC_SYNONYMS[name][0] for name in options if name in TOPIC_SYNONYMS}
    names = {name for name, (topic_name, _) in TOPIC_SYNONYMS.items() if topic_name in replaced}
    names |= options.keys() | ({LISTENERS} if is_listening else set())
    return {name: line for name, line in file.items() if name not in names}


def _data_directory(file: Mapping[str, _Line]) -> str:
    """Return the one directory of ``log.dirs`` or ``log.dir``. Raises UsageError."""
    name = next((name for name in _DIRECTORIES if name in file), None)
    if name is None:
        raise click.UsageError("no data directory: give --data DIR, or --config-file with log.dirs")
    directories = [each.strip() for each in file[name].value.split(",") if each.strip()]
    if len(directories) != 1:
        raise click.UsageError(
            f"{name} has {len(directories)} directories, and the data directory is one: --data DIR chooses it"
        )
    return directories[0]


def _placed(reason: str, path: str | None, file: Mapping[str, _Line]) -> str:
    """Return a reason with the place of the first setting in it."""
    named = next((name for name in re.split(r"[\s:;,]+", reason) if name in file), None)
    return reason if named is None else f"{path}, line {file[named].number}: {reason}"
