"""Exports for tests: the content of an output directory, and a disk that stops the process at a planned
change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from txnkafka.env import LocalDataFiles
from txnkafka.env.data_files import LocalDataFile
from txnkafka.export import ExportOptions, ExportReport, export
from txnkafka.logdir import LogDir, ReadRequest

__all__ = ["Stop", "StoppingOutput", "everything", "run_export", "visible"]


class Stop(BaseException):
    """The process is stopped here."""


class StoppingOutput(LocalDataFiles):
    """Stops before change number ``limit`` to the disk; if this is a write, half of it is done."""

    def __init__(self, limit: int = 1 << 30) -> None:
        self.limit = limit
        self.changes = 0

    def change(self) -> None:
        self.changes += 1
        if self.changes > self.limit:
            raise Stop

    def create(self, path: str) -> StoppingFile:
        self.change()
        return StoppingFile(self, path, os.O_CREAT | os.O_EXCL)

    def open_to_write(self, path: str) -> StoppingFile:
        return StoppingFile(self, path)

    def make_directory(self, path: str) -> None:
        self.change()
        super().make_directory(path)

    def sync_directory(self, path: str) -> None:
        self.change()  # no sync: only the process ends, not the machine

    def rename(self, source: str, target: str) -> None:
        self.change()
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self.change()
        super().remove(path)

    def synced(self, path: str) -> None:
        """Called when a file was synced."""


class StoppingFile(LocalDataFile):
    def __init__(self, output: StoppingOutput, path: str, flags: int = 0) -> None:
        super().__init__(path, flags)
        self._output = output

    def write(self, position: int, parts: Sequence[Any]) -> None:
        try:
            self._output.change()
        except Stop:
            whole = b"".join(parts)
            super().write(position, [whole[: len(whole) // 2]])
            raise
        super().write(position, parts)

    def sync(self) -> None:
        self._output.change()
        self._output.synced(self._path)


def everything(view: object) -> ReadRequest:
    """Return a request for the whole partition."""
    return ReadRequest()


REQUEST = tuple(field.name for field in fields(ReadRequest))


def run_export(log_dir: Path, output: Path, to: str = "jsonl", **given: Any) -> ExportReport:
    """Export all partitions; ``given`` are fields of ReadRequest and ExportOptions, and keywords of
    ``export``."""
    keywords = {
        name: given.pop(name) for name in ("files", "engine", "incremental", "progress") if name in given
    }
    request = ReadRequest(**{name: given.pop(name) for name in REQUEST if name in given})
    options = ExportOptions(to=to, paths=(str(log_dir),), request=request, **given)
    opened = LogDir(str(log_dir))
    partitions = opened.topic_partitions
    return export(opened, partitions, str(output), options, locate=lambda _: request, **keywords)


def visible(output: Path) -> dict[str, bytes]:
    """Return what readers see: the content of every file without a part of its path that begins with ``_`` or
    ``.``."""
    found = {path.relative_to(output): path for path in output.rglob("*") if path.is_file()}
    return {
        str(name): path.read_bytes()
        for name, path in sorted(found.items())
        if not any(part.startswith(("_", ".")) for part in name.parts)
    }
