"""Exports for tests: what lies in an output directory, and a disk that fails when it is told to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from txnkafka.env import LocalOutput, OutputFile
from txnkafka.logdir import LogDir
from txnkafka.logdir.export import ExportOptions, ExportReport, export

__all__ = ["Stop", "StoppingOutput", "everything", "run_export", "visible"]


class Stop(BaseException):
    """The process ends here."""


class StoppingOutput(LocalOutput):
    """Stops in front of change number ``limit`` to the disk; a write is half done when it stops."""

    def __init__(self, limit: int = 1 << 30) -> None:
        self.limit = limit
        self.changes = 0

    def change(self) -> None:
        self.changes += 1
        if self.changes > self.limit:
            raise Stop

    def make_directory(self, path: str) -> None:
        self.change()
        super().make_directory(path)

    def create(self, path: str) -> OutputFile:
        self.change()
        return StoppingFile(self, super().create(path))

    def sync(self, path: str) -> None:
        self.change()  # and no more: the machine goes on, only the process ends

    def rename(self, source: str, target: str) -> None:
        self.change()
        super().rename(source, target)

    def remove_tree(self, path: str) -> None:
        self.change()
        super().remove_tree(path)


class StoppingFile:
    def __init__(self, output: StoppingOutput, file: OutputFile) -> None:
        self._output = output
        self._file = file

    def write(self, content: Any) -> None:
        try:
            self._output.change()
        except Stop:
            self._file.write(memoryview(content)[: len(content) // 2])
            self._file.close()
            raise
        self._file.write(content)

    def close(self) -> None:
        self._file.close()


def everything(view: object) -> tuple[None, None]:
    """Bounds: from the beginning to the end."""
    return None, None


def run_export(log_dir: Path, output: Path, to: str = "jsonl", **given: Any) -> ExportReport:
    """Export all partitions; ``given`` are ExportOptions and keywords of ``export``."""
    keywords = {
        name: given.pop(name) for name in ("files", "engine", "incremental", "progress") if name in given
    }
    options = ExportOptions(to=to, paths=(str(log_dir),), **given)
    opened = LogDir(str(log_dir))
    partitions = opened.topic_partitions
    return export(opened, partitions, str(output), options, bounds=everything, **keywords)


def visible(output: Path) -> dict[str, bytes]:
    """What readers see: the content of every file none of whose names begins with ``_`` or ``.``."""
    found = {path.relative_to(output): path for path in output.rglob("*") if path.is_file()}
    return {
        str(name): path.read_bytes()
        for name, path in sorted(found.items())
        if not any(part.startswith(("_", ".")) for part in name.parts)
    }
