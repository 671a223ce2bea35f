"""Every golden directory read through fsspec gives the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from tests.golden.answers import read
from tests.golden.cases import ISOLATION_LEVELS, unpacked
from tests.golden.damage import TABLE
from tests.golden.directories import INTACT
from txnkafka import LogDir
from txnkafka.env import LocalFileSystem
from txnkafka.env.remote import RemoteFileSystem
from txnkafka.logdir.verify import verify

DIRECTORIES = sorted({each.path for each in INTACT} | {row.path for row in TABLE})
NAMES = [str(Path(path).relative_to(unpacked())) for path in DIRECTORIES]


@pytest.fixture(scope="module")
def memory() -> Iterator[str]:
    """Put all cases into memory, where directories are only prefixes of names; return the address."""
    store = fsspec.filesystem("memory")
    store.put(f"{unpacked()}/", "/golden", recursive=True)
    yield "memory://golden"
    store.store.clear()  # rm() would compare each file with every other file
    store.pseudo_dirs[:] = [""]


def answers(log_dir: LogDir, root: str) -> list[Any]:
    """Return all answers about a directory, without paths."""
    found: list[Any] = [log_dir.topics, log_dir.transactional_ids(), log_dir.committed_offsets()]
    for view in log_dir.partitions():
        found.append((view.log_start_offset, view.last_stable_offset, view.log_end_offset))
        found.append(view.high_watermark)
        for level in ISOLATION_LEVELS:
            records, error = read(view, level)
            found.append((records, str(error).replace(root, "")))
    found += [finding._replace(file=finding.file.removeprefix(root)) for finding in verify(log_dir).findings]
    return found


def check(name: str, address: str) -> None:
    here, there = LogDir(str(unpacked() / name), io="pread"), LogDir(f"{address}/{name}")
    assert answers(there, address) == answers(here, str(unpacked()))


@pytest.mark.parametrize("name", NAMES)
def test_in_memory_window_by_window(name: str, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RemoteFileSystem, "window_bytes", 300)
    monkeypatch.setattr(LocalFileSystem, "window_bytes", 300)
    check(name, memory)


@pytest.mark.parametrize("name", NAMES)
def test_on_the_disk_through_fsspec(name: str) -> None:
    check(name, f"local://{unpacked()}")
