"""A bucket in memory that records every request, and fails where a test requests it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

__all__ = ["Bucket"]


class Bucket(MemoryFileSystem):
    """``bucket://…``: names without directories. ``answer`` may be set to replace what a read returns."""

    protocol = "bucket"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    requests: ClassVar[list[tuple[Any, ...]]] = []
    answer: ClassVar[Any] = None

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.removeprefix("bucket://"))

    @classmethod
    def install(cls, folder: Path | None = None) -> None:
        """Register its addresses, and fill it with the files below a folder, as ``bucket://logs``."""
        fsspec.register_implementation("bucket", cls, clobber=True)
        cls.store.clear()
        if folder is not None:
            cls().put(f"{folder}/", "/logs", recursive=True)
            cls.pseudo_dirs[:] = [""]
        cls.answer = None
        cls.requests.clear()

    @classmethod
    def counted(cls) -> dict[str, int]:
        """Return the number of requests of each kind, and reset them."""
        counts = dict(Counter(kind for kind, *_ in cls.requests))
        cls.requests.clear()
        return counts

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        self.requests.append(("ls", path))
        return super().ls(path, detail, **options)

    def find(self, path: str, *arguments: Any, **options: Any) -> Any:
        self.requests.append(("find", path))
        return super().find(path, *arguments, **options)

    def info(self, path: str, **options: Any) -> Any:
        self.requests.append(("info", path))
        return super().info(path, **options)

    def cat_ranges(self, paths: list[str], starts: Any, ends: Any, **options: Any) -> Any:
        self.requests.append(("cat_ranges", *paths))
        return [bytes(self.store[path].getbuffer()[:end]) for path, end in zip(paths, ends, strict=True)]

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        self.requests.append(("cat_file", path, start, end))
        if path not in self.store:
            raise FileNotFoundError(path)
        content = bytes(self.store[path].getbuffer()[start:end])
        return content if self.answer is None else type(self).answer(path, start, content)
