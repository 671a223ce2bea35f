"""Packs the installed package into an archive that Spark unpacks next to its Python workers.

Spark cannot load compiled modules from zip files or wheels. But it unpacks ``FILE#txnkafka`` into a directory
``txnkafka`` on the workers' ``sys.path``, so an archive of the package's contents becomes the package. Only
one Python version and platform can load it, hence the file's name.
"""

from __future__ import annotations

import gzip
import io
import sysconfig
import tarfile
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

import txnkafka

ARCHIVE_FRAGMENT = "#txnkafka"  # after the file's name: the directory to unpack to


class Bundle(NamedTuple):
    """An archive, the name of its file, and the build of Python that loads it."""

    name: str
    build: str
    content: bytes


def bundle() -> Bundle:
    """Pack the installed package, editable or not; the same package gives the same bytes."""
    members = dict(sorted(_members(files("txnkafka"))))
    version = txnkafka.__version__
    # so that the version is known where the package is not installed
    metadata = f"Metadata-Version: 2.1\nName: txnkafka\nVersion: {version}\n"
    members[f"txnkafka-{version}.dist-info/METADATA"] = metadata.encode()
    build = str(sysconfig.get_config_var("SOABI"))
    return Bundle(f"txnkafka-{version}-{build}.tar.gz", build, _packed(members))


def _members(directory: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in directory.iterdir():
        if entry.is_dir():
            yield from _members(entry, f"{prefix}{entry.name}/")
        elif _is_code(entry.name):
            yield prefix + entry.name, entry.read_bytes()


def _is_code(name: str) -> bool:
    """Return whether this Python loads a file as code; a checkout may also have modules compiled for other
    versions."""
    _, dot, suffix = name.partition(".")
    return dot + suffix in (".py", *EXTENSION_SUFFIXES)


def _packed(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    # no owners and times: equal contents must give equal bytes
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()
