"""``lock_directory``: the first step of opening a data directory, before its registry and its logs.

    with lock_directory(files, path) as locked:
        ...  # read the identity, open or change the registry
        data = DataDirectory(files, path, config, now_ms=now_ms, locked=locked)

The marker of a clean stop is removed, durably, before the block may change the registry. If the block ends
before a log is opened, the marker is written again and the lock released.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from txnkafka.storage.clean_marker import restore_clean_marker, take_clean_marker
from txnkafka.storage.formats.meta_properties import MetaProperties
from txnkafka.storage.identity import identify, identify_or_make
from txnkafka.storage.ownership import take_directory

if TYPE_CHECKING:
    from txnkafka.env import DataFiles
    from txnkafka.storage.clean_marker import CleanMarker
    from txnkafka.storage.ownership import Ownership


class LockedDirectory:
    """A directory that this process owns; its logs are not open. ``identity`` is what ``meta.properties``
    contains."""

    def __init__(
        self,
        files: DataFiles,
        path: str,
        owner: Ownership,
        identity: MetaProperties,
        marker: CleanMarker | None,
    ) -> None:
        self.owner = owner
        self.identity = identity
        self._files, self._path, self._marker = files, path, marker
        self._may_have_changed_logs = False

    def begin_logs(self) -> CleanMarker | None:
        """Return the marker of the previous owner, None after a crash. Call before any log is opened: the
        caller may change logs now, so the marker is not written again, and releases ``owner``."""
        self._may_have_changed_logs = True
        return self._marker

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._may_have_changed_logs:
            return
        try:
            if self._marker is not None and (kind is None or issubclass(kind, Exception)):
                restore_clean_marker(self._files, self._path, self._marker)
        finally:
            self.owner.give_back()


def lock_directory(
    files: DataFiles,
    path: str,
    cluster_id: str | None = None,
    node_id: int | None = None,
    *,
    makes_identity: bool = True,
) -> LockedDirectory:
    """Lock the data directory at ``path``, creating it if missing, and read its identity; a missing identity
    is created only with ``makes_identity``. Raises LogDirError if another owner has locked the directory, or
    if it belongs to another cluster or node, or is not a data directory; OSError."""
    owner = take_directory(files, path)
    try:
        if makes_identity:
            identity = identify_or_make(files, path, cluster_id, node_id)
        else:
            identity = identify(files, path, cluster_id, node_id) or MetaProperties(0, None, None, None)
        return LockedDirectory(files, path, owner, identity, take_clean_marker(files, path))
    except BaseException:
        owner.give_back()
        raise
