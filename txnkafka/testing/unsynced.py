"""Tracks the changes of a disk that are durable after some calls, and those that a power cut may still undo.

The rules are the weakest that POSIX allows. The content and the size of a file are durable after a sync of
that file; creating, removing or renaming a name after a sync of its directory. Neither sync implies the
other. A rename is atomic (old or new name), unless it moves a file to another directory and only the old
directory is synced: then the file may be lost. A failed sync may lose its writes for ever: the system marks
them as written, and a later sync does not write them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from txnkafka.testing.disk import NOWHERE, Change, Disk

Names = dict[int, Mapping[str, int]]
Numbered = tuple[int, Change]
"""A change, preceded by the number of changes before it."""
NOTHING: Mapping[int, bytes | None] = {}


class Unsynced:
    """A disk after some of its changes. ``contents`` and ``names`` are durable.

    ``writes`` has the later writes and truncations by inode; ``renamed`` are the changes of names that may
    be missing."""

    def __init__(self, base: Disk) -> None:
        self.contents: dict[int, bytes] = dict(base.contents)
        self.names: Names = dict(base.names)
        self.modified_ms = dict(base.modified_ms)
        self.next_inode = base.next_inode
        self.writes: dict[int, list[Numbered]] = {}
        self.renamed: list[Numbered] = []
        self._kept: dict[int, bytes] = dict(base.contents)
        self._written: set[int] = set()  # files with newer content than the durable one
        self._doubtful: set[int] = set()
        self._certain: set[int] = set()  # synced writes after a doubtful one
        self.believed: set[int] = set()  # files with a successful sync after doubtful writes
        self._number = 0

    def make(self, change: Change) -> None:
        """Apply one change."""
        self.modified_ms[change.inode] = change.modified_ms
        if (act := self._ACTS.get(change.kind)) is not None:
            act(self, change)
        self._number += 1

    def _write(self, change: Change) -> None:
        self.writes.setdefault(change.inode, []).append((self._number, change))
        self._written.add(change.inode)

    @property
    def kept(self) -> dict[int, bytes]:
        """The contents after all writes."""
        for inode in self._written:
            self._kept[inode] = after(self.contents[inode], self.writes[inode])
        self._written.clear()
        return self._kept

    def _sync(self, change: Change) -> None:
        """Sync a file. Writes in doubt stay in doubt, and later ones are applied after them, in order."""
        writes = self.writes.pop(change.inode, [])
        self._certain.update(number for number, _ in writes if number not in self._doubtful)
        durable = 0
        while durable < len(writes) and writes[durable][0] in self._certain:
            durable += 1
        if durable == len(writes):
            if writes:
                content = after(self.contents[change.inode], writes)
                self.contents[change.inode] = self._kept[change.inode] = content
                self._written.discard(change.inode)
        else:
            self.contents[change.inode] = after(self.contents[change.inode], writes[:durable])
            self.writes[change.inode] = writes[durable:]
            self.believed.add(change.inode)

    def _fail_sync(self, change: Change) -> None:
        writes = self.writes.get(change.inode, [])
        self._doubtful.update(number for number, _ in writes if number not in self._certain)

    def _name(self, change: Change) -> None:
        self.renamed.append((self._number, change))
        self.next_inode = max(self.next_inode, change.inode + 1)
        if change.kind == "create":
            self.contents[change.inode] = self._kept[change.inode] = b""
        elif change.kind == "make_directory":
            self.names[change.inode] = {}

    def _sync_directory(self, change: Change) -> None:
        durable: list[Numbered] = []
        waiting: list[Numbered] = []
        left: set[tuple[int, str]] = set()
        for number, rename in reversed(self.renamed):
            # a file durably moved here has lost its old name, however it got that name
            if rename.directory == change.inode or (rename.directory, rename.name) in left:
                durable.append((number, rename))
                left.add(rename.source)
            elif rename.source[0] == change.inode:
                # the old name is gone, but the new directory may not have the file yet
                gone = rename._replace(kind="remove", directory=change.inode, name=rename.source[1])
                durable.append((number, gone))
                waiting.append((number, rename._replace(kind="link", source=NOWHERE)))
            else:
                waiting.append((number, rename))
        self.names = self.names_after(reversed(durable))
        self.renamed = waiting[::-1]

    def names_after(self, changes: Iterable[Numbered]) -> Names:
        """Return the durable names after these changes."""
        names = dict(self.names)
        for _, change in changes:
            if change.kind == "rename":
                directory, name = change.source
                old = names[directory]
                if old.get(name) == change.inode:  # else a newer file was synced under that name
                    names[directory] = {other: inode for other, inode in old.items() if other != name}
            those = dict(names[change.directory])
            if change.kind == "remove":
                those.pop(change.name, None)
            else:
                those[change.name] = change.inode
            names[change.directory] = those
        return names

    def uncertain(self, inode: int) -> list[Numbered]:
        """Return the writes of a file that may be missing."""
        return [numbered for numbered in self.writes[inode] if numbered[0] not in self._certain]

    def content(self, inode: int, instead: Mapping[int, bytes | None]) -> bytes:
        """Return the content of a file in which some writes have other bytes or are missing (None)."""
        return after(self.contents[inode], self.writes[inode], instead)

    _ACTS: Mapping[str, Callable[[Unsynced, Change], None]] = {
        "write": _write,
        "truncate": _write,
        "sync": _sync,
        "failed_sync": _fail_sync,
        "create": _name,
        "make_directory": _name,
        "rename": _name,
        "remove": _name,
        "sync_directory": _sync_directory,
    }


def after(content: bytes, writes: Iterable[Numbered], instead: Mapping[int, bytes | None] = NOTHING) -> bytes:
    """Return the content of a file after some writes."""
    changed = bytearray(content)
    for number, change in writes:
        written = instead.get(number, change.content)
        if written is None:
            continue
        size, position = len(changed), change.position
        if size < position:
            changed.extend(bytes(position - size))
        if change.kind == "truncate":
            del changed[position:]
        else:
            changed[position : position + len(written)] = written
    return bytes(changed)
