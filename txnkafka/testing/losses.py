"""Enumerates possible losses of a disk at one moment: every choice among the unsynced writes, combined with
every choice among the unsynced changes of names, if they make a difference."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import product
from typing import NamedTuple

from txnkafka.record.batch_header import HEADER_SIZE
from txnkafka.testing.disk import ROOT, Change, Disk
from txnkafka.testing.unsynced import Names, Numbered, Unsynced

SECTOR_BYTES = 512  # the unit that a disk writes atomically
HEADER_BYTES = HEADER_SIZE + 17  # headers of a batch and its first record: torn at every byte

Choice = tuple[str, int, int]
"""The kind of loss, the number of a change or inode, and the end of a torn write; -1 where not applicable."""
ALL_KEPT: Choice = ("kept", -1, -1)
ALL_LOST: Choice = ("lost", -1, -1)


class _Tree(NamedTuple):
    """The names after one choice, their files, and a hash of both."""

    names: Names
    files: list[int]
    mark: int


class Losses:
    """The choices at one moment; valid until the next change of ``unsynced``."""

    def __init__(self, unsynced: Unsynced) -> None:
        self._unsynced = unsynced
        self._kept = dict(unsynced.kept)
        self._contents = dict(unsynced.contents)
        self._modified_ms = dict(unsynced.modified_ms)
        self._trees: dict[Choice, _Tree] = {}

    def choices(self) -> Iterator[tuple[Choice, Choice]]:
        """Yield every choice of writes with a choice of names."""
        names = list(self._choices_of_names())
        yield from product(self._choices_of_files(), names)
        yield from product(self._choices_of_writes(), names[:2])

    def disk(self, writes: Choice, names: Choice) -> tuple[Disk, int]:
        """Return the disk after a choice, and a hash of its visible content."""
        contents = self._contents_by(writes)
        if names not in self._trees:
            self._trees[names] = self._tree(names)
        tree = self._trees[names]
        mark = hash((tree.mark, *[contents[inode] for inode in tree.files]))
        return Disk(contents, tree.names, self._modified_ms, self._unsynced.next_inode), mark

    # Writes

    @cached_property
    def _uncertain(self) -> dict[int, list[Numbered]]:
        found = {inode: self._unsynced.uncertain(inode) for inode in self._unsynced.writes}
        return {inode: writes for inode, writes in found.items() if writes}

    def _choices_of_files(self) -> Iterator[Choice]:
        """Yield choices in which all writes to some files are missing or zeros."""
        yield ALL_KEPT
        if self._uncertain:
            yield ALL_LOST
            yield "zeros", -1, -1
        if len(self._uncertain) > 1:
            yield from product(("only file", "without file", "zeros in file"), self._uncertain, (-1,))

    def _choices_of_writes(self) -> Iterator[Choice]:
        """Yield choices in which one write is missing, ends early, or is replaced by zeros, entirely or from
        a position on."""
        for writes in self._uncertain.values():
            for number, change in writes:
                yield "without", number, -1
                if change.kind == "write":
                    yield "zeros in", number, -1
                    ends = _sectors(change)
                    yield from (("torn", number, end) for end in sorted({*_header(change), *ends}))
                    yield from (("zeros behind", number, end) for end in ends or _header(change)[-1:])

    def _contents_by(self, choice: Choice) -> dict[int, bytes]:
        what, of, end = choice
        if what == "kept":
            return self._kept
        if what == "lost":
            return self._contents | {inode: self._lost(inode) for inode in self._uncertain}
        if what == "zeros":
            return self._kept | {inode: self._zeroed(inode) for inode in self._uncertain}
        if what == "only file":
            others = {inode: self._lost(inode) for inode in self._uncertain if inode != of}
            return self._kept | others
        if what == "without file":
            return self._kept | {of: self._lost(of)}
        if what == "zeros in file":
            return self._kept | {of: self._zeroed(of)}
        change = self._changes[of]
        size = len(change.content)
        instead = {
            "without": None,
            "zeros in": bytes(size),
            "torn": change.content[:end],
            "zeros behind": change.content[:end] + bytes(size - end),
        }
        return self._kept | {change.inode: self._unsynced.content(change.inode, {of: instead[what]})}

    @cached_property
    def _changes(self) -> dict[int, Change]:
        return {number: change for writes in self._uncertain.values() for number, change in writes}

    def _lost(self, inode: int) -> bytes:
        return self._unsynced.content(inode, {number: None for number, _ in self._uncertain[inode]})

    def _zeroed(self, inode: int) -> bytes:
        zeros = {number: bytes(len(change.content)) for number, change in self._uncertain[inode]}
        return self._unsynced.content(inode, zeros)

    # Names

    def _choices_of_names(self) -> Iterator[Choice]:
        """Yield choices of missing name changes: none, all, all after one, only one, or one directory's
        changes."""
        renamed = self._unsynced.renamed
        yield ALL_KEPT
        if renamed:
            yield ALL_LOST
        if len(renamed) > 1:
            yield from (("first", count, -1) for count in range(1, len(renamed)))
            yield from (("without", number, -1) for number, _ in renamed[:-1])
        directories = dict.fromkeys(change.directory for _, change in renamed)
        if len(directories) > 1:
            yield from product(("only in", "none in"), directories, (-1,))

    def _tree(self, choice: Choice) -> _Tree:
        names = self._unsynced.names_after(self._renamed_by(choice))
        directories, files = [ROOT], list[int]()
        for directory in directories:
            for inode in names[directory].values():
                (directories if inode in names else files).append(inode)
        mark = hash(frozenset((inode, frozenset(names[inode].items())) for inode in directories))
        return _Tree(names, files, mark)

    def _renamed_by(self, choice: Choice) -> list[Numbered]:
        renamed = self._unsynced.renamed
        what, of, _ = choice
        if what == "kept":
            return renamed
        if what == "lost":
            return []
        if what == "first":
            return renamed[:of]
        if what == "without":
            return [numbered for numbered in renamed if numbered[0] != of]
        return [numbered for numbered in renamed if (numbered[1].directory == of) == (what == "only in")]


def _header(change: Change) -> range:
    """Return the numbers of bytes after which the write of a batch or an entry may have stopped."""
    return range(1, min(len(change.content), HEADER_BYTES + 1))


def _sectors(change: Change) -> range:
    """Return the numbers of bytes after which a write over several sectors may have stopped."""
    return range(SECTOR_BYTES - change.position % SECTOR_BYTES, len(change.content), SECTOR_BYTES)
