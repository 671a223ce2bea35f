"""A bug as a file: its description, the invariant that it breaks, the tests that must notice it, and the
changes that reintroduce it.

A change names the definition that contains the code (``In: Class.method``), not the file. The tokens of the
old code must occur exactly once in the definitions of this name. So a patch still fits when code moves to
another file or is formatted again, and is reported when its code changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.bugbank.anchors import places, replaced

__all__ = ["Change", "Patch", "PatchError", "Witness", "parse_patch", "read_patch"]

HEADS = ("Bug", "Breaks", "Caught by", "Says", "Builds")


class PatchError(Exception):
    """The file is no patch, or does not fit the package any more."""


@dataclass
class Change:
    """The old and the new lines of one change in a definition; ``scope`` is its qualified name, or a file."""

    scope: str
    old: str = ""
    new: str = ""

    def apply(self, top: Path) -> Path:
        """Change a file below ``top`` and return its path. Raises PatchError unless the old code occurs
        exactly once."""
        found = places(top / "txnkafka", self.scope, self.old)
        if len(found) != 1:
            raise PatchError(f"this code occurs {len(found)} times in {self.scope}:\n{self.old}")
        path, start, end = found[0]
        text = path.read_text(encoding="utf-8")
        path.write_text(replaced(text, start, end, self.old, self.new), encoding="utf-8")
        return path


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
    changes: list[Change] = field(default_factory=list)

    def apply(self, top: Path) -> list[Path]:
        """Apply the bug to the package below ``top`` and return the changed files. Raises PatchError."""
        return [change.apply(top) for change in self.changes]


def read_patch(path: Path) -> Patch:
    """Parse a patch file. Raises PatchError."""
    return parse_patch(path.stem, path.read_text(encoding="utf-8"))


def parse_patch(name: str, text: str) -> Patch:
    """Parse the text of a patch. Raises PatchError."""
    patch = Patch(name)
    head, marker, diff = text.partition("In: ")
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
    for line in lines:
        if line.startswith("In: "):
            patch.changes.append(Change(line.removeprefix("In: ").strip()))
        elif line[:1] in ("", " ", "-", "+"):
            _take_line(patch.changes[-1], line)
        else:
            raise PatchError(f"{patch.name}: {line!r} is no line of a change")


def _take_line(change: Change, line: str) -> None:
    content = line[1:] + "\n"
    if line[:1] != "+":
        change.old += content
    if line[:1] != "-":
        change.new += content
