"""``vacuum``: removes staged files that no query needs any more."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from txnkafka.env import LocalDataFiles, SystemClock, list_of_paths
from txnkafka.staging import Orphan, orphans, staging_beside

if TYPE_CHECKING:
    from txnkafka.env import AnyPath

WEEK = timedelta(days=7)


def vacuum(path: AnyPath, older_than: timedelta = WEEK, *, remove: bool = True) -> list[Orphan]:
    """Remove the staged files of killed tasks, and return them; with ``remove=False`` only return them.

    ``path`` is the option ``stagingPath``, or the data directory or checkpoint beside which the sink stages.
    Files that changed within ``older_than`` may belong to a batch that is being written; if such a file is
    removed, the batch fails, and Spark writes it again. Raises FileNotFoundError without the directory,
    OSError."""
    (text,) = list_of_paths(path)
    files = LocalDataFiles()
    before_ms = SystemClock().now_ms() - older_than // timedelta(milliseconds=1)
    found = list(orphans(files, staging_beside(files, text), before_ms))
    if remove:
        for orphan in found:
            files.remove(orphan.path)
    return found
