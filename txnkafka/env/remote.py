"""Reads files on object stores, HDFS and other file systems of fsspec.

A request takes milliseconds, whatever its size. So directory listings are cached, small files are fetched
many at a time, logs are read in large windows, and the next window is fetched while the current one is
decoded. One thread makes all requests of a file system, so backends need not be thread-safe, and at most one
request is in flight. The backend retries.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from txnkafka.env.address_password import password_of, without_password
from txnkafka.env.filesystem import DirectoryEntry
from txnkafka.env.remote_backend import connect, explained, is_panic
from txnkafka.env.remote_file import RemoteFile

LOADED_FILE_LIMIT = 1 << 20  # larger files are fetched only when they are read
Listing = dict[str, DirectoryEntry]
Info = Mapping[str, Any]
P = ParamSpec("P")
T = TypeVar("T")


class RemoteFileSystem:
    """The file system of an address such as ``s3://bucket/kafka-logs``; paths are addresses.

    Directory listings are cached for ever. A pickled object contains the address and the options, and
    connects again where it is used, also after a fork. Raises LogDirError for an address that no package
    opens. Only this object keeps the password of an address: paths, and so messages, have ``***`` instead."""

    window_bytes = 8 << 20  # at 20 ms per request and 100 MB/s, a fifth of the time is latency
    maps_files = False

    def __init__(self, address: str, storage_options: Mapping[str, Any] | None = None) -> None:
        self._address = address
        self._shown = without_password(address)
        self._authority, self._authority_shown = map(_authority, (address, self._shown))
        self._options = dict(storage_options or {})
        self._connect()

    def __repr__(self) -> str:
        return f"RemoteFileSystem({self._shown!r})"  # options may contain secrets

    def __reduce__(self) -> tuple[object, ...]:
        return RemoteFileSystem, (self._address, self._options)

    def is_same(self, other: RemoteFileSystem) -> bool:
        """Return True if both use the same connection."""
        return bool(self._backend == other._backend)

    def load(self, path: str, names: Iterable[str]) -> None:
        top = self._listing(path)
        for entry in top.values():
            if entry.is_directory:
                self._listings.setdefault(self.join(path, entry.name), {})
        for info in self._run(path, self._backend.find, self._key(path), detail=True).values():
            self._enter(path, self._name_below(path, info), info)
        self._fetch_small(path, frozenset(names))

    def list(self, path: str) -> list[DirectoryEntry]:
        return sorted(self._listing(path).values())

    def is_directory(self, path: str) -> bool:
        try:
            self._listing(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def exists(self, path: str) -> bool:
        parent, name = self.split(path)
        try:
            return name in self._listing(parent)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def open(self, path: str) -> RemoteFile:
        return RemoteFile(lambda start, end: self._fetch(path, start, end), self._size(path))

    def read(self, path: str, limit: int) -> bytes:
        if path in self._contents:
            return self._contents[path]
        size = self._size(path)
        if size > limit:
            raise OSError(errno.EFBIG, f"{size} bytes, more than the limit of {limit}", path)
        return self._fetch(path, 0, size).result()

    def is_locked(self, path: str) -> bool:
        return False  # unknown; brokers write to local disks

    def join(self, path: str, *names: str) -> str:
        return path + ("" if path.endswith("/") else "/") + "/".join(names)

    def split(self, path: str) -> tuple[str, str]:
        scheme, _, rest = path.partition("://")
        parent, _, name = rest.rstrip("/").rpartition("/")
        return f"{scheme}://{parent or '/' * rest.startswith('/')}", name

    def _connect(self) -> None:
        self._backend = connect(self._address, self._options)
        self._backend.invalidate_cache()  # other users of the backend may have cached listings
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="txnkafka-files")
        self._process = os.getpid()
        self._listings: dict[str, Listing] = {}
        self._contents: dict[str, bytes] = {}

    def _listing(self, path: str) -> Listing:
        if path not in self._listings:
            infos = self._run(path, self._backend.ls, self._key(path), detail=True)
            if len(infos) == 1 and infos[0]["type"] == "file" and not self._name_below(path, infos[0]):
                raise NotADirectoryError(errno.ENOTDIR, "is not a directory", path)
            self._listings[path] = {}
            for info in infos:
                self._enter(path, self._name_below(path, info), info)
        return self._listings[path]

    def _enter(self, directory: str, relative: str, info: Info) -> None:
        """Cache an entry and its parent directories: in an object store they exist only as parts of names."""
        while relative:
            name, _, relative = relative.partition("/")
            if not name:
                return  # the placeholder object that some tools create for a directory
            is_directory = bool(relative) or info["type"] == "directory"
            size = 0 if is_directory else int(info["size"] or 0)
            self._listings.setdefault(directory, {})[name] = DirectoryEntry(name, is_directory, size, 0)
            directory = self.join(directory, name)

    def _fetch_small(self, path: str, names: frozenset[str]) -> None:
        """Fetch all small files of these names at once. Failed files are read again individually, which
        reports the error."""
        wanted = {
            self.join(directory, entry.name): entry.size
            for directory, listing in self._listings.items()
            if directory == path or directory.startswith(self.join(path, ""))
            for entry in listing.values()
            if entry.name in names and 0 < entry.size <= LOADED_FILE_LIMIT
        }
        starts, ends = [0] * len(wanted), list(wanted.values())
        keys = list(map(self._key, wanted))
        try:
            found = self._run(path, self._backend.cat_ranges, keys, starts, ends, on_error="return")
        except OSError:
            return
        for path, content in zip(wanted, found, strict=True):
            if isinstance(content, bytes) and len(content) == wanted[path]:
                self._contents[path] = content

    def _size(self, path: str) -> int:
        parent, name = self.split(path)
        if parent not in self._listings:
            return int(self._run(path, self._backend.info, self._key(path))["size"] or 0)
        if name not in self._listings[parent]:
            raise FileNotFoundError(errno.ENOENT, "does not exist", path)
        return self._listings[parent][name].size

    def _key(self, path: str) -> str:
        """Return the backend's name of a path."""
        if self._shown != self._address and path.startswith(self._authority_shown):
            path = self._authority + path.removeprefix(self._authority_shown)
        return str(self._backend._strip_protocol(path))

    def _name_below(self, path: str, info: Info) -> str:
        """Return the path of an entry relative to the directory ``path``; empty for the directory itself."""
        return self._key(info["name"]).removeprefix(self._key(path)).strip("/")

    def _fetch(self, path: str, start: int, end: int) -> Future[bytes]:
        """Return a future of the bytes [start, end) of a file; it raises OSError if any are missing."""

        def fetched() -> bytes:
            if start == end:
                return b""
            content = self._guarded(path, self._backend.cat_file, self._key(path), start=start, end=end)
            if len(content) != end - start:
                text = f"{len(content)} bytes received for {start} to {end}: was the file replaced?"
                raise OSError(errno.EIO, text, path)
            return bytes(content)

        return self._submit(fetched)

    def _run(self, path: str, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        return self._submit(self._guarded, path, function, *arguments, **keywords).result()

    def _submit(self, function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> Future[T]:
        if self._process != os.getpid():
            self._connect()  # threads do not survive a fork
        return self._thread.submit(function, *arguments, **keywords)

    def _guarded(self, path: str, function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
        """Call the backend; convert all its errors to OSErrors about ``path``."""
        try:
            return function(*arguments, **keywords)
        except BaseException as error:
            if not isinstance(error, Exception) and not is_panic(error):
                raise
            password = password_of(self._address)
            raise explained(error, path, {**self._options, "password": password}) from error


def _authority(address: str) -> str:
    """Return scheme, user and host: the common prefix of all paths on a file system."""
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"
