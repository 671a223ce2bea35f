"""The last step of the staging protocol for parts that are files: moves them to where readers see them."""

from __future__ import annotations

from collections.abc import Iterable

from txnkafka.env import DataFiles, make_directories


def publish(files: DataFiles, moves: Iterable[tuple[str, str]]) -> None:
    """Move the files of a part that counts durably from one path to another; files that an earlier run moved
    are left alone. Raises FileNotFoundError with the path of a file that is in neither place."""
    folders = set()
    for staged, target in moves:
        if files.exists(staged):
            folder = target.rpartition("/")[0]
            folders.add(folder)
            make_directories(files, folder)
            files.rename(staged, target)
        elif not files.exists(target):
            raise FileNotFoundError(target)
    for folder in sorted(folders):
        files.sync_directory(folder)
