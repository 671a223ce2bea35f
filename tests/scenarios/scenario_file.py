"""The text of a scenario: commands, a ruler, and what they print.

    # A comment says what the reader should look for.
    A init id=x
    ----
    A init: NONE, producer 0 epoch 0

A block ends with an empty line or a comment. The commands of a block run in their order, and what they print
stands below the ruler. A line that begins with ``#`` behind the ruler is a comment on the block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["RULER", "Block", "blocks", "rewritten"]

RULER = "----"


@dataclass
class Block:
    """Some commands and what they print, with the lines of comment and space before them."""

    comment: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)


def blocks(text: str) -> list[Block]:
    """Parse a scenario. Raises ValueError for a line that is in no block."""
    found = [Block()]
    is_output = False
    for number, line in enumerate(text.splitlines(), start=1):
        if is_output and (not line or line.startswith("#")):
            found.append(Block())
            is_output = False
        block = found[-1]
        if line == RULER:
            if is_output or not block.commands:
                raise ValueError(f"line {number}: a ruler without a command")
            is_output = True
        elif is_output:
            block.printed.append(line)
        elif not line or line.startswith("#"):
            if block.commands:
                raise ValueError(f"line {number}: {block.commands[-1]!r} has no ruler below it")
            block.comment.append(line)
        else:
            block.commands.append(line)
    if found[-1].commands and not is_output:
        raise ValueError(f"{found[-1].commands[-1]!r} has no ruler below it")
    return found


def rewritten(text: str, run: Callable[[str], list[str]]) -> str:
    """The same scenario with what the commands print now; ``run`` gets one command after the other."""
    lines: list[str] = []
    for block in blocks(text):
        lines += block.comment
        if block.commands:
            lines += [*block.commands, RULER, *(line for command in block.commands for line in run(command))]
    return "\n".join(lines) + "\n"
