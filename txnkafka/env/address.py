"""Paths as people give them: plain ones, ``file:`` addresses, and addresses of other file systems."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from txnkafka.env.filesystem import FileSystem, LocalFileSystem
from txnkafka.errors import LogDirError

__all__ = ["open_file_system", "without_password"]

_PASSWORD = re.compile(r"(?<=://)([^/?#:@]*):([^/?#]*)@")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z\d+.-]+):(?:(//[^/]*)(?=/|$)|(?=/))")


def open_file_system(
    paths: Iterable[str], storage_options: Mapping[str, Any] | None = None
) -> tuple[FileSystem, list[str]]:
    """The file system on which all ``paths`` are, and the paths as it calls them: without passwords, which
    only the file system itself knows.

    ``storage_options`` are the arguments of fsspec's file system for the scheme of the address. Raises
    LogDirError for paths of several file systems and for addresses that cannot be opened.
    """
    given = list(paths)
    remote = [each for each in given if is_remote(each)]
    if not remote:
        if storage_options:
            path = without_password(given[0])
            raise LogDirError(f"storage options are for addresses such as s3://bucket, not for {path}")
        return LocalFileSystem(), list(map(_local_path, given))
    from txnkafka.env.remote import RemoteFileSystem

    addresses = list(map(_normalized, remote))
    file_system = RemoteFileSystem(addresses[0], storage_options)
    others = [RemoteFileSystem(each, storage_options) for each in addresses[1:]]
    if len(remote) < len(given) or not all(map(file_system.is_same, others)):
        shown = ", ".join(map(without_password, given))
        raise LogDirError(f"{shown} are on several file systems; read them one at a time")
    return file_system, list(map(without_password, addresses))


def without_password(address: str) -> str:
    """An address with ``***`` in the place of a password: what may stand in a message."""
    return _PASSWORD.sub(r"\1:***@", address, count=1)


def password_of(address: str) -> str:
    """The password in an address; empty when there is none."""
    found = _PASSWORD.search(address)
    return found[2] if found else ""


def is_remote(path: str) -> bool:
    """Whether ``path`` is an address of another file system than the machine's own."""
    address = _ADDRESS.match(path)
    return address is not None and address[1].lower() != "file"


def _normalized(address: str) -> str:
    scheme, separator, rest = address.partition("://")
    if not separator:
        shown = without_password(address)
        raise LogDirError(f"{shown}: an address has two slashes behind its scheme, as in hdfs://host/logs")
    return f"{scheme.lower()}://{rest.rstrip('/') or rest[:1]}"


def _local_path(path: str) -> str:
    """The path of a ``file:`` address, or the path itself."""
    address = _ADDRESS.match(path)
    if address is None:
        return path
    if address[2] not in (None, "//", "//localhost"):
        shown = without_password(path)
        raise LogDirError(f"{shown}: files of another machine are not there; mount its disk or copy them")
    return path[address.end() :]
