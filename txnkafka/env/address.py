"""Parses paths that users give: plain ones, ``file:`` addresses, and addresses of other file systems.

Local paths become absolute here, because the last two directory names of a path identify the partition and
the place of its checkpoints: ``.``, ``./x/``, ``x`` and the absolute path are the same path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from txnkafka.env.address_password import without_password
from txnkafka.env.filesystem import FileSystem, LocalFileSystem
from txnkafka.errors import LogDirError

AnyPath = str | os.PathLike[str]
_BROKER = re.compile(r"kafka:.*|[\w.-]+:\d{1,5}(?:,[\w.-]+:\d{1,5})*|\[[\da-f:]+\]:\d{1,5}", re.IGNORECASE)
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z\d+.-]+):(?:(//[^/]*)(?=/|$)|(?=/))")


def list_of_paths(paths: object) -> list[str]:
    """Return one path, or an iterable of paths, as a list of str. Raises TypeError for other types."""
    several = [paths] if isinstance(paths, str | bytes | os.PathLike) else paths
    if not isinstance(several, Iterable):
        raise TypeError(f"a path is a str or a pathlib.Path, not {type(paths).__name__}")
    return list(map(_text, several))


def _text(path: object) -> str:
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise TypeError(f"a path is a str or a pathlib.Path, not {type(path).__name__}")
    return text


def open_file_system(
    paths: Iterable[str], storage_options: Mapping[str, Any] | None = None
) -> tuple[FileSystem, list[str]]:
    """Return the file system of all ``paths``, and their names on it: absolute, without duplicates, and
    without passwords, which only the file system object keeps.

    ``storage_options`` are the arguments of fsspec's file system for the address's scheme. Raises LogDirError
    for paths on several file systems and for addresses that cannot be opened."""
    given = list(paths)
    if not given or not all(given):
        raise LogDirError("a path is empty" if given else "no path was given")
    for path in given:
        _refuse_broker(path)
    remote = [address for address in given if is_remote(address)]
    if not remote:
        if storage_options:
            path = without_password(given[0])
            raise LogDirError(f"storage options are for addresses such as s3://bucket, not for {path}")
        return LocalFileSystem(), _unique(map(_local_path, given))
    from txnkafka.env.remote import RemoteFileSystem

    addresses = _unique(map(_normalized, remote))
    file_system = RemoteFileSystem(addresses[0], storage_options)
    others = [RemoteFileSystem(address, storage_options) for address in addresses[1:]]
    if len(remote) < len(given) or not all(map(file_system.is_same, others)):
        shown = ", ".join(map(without_password, given))
        raise LogDirError(f"{shown} are on several file systems; read them one at a time")
    return file_system, list(map(without_password, addresses))


def _refuse_broker(path: str) -> None:
    """Raise LogDirError for the address of a broker, unless a file has that name."""
    if _BROKER.fullmatch(path) and not os.path.lexists(path):
        raise LogDirError(
            f"{without_password(path)} is the address of a broker, but this reads files: "
            "use kcat or kafka-console-consumer.sh, or name the broker's log directory"
        )


def is_remote(path: str) -> bool:
    """Return True if ``path`` is an address on a file system other than the local one."""
    address = _ADDRESS.match(path)
    return address is not None and address[1].lower() != "file"


def _normalized(address: str) -> str:
    scheme, separator, rest = address.partition("://")
    if not separator:
        shown = without_password(address)
        raise LogDirError(f"{shown}: an address has two slashes after its scheme, as in hdfs://host/logs")
    return f"{scheme.lower()}://{rest.rstrip('/') or rest[:1]}"


def _unique(paths: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(paths))


def _local_path(path: str) -> str:
    """Return the path of a ``file:`` address, or the path itself; absolute."""
    address = _ADDRESS.match(path)
    if address is None:
        return absolute_path(path)
    if address[2] not in (None, "//", "//localhost"):
        shown = without_password(path)
        raise LogDirError(f"{shown}: files of another machine cannot be opened; mount its disk or copy them")
    return absolute_path(path[address.end() :])


def absolute_path(path: str) -> str:
    """Return ``path`` without ``.``, ``..`` and redundant slashes. The last name is kept even if it is a
    link, because it identifies the partition. Links before ``..`` are resolved, because only the file system
    knows their parents."""
    names = path.split("/")
    try:
        if ".." in names:
            end = len(names) - names[::-1].index("..")
            path = os.path.join(os.path.realpath("/".join(names[:end])), *names[end:])
        absolute = os.path.abspath(path)
    except FileNotFoundError:
        raise LogDirError(f"{path}: the current directory no longer exists") from None
    return "/" + absolute.lstrip("/")
