"""A bug as a file: what it is, what it breaks, which tests must notice it, and a diff that puts it back.

The diff is applied by content: the old lines of each hunk must stand exactly once in the file, wherever that
is. So code that moves needs no new patch, and code that changes says which patch has to be looked at again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Hunk", "Patch", "PatchError", "Witness", "parse_patch", "read_patch"]

HEADS = ("Bug", "Breaks", "Caught by", "Says", "Builds")


class PatchError(Exception):
    """A file that is no patch, or does not fit the package any more."""


@dataclass
class Hunk:
    """Lines of one file, as they are and as they are to be."""

    file: str
    old: str = ""
    new: str = ""

    def apply(self, top: Path) -> None:
        """Raises PatchError when the old lines do not stand there exactly once."""
        path = top / self.file
        if not path.is_file():
            raise PatchError(f"there is no {self.file}")
        text = "\n" + path.read_text(encoding="utf-8")
        count = text.count("\n" + self.old)
        if count != 1 or not self.old:
            raise PatchError(f"these lines stand {count} times in {self.file}:\n{self.old}")
        path.write_text(text.replace("\n" + self.old, "\n" + self.new)[1:], encoding="utf-8")


@dataclass
class Witness:
    """``arguments`` of pytest, and the regular expression that is found in the words of its first failure;
    None in a patch where nobody has recorded it yet."""

    arguments: str
    says: str | None = None


@dataclass
class Patch:
    """One bug. Each of ``caught_by`` must notice it; ``builds`` are the modules that are compiled again."""

    name: str
    bug: str = ""
    breaks: str = ""
    caught_by: list[Witness] = field(default_factory=list)
    builds: list[str] = field(default_factory=list)
    hunks: list[Hunk] = field(default_factory=list)

    def apply(self, top: Path) -> None:
        """Put the bug into the package below ``top``. Raises PatchError."""
        for hunk in self.hunks:
            hunk.apply(top)


def read_patch(path: Path) -> Patch:
    """Raises PatchError."""
    return parse_patch(path.stem, path.read_text(encoding="utf-8"))


def parse_patch(name: str, text: str) -> Patch:
    """Raises PatchError."""
    patch = Patch(name)
    head, marker, diff = text.partition("--- a/")
    for line in head.splitlines():
        key, colon, value = line.partition(": ")
        if not colon or key not in HEADS:
            raise PatchError(f"{name}: {line!r} is none of {', '.join(HEADS)}")
        _take_head(patch, key, value.strip())
    _take_diff(patch, (marker + diff).splitlines())
    if not (patch.bug and patch.breaks and patch.caught_by):
        raise PatchError(f"{name}: says not what it is, what it breaks and what catches it")
    return patch


def _take_head(patch: Patch, key: str, value: str) -> None:
    if key == "Bug":
        patch.bug = value
    elif key == "Breaks":
        patch.breaks = value
    elif key == "Caught by":
        patch.caught_by.append(Witness(value))
    elif key == "Says":
        _take_words(patch, value)
    else:
        patch.builds = value.split()


def _take_words(patch: Patch, value: str) -> None:
    if not patch.caught_by or patch.caught_by[-1].says is not None:
        raise PatchError(f"{patch.name}: Says belongs below the Caught by that it is about, once")
    try:
        re.compile(value)
    except re.error as error:
        raise PatchError(f"{patch.name}: {value!r} is no regular expression: {error}") from None
    patch.caught_by[-1].says = value


def _take_diff(patch: Patch, lines: list[str]) -> None:
    file = ""
    for line in lines:
        if line.startswith("--- a/"):
            file = line.removeprefix("--- a/")
        elif line.startswith("@@"):
            patch.hunks.append(Hunk(file))
        elif not line.startswith("+++ "):
            _take_line(patch, line)


def _take_line(patch: Patch, line: str) -> None:
    if not patch.hunks or line[:1] not in ("", " ", "-", "+"):
        raise PatchError(f"{patch.name}: {line!r} is no line of a diff")
    hunk, content = patch.hunks[-1], line[1:] + "\n"
    if line[:1] != "+":
        hunk.old += content
    if line[:1] != "-":
        hunk.new += content
