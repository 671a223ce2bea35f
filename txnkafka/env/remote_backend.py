"""Finds the fsspec file system for an address, and translates its errors.

fsspec is optional: local files do not need it. Most schemes need one more package; for the large object
stores, obstore works as well and is part of ``txnkafka[files]``.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from txnkafka.env.address_password import password_of, without_password
from txnkafka.env.storage_options import hint, obstore_options
from txnkafka.errors import LogDirError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

OBSTORE_SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")
REFUSALS = ("permission", "credential", "auth", "forbidden")  # parts of exception names
SECRET = re.compile("secret|password|token|key|credential|sas", re.IGNORECASE)  # parts of option names
INSTALL = "pip install 'txnkafka[files]'"
LONGEST_TEXT = 400  # some packages list everything that they tried


def connect(address: str, options: Mapping[str, Any]) -> AbstractFileSystem:
    """Open the fsspec file system of an address; ``options`` are passed to its package. Raises
    LogDirError."""
    shown = without_password(address)
    if "::" in address:
        raise LogDirError(f"{shown}: addresses within addresses (::) are not supported; unpack it first")
    scheme = address.partition("://")[0]
    _import(shown, scheme)
    from fsspec import get_filesystem_class
    from fsspec.core import url_to_fs

    try:
        is_obstore = get_filesystem_class(scheme).__module__.startswith("obstore.")
        given = obstore_options(scheme, options) if is_obstore else options
        return url_to_fs(address, **given)[0]
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        names = f" with the options {', '.join(options)}" if options else ""
        secrets = {**options, "password of the address": password_of(address)}
        raise LogDirError(f"{shown} cannot be opened{names}: {_text(error, secrets)}") from None


def _import(address: str, scheme: str) -> None:
    """Import the package for a scheme, or obstore if fsspec's own choice is not installed."""
    try:
        import fsspec
    except ImportError:
        raise LogDirError(f"{address}: addresses need the package fsspec: {INSTALL}") from None
    try:
        fsspec.get_filesystem_class(scheme)
    except ValueError:
        raise LogDirError(
            f"{address}: unknown file system {scheme!r}; fsspec.available_protocols() lists the known ones"
        ) from None
    except ImportError as error:
        if scheme not in OBSTORE_SCHEMES or not _register_obstore(scheme):
            alternative = f", or obstore: {INSTALL}" if scheme in OBSTORE_SCHEMES else ""
            raise LogDirError(f"{address}: {error}{alternative}") from None


def _register_obstore(scheme: str) -> bool:
    try:
        from obstore.fsspec import register
    except ImportError:
        return False
    register(scheme)
    return True


def is_panic(error: BaseException) -> bool:
    """Return True for a panic of a Rust backend: it is not an Exception, but should not end the program."""
    return type(error).__name__ == "PanicException"


def explained(error: BaseException, path: str, options: Mapping[str, Any]) -> OSError:
    """Translate a backend's error to an OSError about ``path``, with advice."""
    kind = type(error).__name__.lower()
    if isinstance(error, FileNotFoundError) or "notfound" in kind or "NoSuchBucket" in str(error):
        return FileNotFoundError(errno.ENOENT, "does not exist, or not for these credentials", path)
    text = _text(error, options)
    if isinstance(error, PermissionError) or any(word in kind for word in REFUSALS):
        text = f"permission denied ({text}); give credentials in storage_options or as its package finds them"
        return PermissionError(errno.EACCES, text, path)
    return OSError(getattr(error, "errno", None) or errno.EIO, text, path)


def _text(error: BaseException, options: Mapping[str, Any]) -> str:
    """Return the text of an error in one line, without obstore's debug output and without secrets."""
    text = " ".join(f"{type(error).__name__}: {error}".split()).partition(" Debug source: ")[0]
    for secret in _secrets(options):
        text = text.replace(secret, "***")
    shown = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
    return shown + hint(text)


def _secrets(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif SECRET.search(name) and len(str(value)) > 3:
            yield str(value)
