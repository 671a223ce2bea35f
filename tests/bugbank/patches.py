"""A bug as a file: its description, the invariant that it breaks, the tests that must notice it, and a diff
that reintroduces it.

The diff is applied by content: the old lines of each hunk must occur exactly once in the file, anywhere. So a
patch still fits when code moves, and is reported when its code changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Hunk", "Patch", "PatchError", "Witness", "parse_patch", "read_patch"]

HEADS = ("Bug", "Breaks", "Caught by", "Says", "Builds")


class PatchError(Exception):
    """The file is no patch, or does not fit the package any more."""


@dataclass
class Hunk:
    """The old and the new lines of one change in a file."""

    file: str
    old: str = ""
    new: str = ""

    def apply(self, top: Path) -> None:
        """Raises PatchError unless the old lines occur exactly once."""
        path = top / self.file
        if not path.is_file():
            raise PatchError(f"there is no {self.file}")
        text = "\n" + path.read_text(encoding="utf-8")
        count = text.count("\n" + self.old)
        if count != 1 or not self.old:
            raise PatchError(f"these lines occur {count} times in {self.file}:\n{self.old}")
        path.write_text(text.replace("\n" + self.old, "\n" + self.new)[1:], encoding="utf-8")


@dataclass
class Witness:
    """``arguments`` of pytest, and the regular expression that matches its first failure; None when it is not
    recorded yet."""

    arguments: str
    says: str | None = None


@dataclass
class Patch:
    """One bug. Each of ``caught_by`` must notice it; ``builds`` are the modules to compile again."""

    name: str
    bug: str = ""
    breaks: str = ""
    caught_by: list[Witness] = field(default_factory=list)
    builds: list[str] = field(default_factory=list)
    hunks: list[Hunk] = field(default_factory=list)

    def apply(self, top: Path) -> None:
        """Apply the bug to the package below ``top``. Raises PatchError."""
        for hunk in self.hunks:
            hunk.apply(top)


def read_patch(path: Path) -> Patch:
    """Parse a patch file. Raises PatchError."""
    return parse_patch(path.stem, path.read_text(encoding="utf-8"))


def parse_patch(name: str, text: str) -> Patch:
    """Parse the text of a patch. Raises PatchError."""
    patch = Patch(name)
    head, marker, diff = text.partition("--- a/")
    for line in head.splitlines():
        key, colon, value = line.partition(": ")
        if not colon or key not in HEADS:
            raise PatchError(f"{name}: {line!r} is none of {', '.join(HEADS)}")
        _take_head(patch, key, value.strip())
    _take_diff(patch, (marker + diff).splitlines())
    if not (patch.bug and patch.breaks and patch.caught_by):
        raise PatchError(f"{name}: needs Bug, Breaks and Caught by")
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
        raise PatchError(f"{patch.name}: Says must follow its Caught by line, once")
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
