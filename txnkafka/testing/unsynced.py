"""Which changes of a disk are durable after some calls, and which a power cut may still take away.

The rules are those of POSIX where it promises least. The content and the size of a file are durable after a
sync of that file; a name, its disappearance or its move after a sync of the directory that has it. The one
does not follow from the other. A rename is one step, the old name or the new one, unless it leads from one
directory to another and only the first is synced: then the file may be lost. A sync that failed may have
lost what it was to write, for ever: the system takes it for written, and a later sync has nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from txnkafka.testing.disk import NOWHERE, Change, Disk

__all__ = ["Names", "Unsynced", "after"]

Names = dict[int, Mapping[str, int]]
Numbered = tuple[int, Change]
"""A change and how many changes were before it."""
NOTHING: Mapping[int, bytes | None] = {}


class Unsynced:
    """A disk after some of its changes. ``contents`` and ``names`` are what is durable.

    ``writes`` are by inode the writes and truncations since then, ``kept`` the contents after all of them;
    ``renamed`` are the changes of names that may be missing.
    """

    def __init__(self, base: Disk) -> None:
        self.contents: dict[int, bytes] = dict(base.contents)
        self.names: Names = dict(base.names)
        self.modified_ms = dict(base.modified_ms)
        self.next_inode = base.next_inode
        self.writes: dict[int, list[Numbered]] = {}
        self.renamed: list[Numbered] = []
        self.kept: dict[int, bytes] = dict(base.contents)
        self._doubtful: set[int] = set()
        self._certain: set[int] = set()  # of those that wait behind a doubtful one
        self._number = 0

    def make(self, change: Change) -> None:
        """Go on by one change."""
        self.modified_ms[change.inode] = change.modified_ms
        if (act := self._ACTS.get(change.kind)) is not None:
            act(self, change)
        self._number += 1

    def _write(self, change: Change) -> None:
        numbered = self._number, change
        self.writes.setdefault(change.inode, []).append(numbered)
        self.kept[change.inode] = after(self.kept[change.inode], [numbered])

    def _sync(self, change: Change) -> None:
        """What is in doubt stays so, and what was written later waits behind it to be made in order."""
        writes = self.writes.pop(change.inode, [])
        self._certain.update(number for number, _ in writes if number not in self._doubtful)
        durable = 0
        while durable < len(writes) and writes[durable][0] in self._certain:
            durable += 1
        if durable == len(writes):
            self.contents[change.inode] = self.kept[change.inode]
        else:
            self.contents[change.inode] = after(self.contents[change.inode], writes[:durable])
            self.writes[change.inode] = writes[durable:]

    def _fail_sync(self, change: Change) -> None:
        writes = self.writes.get(change.inode, [])
        self._doubtful.update(number for number, _ in writes if number not in self._certain)

    def _name(self, change: Change) -> None:
        self.renamed.append((self._number, change))
        self.next_inode = max(self.next_inode, change.inode + 1)
        if change.kind == "create":
            self.contents[change.inode] = self.kept[change.inode] = b""
        elif change.kind == "make_directory":
            self.names[change.inode] = {}

    def _sync_directory(self, change: Change) -> None:
        durable: list[Numbered] = []
        waiting: list[Numbered] = []
        left: set[tuple[int, str]] = set()
        for number, each in reversed(self.renamed):
            # what was moved to here durably has left where it was, however it came to be there
            if each.directory == change.inode or (each.directory, each.name) in left:
                durable.append((number, each))
                left.add(each.source)
            elif each.source[0] == change.inode:
                # it has left for a directory that may not know it yet
                gone = each._replace(kind="remove", directory=change.inode, name=each.source[1])
                durable.append((number, gone))
                waiting.append((number, each._replace(kind="link", source=NOWHERE)))
            else:
                waiting.append((number, each))
        self.names = self.names_after(reversed(durable))
        self.renamed = waiting[::-1]

    def names_after(self, changes: Iterable[Numbered]) -> Names:
        """The names when these changes of them were kept."""
        names = dict(self.names)
        for _, change in changes:
            if change.kind == "rename":
                directory, name = change.source
                old = names[directory]
                if old.get(name) == change.inode:  # and no newer file, synced under that name
                    names[directory] = {each: inode for each, inode in old.items() if each != name}
            those = dict(names[change.directory])
            if change.kind == "remove":
                those.pop(change.name, None)
            else:
                those[change.name] = change.inode
            names[change.directory] = those
        return names

    def uncertain(self, inode: int) -> list[Numbered]:
        """The writes of a file that may be missing."""
        return [each for each in self.writes[inode] if each[0] not in self._certain]

    def content(self, inode: int, instead: Mapping[int, bytes | None]) -> bytes:
        """A file when some of its writes put other bytes there, or nothing (None), instead of their own."""
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
    """A file after some writes."""
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
